//! The hands of [`crate::watch::facts::source`]: asks the source, and reads a part of its binary log as a replica would. Changes nothing there.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use binlog::Flavour;
use engine::policy::WriteSets;
use engine::quality::Exact;
use engine::survey::totals::Costs;
use engine::survey::{Definitions, Depth, Totals};
use wire::{ConnectOptions, Connection};

use crate::inspect::live::{self, Live};
use crate::replica::ask::{binary_logs, channels};
use crate::replica::statements::Native;
use crate::replica::status::ReplicaStatus;
use crate::report::inspect::InspectReport;
use crate::report::inspect::build::Limits;
use crate::simulate::trace::Collector;
use crate::watch::facts::source::{Applier, SourceSeen, SourceServer};

/// Of the log, at most.
const TRANSACTIONS_MAX: usize = 50_000;

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
    let (start, offset) = match applied {
        Some(place) if has_more => (Some(place.file.to_string()), Some(place.offset)),
        _ => (seen.logs.last().map(|(name, _)| name.clone()), None),
    };
    let full = AtomicBool::new(false);
    let mut collector = Collector::new(TRANSACTIONS_MAX, WriteSets::Heddle, &full);
    let live = Live { options: options.clone(), start, offset, follow: false, server_id };
    let totals = Totals::with_exact(Depth::Keys, Costs::default(), Exact::new(usize::MAX, usize::MAX));
    let found = live::sample(&live, definitions, totals, Some(&mut collector), sample)
        .context("a sample of the source's log")?;
    let trace = collector.trace;
    seen.take(&InspectReport::new(found, Limits { hot_keys: 20, tables: 20 }));
    seen.simulate(&trace, applier);
    seen.set_commands(&options.address());
    Ok(seen)
}
