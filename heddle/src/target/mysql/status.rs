//! The progress tables of a target, read without touching them.

use engine::failure::Failure;
use wire::{ConnectOptions, Connection};

use super::failures::{code, failed};
use super::opened::NOT_THERE;
use super::progress::SCHEMA;
use super::session::{ALONE, lock_name};
use super::sql::quote;
use crate::report::status::{ChannelStatus, InFlight, gaps};

pub fn read(options: &ConnectOptions) -> Result<Vec<ChannelStatus>, Failure> {
    let mut connection = Connection::connect(options).map_err(failed)?;
    let rows = connection.rows(format!(
        "SELECT channel, seq, source_file, source_position, gtids, commit_time_us, \
         CAST(UNIX_TIMESTAMP(applied_at)*1000000 AS UNSIGNED), source, owner, intent, \
         CAST(UNIX_TIMESTAMP(NOW(6))*1000000 AS UNSIGNED) FROM {SCHEMA}.progress ORDER BY channel"
    ));
    let rows = match rows {
        Err(error) if error.code().is_some_and(|code| NOT_THERE.contains(&code)) => return Ok(Vec::new()),
        rows => rows.map_err(failed)?,
    };
    let mut channels = Vec::new();
    for row in &rows {
        let text = |index: usize| row.text(index).map(|text| text.unwrap_or_default().to_owned()).map_err(failed);
        let number = |index: usize| row.required::<u64>(index).map_err(failed);
        let channel = text(0)?;
        let (file, offset) = (text(2)?, number(3)?);
        let (commit_time_us, applied_time_us, now_us) = (number(5)?, number(6)?, number(10)?);
        let lock = quote(&format!("heddle.{channel}").chars().take(64).collect::<String>());
        let holder = connection.scalar(format!("SELECT IS_USED_LOCK({lock})")).map_err(failed)?;
        let islands = connection
            .rows(format!(
                "SELECT first_seq, last_seq FROM {SCHEMA}.islands WHERE channel={} ORDER BY first_seq",
                quote(&channel)
            ))
            .map_err(failed)?;
        let low_water = number(1)?;
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for island in &islands {
            let (first, last): (u64, u64) = (island.required(0).map_err(failed)?, island.required(1).map_err(failed)?);
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == first => *end = last,
                _ if last > low_water => ranges.push((first, last)),
                _ => {}
            }
        }
        let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
        channels.push(ChannelStatus {
            low_water,
            gaps: gaps(low_water, &ranges),
            islands: ranges,
            source: text(7)?,
            source_position: (!file.is_empty()).then(|| format!("{file}:{offset}")),
            gtid_set: text(4)?,
            commit_time_us,
            applied_time_us,
            delay_seconds: if commit_time_us == 0 { 0.0 } else { seconds(commit_time_us, applied_time_us) },
            idle_seconds: seconds(applied_time_us, now_us),
            running: holder.is_some(),
            owner: text(8)?,
            intent: row.text(9).map_err(failed)?.map(str::to_owned),
            in_flight: in_flight(&mut connection, &channel)?,
            channel,
        });
    }
    Ok(channels)
}

/// As many as `--workers` allows.
const WORKERS_MAX: usize = 512;

/// What the channel's connections do. Each holds a lock by its number for as long as it lives. `None`: the account may not see it.
fn in_flight(connection: &mut Connection, channel: &str) -> Result<Option<Vec<InFlight>>, Failure> {
    let numbers: Vec<usize> = (0..WORKERS_MAX).chain([ALONE]).collect();
    let asked: Vec<String> =
        numbers.iter().map(|&number| format!("IS_USED_LOCK({})", quote(&lock_name(channel, number)))).collect();
    let Some(holders) = connection.row(format!("SELECT {}", asked.join(","))).map_err(failed)? else {
        return Ok(None);
    };
    let rows = connection.rows(
        "SELECT p.ID, p.TIME, COALESCE(TIMESTAMPDIFF(SECOND, t.trx_started, NOW()), 0), COALESCE(t.trx_rows_modified, 0), \
         IF(p.COMMAND IN ('Sleep', 'Daemon'), '', COALESCE(SUBSTRING_INDEX(LTRIM(p.INFO), ' ', 1), p.COMMAND)), \
         COALESCE(t.trx_state = 'LOCK WAIT', 0) \
         FROM information_schema.PROCESSLIST p LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.ID \
         WHERE p.COMMAND <> 'Sleep' OR t.trx_id IS NOT NULL",
    );
    let rows = match rows {
        Err(error) if error.code() == Some(code::SPECIFIC_ACCESS_DENIED) => return Ok(None),
        rows => rows.map_err(failed)?,
    };
    let mut found = Vec::new();
    for (at, &number) in numbers.iter().enumerate() {
        let Some(holder) = holders.parse::<u64>(at).map_err(failed)? else { continue };
        for row in &rows {
            let field = |index: usize| row.required::<u64>(index).map_err(failed);
            if field(0)? != holder {
                continue;
            }
            let statement = row.text(4).map_err(failed)?.unwrap_or_default().to_uppercase();
            found.push(InFlight {
                worker: (number != ALONE).then_some(number),
                connection: holder,
                // The server's clock, or the source's that row events set: never less than what the statement has taken.
                seconds: if statement.is_empty() { field(2)? } else { field(1)?.max(field(2)?) },
                rows: field(3)?,
                statement,
                waits_for_lock: field(5)? == 1,
            });
        }
    }
    Ok(Some(found))
}
