//! A part of a live server's log, from a place on: its survey, and what models take of it. Reads as a replica would, and changes nothing.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use engine::policy::WriteSets;
use engine::quality::ExactModel;
use engine::survey::totals::Costs;
use engine::survey::{Definitions, Depth, Totals};
use sim::replica::Trace;
use wire::ConnectOptions;

use crate::inspect::live_server::{self, LiveServer};
use crate::inspect::report::InspectReport;
use crate::inspect::report::build::Limits;
use crate::simulate::trace::Collector;

/// Of the log, at most.
const TRANSACTIONS_MAX: usize = 50_000;

/// Where to begin, and how long to read at most.
pub struct LogPart {
    /// Without it the oldest file.
    pub file: Option<String>,
    pub offset: Option<u64>,
    pub server_id: u32,
    pub time: Duration,
}

/// `definitions`: of the tables, as far as they are known.
pub fn survey(options: &ConnectOptions, definitions: Definitions, part: LogPart) -> Result<(InspectReport, Trace)> {
    let full = AtomicBool::new(false);
    let mut collector = Collector::new(TRANSACTIONS_MAX, WriteSets::Heddle, &full);
    let live = LiveServer {
        options: options.clone(),
        start: part.file,
        offset: part.offset,
        follow: false,
        server_id: part.server_id,
    };
    let totals = Totals::with_exact(Depth::Keys, Costs::default(), ExactModel::new(usize::MAX, usize::MAX));
    let found = live_server::sample(&live, definitions, totals, Some(&mut collector), part.time)?;
    Ok((InspectReport::new(found, Limits { hot_keys: 20, tables: 20 }), collector.trace))
}
