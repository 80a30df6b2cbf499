//! The progress tables of a target, read without touching them.

use std::collections::HashMap;

use engine::failure::Failure;
use wire::{ConnectOptions, Connection};

use crate::mysql::progress::tables::{SCHEMA, SELECTIONS};
use crate::mysql::progress::{retries, stops};
use crate::mysql::server::errors::{code, failed, if_there};
use crate::mysql::server::sql::quote;
use crate::mysql::session::lease::{CLOSED, PAUSED, SOURCE_LOST, STATEMENTS, copy_holder, holders, lease_holder};
use crate::mysql::takeover::places;
use crate::status::{ChannelStatus, LastTransaction, OpenWork, Waits};
use crate::{CHANNEL_BYTES_MAX, WORKERS_MAX};

pub fn read(options: &ConnectOptions) -> Result<Vec<ChannelStatus>, Failure> {
    let mut connection = Connection::connect(options).map_err(failed)?;
    let rows = connection.rows(format!(
        "SELECT channel, seq, source_file, source_position, gtids, commit_time_us, \
         CAST(UNIX_TIMESTAMP(applied_at)*1000000 AS UNSIGNED), source, owner, intent, \
         CAST(UNIX_TIMESTAMP(NOW(6))*1000000 AS UNSIGNED) FROM {SCHEMA}.progress ORDER BY channel"
    ));
    let rows = if_there(rows)?.unwrap_or_default();
    let mut channels = Vec::new();
    for row in &rows {
        let text = |index: usize| row.text(index).map(|text| text.unwrap_or_default().to_owned()).map_err(failed);
        let number = |index: usize| row.required::<u64>(index).map_err(failed);
        let channel = text(0)?;
        let (file, offset) = (text(2)?, number(3)?);
        let (commit_time_us, applied_time_us, now_us) = (number(5)?, number(6)?, number(10)?);
        let holder = lease_holder(&mut connection, &channel)?;
        let recorded = connection
            .rows(format!(
                "SELECT first_seq, last_seq FROM {SCHEMA}.islands WHERE channel={} ORDER BY first_seq",
                quote(&channel)
            ))
            .map_err(failed)?;
        let low_water = number(1)?;
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for range in &recorded {
            let (first, last): (u64, u64) = (range.required(0).map_err(failed)?, range.required(1).map_err(failed)?);
            match ranges.last_mut() {
                Some((_, end)) if end.checked_add(1) == Some(first) => *end = last,
                _ if last > low_water => ranges.push((first, last)),
                _ => {}
            }
        }
        let source_lost = source_lost(&mut connection, &channel)?;
        let mut is_held = |number: usize| {
            Ok::<_, Failure>(
                channel.len() <= CHANNEL_BYTES_MAX && !holders(&mut connection, &channel, [number])?.is_empty(),
            )
        };
        let (paused, closed) = (is_held(PAUSED)?, is_held(CLOSED)?);
        let copying = copy_holder(&mut connection, &channel)?.is_some();
        let retrying = match holder {
            Some(_) if closed => Some(retries::closed(&mut connection)),
            Some(_) => retries::read(&mut connection, &channel)?,
            None => None,
        };
        let selection =
            connection.scalar(format!("SELECT selection FROM {SCHEMA}.{SELECTIONS} WHERE channel={}", quote(&channel)));
        let last_error = stops::read(&mut connection, &channel)?;
        let standbys = places::read(&mut connection, &channel)?;
        let mut status = ChannelStatus {
            source: text(7)?,
            source_position: (!file.is_empty()).then(|| format!("{file}:{offset}")),
            gtid_set: text(4)?,
            last: LastTransaction::new(commit_time_us, applied_time_us, now_us),
            running: holder.is_some(),
            source_reached: holder.is_some().then_some(source_lost.is_none()),
            source_lost_seconds: source_lost.flatten(),
            owner: text(8)?,
            intent: row.text(9).map_err(failed)?.map(str::to_owned),
            in_flight: in_flight(&mut connection, &channel)?,
            selection: if_there(selection)?.flatten(),
            last_error,
            retrying,
            standbys,
            ..ChannelStatus::new(channel, low_water, ranges)
        };
        status.set_state(Waits { source_lost: status.source_reached == Some(false), paused, closed, copying });
        channels.push(status);
    }
    Ok(channels)
}

