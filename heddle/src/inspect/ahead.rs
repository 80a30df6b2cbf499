//! A part of a live server's log, from a place on: its survey, and what models take of it. Reads as a replica would, and changes nothing.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use engine::policy::WriteSets;
use engine::quality::Exact;
use engine::survey::totals::Costs;
use engine::survey::{Definitions, Depth, Totals};
use sim::replica::Trace;
use wire::ConnectOptions;

use super::live::{self, Live};
use crate::report::inspect::InspectReport;
use crate::report::inspect::build::Limits;
use crate::simulate::trace::Collector;

/// Of the log, at most.
const TRANSACTIONS_MAX: usize = 50_000;

/// Where to begin, and how long to read at most.
pub struct Part {
    /// Without it the oldest file.
    pub file: Option<String>,
    pub offset: Option<u64>,
    pub server_id: u32,
    pub time: Duration,
}

/// `definitions`: of the tables, as far as they are known.
pub fn survey(options: &ConnectOptions, definitions: Definitions, part: Part) -> Result<(InspectReport, Trace)> {
    let full = AtomicBool::new(false);
    let mut collector = Collector::new(TRANSACTIONS_MAX, WriteSets::Heddle, &full);
    let live = Live {
        options: options.clone(),
        start: part.file,
        offset: part.offset,
        follow: false,
        server_id: part.server_id,
    };
    let totals = Totals::with_exact(Depth::Keys, Costs::default(), Exact::new(usize::MAX, usize::MAX));
    let found = live::sample(&live, definitions, totals, Some(&mut collector), part.time)?;
    Ok((InspectReport::new(found, Limits { hot_keys: 20, tables: 20 }), collector.trace))
}
