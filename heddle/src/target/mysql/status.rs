//! The progress tables of a target, read without touching them.

use engine::failure::Failure;
use wire::{ConnectOptions, Connection};

use super::failures::failed;
use super::opened::NOT_THERE;
use super::progress::SCHEMA;
use super::sql::quote;
use crate::report::status::{ChannelStatus, gaps};

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
            channel,
        });
    }
    Ok(channels)
}