/// Whether the channel's source can not be reached, and since how many seconds: not known of others' connections without the privilege PROCESS.
fn source_lost(connection: &mut Connection, channel: &str) -> Result<Option<Option<u64>>, Failure> {
    if channel.len() > CHANNEL_BYTES_MAX {
        return Ok(None);
    }
    let holders = holders(connection, channel, [SOURCE_LOST])?;
    let Some((_, id)) = holders.first() else { return Ok(None) };
    let sql = format!("SELECT TIME FROM information_schema.PROCESSLIST WHERE ID={id}");
    let seconds = connection.scalar(sql).map_err(failed)?;
    Ok(Some(seconds.and_then(|text| text.parse().ok())))
}

/// What the channel's connections do. Each holds a lock by its number for as long as it lives. `None`: the account may not see it.
fn in_flight(connection: &mut Connection, channel: &str) -> Result<Option<Vec<OpenWork>>, Failure> {
    if channel.len() > CHANNEL_BYTES_MAX {
        return Ok(None);
    }
    let holders = holders(connection, channel, (0..WORKERS_MAX).chain([STATEMENTS]))?;
    let rows = connection.rows(
        "SELECT p.ID, COALESCE(t.trx_rows_modified, 0), \
         IF(p.COMMAND IN ('Sleep', 'Daemon'), '', COALESCE(LEFT(LTRIM(p.INFO), 20), p.COMMAND)), \
         COALESCE(t.trx_state = 'LOCK WAIT', 0) \
         FROM information_schema.PROCESSLIST p LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.ID \
         WHERE p.COMMAND <> 'Sleep' OR t.trx_id IS NOT NULL",
    );
    let rows = match rows {
        Err(error) if error.code() == Some(code::SPECIFIC_ACCESS_DENIED) => return Ok(None),
        rows => rows.map_err(failed)?,
    };
    let times = transaction_times(connection)?;
    let workers: HashMap<u64, usize> = holders.into_iter().map(|(number, id)| (id, number)).collect();
    let mut found = Vec::new();
    for row in &rows {
        let field = |index: usize| row.required::<u64>(index).map_err(failed);
        let connection = field(0)?;
        let Some(&number) = workers.get(&connection) else { continue };
        found.push(OpenWork {
            worker: (number != STATEMENTS).then_some(number),
            connection,
            seconds: times.get(&connection).copied(),
            rows: field(1)?,
            statement: verb(row.text(2).map_err(failed)?.unwrap_or_default()),
            waits_for_lock: field(3)? == 1,
        });
    }
    // By number; the one for statements comes last, as it did when they were asked for.
    found.sort_by_key(|one| one.worker.unwrap_or(STATEMENTS));
    Ok(Some(found))
}

/// Seconds since each connection's transaction began, where the server says so. MySQL's `trx_started`, and TIME of the process list, count
/// from the time of the event that is applied, which may be long ago; its performance schema does not.
fn transaction_times(connection: &mut Connection) -> Result<HashMap<u64, u64>, Failure> {
    let sql = if connection.server().is_mariadb() {
        connection.execute_repeatable("SET SESSION time_zone='SYSTEM'").map_err(failed)?;
        "SELECT trx_mysql_thread_id, GREATEST(TIMESTAMPDIFF(SECOND, trx_started, SYSDATE()), 0) FROM information_schema.INNODB_TRX"
    } else {
        "SELECT t.PROCESSLIST_ID, CAST(FLOOR(e.TIMER_WAIT / 1e12) AS UNSIGNED) FROM performance_schema.events_transactions_current e \
         JOIN performance_schema.threads t ON t.THREAD_ID = e.THREAD_ID WHERE e.STATE = 'ACTIVE' AND t.PROCESSLIST_ID IS NOT NULL \
         AND e.TIMER_WAIT IS NOT NULL"
    };
    let rows = match connection.rows(sql) {
        Err(error) if error.is_connection_lost() => return Err(failed(error)),
        // Switched off, not allowed, or older than the table (5.6).
        Err(_) => return Ok(HashMap::new()),
        Ok(rows) => rows,
    };
    rows.iter().map(|row| Ok((row.required(0).map_err(failed)?, row.required(1).map_err(failed)?))).collect()
}

/// What follows the first word may hold a password.
fn verb(statement: &str) -> String {
    let verb: String = statement.chars().take_while(char::is_ascii_alphabetic).collect();
    if verb.is_empty() && !statement.is_empty() { "STATEMENT".to_owned() } else { verb.to_uppercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_verb_of_a_statement_is_shown() {
        assert_eq!(
            (verb("set\npassword='x'"), verb("Binlog Dump"), verb("")),
            ("SET".into(), "BINLOG".into(), String::new())
        );
    }
}
