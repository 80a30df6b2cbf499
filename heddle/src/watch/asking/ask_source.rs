//! The hands of [`crate::watch::facts::source`]: asks the source, and reads a part of its binary log as a replica would. Changes nothing there.

use std::time::Duration;

use anyhow::{Context, Result};
use binlog::Flavour;
use engine::survey::Definitions;
use wire::{ConnectOptions, Connection};

use crate::inspect::ahead::{Part, survey};
use crate::replica::ask::{binary_logs, channels};
use crate::replica::statements::Native;
use crate::replica::status::ReplicaStatus;
use crate::watch::facts::source::{Applier, SourceSeen, SourceServer};

/// Reads for so long at most. `definitions`: of the tables, as far as they are known.
pub fn look(
    options: &ConnectOptions,
    status: &ReplicaStatus,
    applier: Applier<'_>,
    definitions: Definitions,
    server_id: u32,
    sample: Duration,
) -> Result<SourceSeen> {
    let mut connection = Connection::connect(options).with_context(|| format!("source {}", options.address()))?;
    let server = connection.server().clone();
    let flavour = if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
    let mut seen = SourceSeen {
        server: SourceServer {
            version: server.version,
            version_text: server.version_text.clone(),
            mariadb: server.is_mariadb(),
            ..SourceServer::default()
        },
        logs: binary_logs(&mut connection).context("source")?,
        ..SourceSeen::default()
    };
    let tracking = connection.scalar("SELECT @@global.binlog_transaction_dependency_tracking");
    seen.server.tracking = tracking.ok().flatten().unwrap_or_default();
    let native = Native { flavour, version: server.version, channel: String::new() };
    match channels(&mut connection, &native) {
        Ok(channels) => seen.server.is_replica = !channels.is_empty(),
        Err(_) => seen.notes.push("whether the source is itself a replica could not be asked".to_owned()),
    }
    drop(connection);
    // What the replica applies next; one that has applied all: the last file, so that there is something to look at.
    let applied = status.applied.as_ref().filter(|place| seen.logs.iter().any(|(name, _)| *name == *place.file));
    let has_more = applied.is_some_and(|place| crate::replica::ask::bytes_after(&seen.logs, place).unwrap_or(0) > 0);
    let (file, offset) = match applied {
        Some(place) if has_more => (Some(place.file.to_string()), Some(place.offset)),
        _ => (seen.logs.last().map(|(name, _)| name.clone()), None),
    };
    let part = Part { file, offset, server_id, time: sample };
    let (report, trace) = survey(options, definitions, part).context("a sample of the source's log")?;
    seen.take(&report);
    seen.simulate(&trace, applier);
    seen.set_commands(&options.address());
    Ok(seen)
}
