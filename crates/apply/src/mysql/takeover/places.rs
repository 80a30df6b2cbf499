//! The table `standbys`: what each process that waits for a channel says of itself. It counts only while the process holds the lock of its place.

use engine::failure::Failure;
use wire::{Connection, Row};

use super::{PLACES, PLACES_MAX};
use crate::CHANNEL_BYTES_MAX;
use crate::mysql::progress::tables::{SCHEMA, STANDBYS};
use crate::mysql::server::errors::{failed, if_there};
use crate::mysql::server::host::host_name;
use crate::mysql::server::sql::quote;
use crate::mysql::session::lease::holders;
use crate::standby::{StandbyReport, StandbyStatus};

/// `since_s`: for so long it waits.
pub fn record(channel: &str, place: usize, since_s: u64, report: &StandbyReport) -> String {
    let or_null = |number: Option<u64>| number.map_or_else(|| "NULL".to_owned(), |number| number.to_string());
    format!(
        "REPLACE INTO {SCHEMA}.{STANDBYS} (channel,place,host,pid,since,received,behind_bytes,behind_ms,obstacle,updated_at) VALUES \
         ({},{place},{},{},SYSDATE(6) - INTERVAL {since_s} SECOND,{},{},{},{},SYSDATE(6))",
        quote(channel),
        quote(&host_name()),
        std::process::id(),
        quote(&report.received),
        or_null(report.behind_bytes),
        or_null(report.behind_ms),
        quote(&report.obstacle),
    )
}

pub fn forget(channel: &str, place: usize) -> String {
    format!("DELETE FROM {SCHEMA}.{STANDBYS} WHERE channel={} AND place={place}", quote(channel))
}

/// How many places are taken.
pub fn count(connection: &mut Connection, channel: &str) -> Result<usize, Failure> {
    Ok(holders(connection, channel, PLACES..PLACES + PLACES_MAX)?.len())
}

/// The processes that wait for the channel, in the order of their places.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Vec<StandbyStatus>, Failure> {
    if channel.len() > CHANNEL_BYTES_MAX {
        return Ok(Vec::new());
    }
    let rows = connection.rows(format!(
        "SELECT place,host,pid,CAST(UNIX_TIMESTAMP(since)*1000000 AS UNSIGNED),received,behind_bytes,behind_ms,obstacle,\
         GREATEST(TIMESTAMPDIFF(MICROSECOND,updated_at,SYSDATE(6)),0) FROM {SCHEMA}.{STANDBYS} WHERE channel={} ORDER BY place",
        quote(channel)
    ));
    let rows = if_there(rows)?.unwrap_or_default();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let held = holders(connection, channel, PLACES..PLACES + PLACES_MAX)?;
    let mut found = Vec::new();
    for row in &rows {
        let place: usize = row.required(0).map_err(failed)?;
        if held.iter().any(|&(number, _)| number == PLACES + place) {
            found.push(status(row).map_err(failed)?);
        }
    }
    Ok(found)
}

fn status(row: &Row) -> Result<StandbyStatus, wire::Error> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(StandbyStatus {
        host: row.required_text(1)?.to_owned(),
        pid: row.required(2)?,
        since_us: row.required(3)?,
        received_position: some(row.required_text(4)?),
        behind_bytes: row.parse(5)?,
        behind_seconds: row.parse::<u64>(6)?.map(|ms| ms as f64 / 1e3),
        obstacle: some(row.required_text(7)?),
        seen_seconds: row.required::<u64>(8)? as f64 / 1e6,
    })
}
