//! The hands of [`crate::facts::source`]: asks the source, and reads a part of its binary log as a replica would. Changes nothing there.

use std::time::Duration;

use anyhow::{Context, Result};
use binlog::Flavour;
use engine::survey::Definitions;
use wire::{ConnectOptions, Connection};

use crate::facts::source::{Applier, NextCommit, SourceFacts, SourceServer};
use insight::log_part::{LogPart, survey};
use replica::questions::{binary_logs, channels};
use replica::statements::NativeChannel;
use replica::status::ReplicaStatus;

/// Reads for so long at most. `definitions`: of the tables, as far as they are known.
pub fn read(
    options: &ConnectOptions,
    status: &ReplicaStatus,
    applier: Applier<'_>,
    definitions: Definitions,
    server_id: u32,
    sample: Duration,
) -> Result<SourceFacts> {
    let mut connection = Connection::connect(options).with_context(|| format!("source {}", options.address()))?;
    let server = connection.server().clone();
    let flavour = if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
    let mut seen = SourceFacts {
        server: SourceServer {
            version: server.version,
            version_text: server.version_text.clone(),
            mariadb: server.is_mariadb(),
            ..SourceServer::default()
        },
        logs: binary_logs(&mut connection).context("source")?,
        ..SourceFacts::default()
    };
    let tracking = connection.scalar("SELECT @@global.binlog_transaction_dependency_tracking");
    seen.server.tracking = tracking.ok().flatten().unwrap_or_default();
    let native = NativeChannel { flavour, version: server.version, channel: String::new() };
    match channels(&mut connection, &native) {
        Ok(channels) => seen.server.is_replica = !channels.is_empty(),
        Err(_) => seen.notes.push("whether the source is itself a replica could not be asked".to_owned()),
    }
    drop(connection);
    // What the replica applies next; one that has applied all: the last file, so that there is something to look at.
    let applied = status.applied.as_ref().filter(|place| seen.logs.iter().any(|(name, _)| *name == *place.file));
    let has_more = applied.is_some_and(|place| replica::questions::bytes_after(&seen.logs, place).unwrap_or(0) > 0);
    let (file, offset) = match applied {
        Some(place) if has_more => (Some(place.file.to_string()), Some(place.offset)),
        _ => (seen.logs.last().map(|(name, _)| name.clone()), None),
    };
    let from = applied.filter(|_| has_more).map(ToString::to_string);
    let part = LogPart { file, offset, server_id, time: sample };
    let (report, trace) = survey(options, definitions, part).context("a sample of the source's log")?;
    seen.take(&report);
    seen.next = from.zip(report.first_time.as_deref().and_then(seconds)).map(|(applied, committed_s)| NextCommit {
        channel: status.channel.clone(),
        applied,
        committed_s,
    });
    seen.simulate(&trace, applier);
    seen.set_commands(&options.address());
    Ok(seen)
}

/// Of a time as reports have it.
fn seconds(utc: &str) -> Option<f64> {
    Some(utc.parse::<jiff::Timestamp>().ok()?.as_second() as f64)
}
