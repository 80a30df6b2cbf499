//! Rows on their way: from the source's tables, in chunks by key or in one consistent read, to the target's.

mod ranges;
mod throttle;
mod whole_read;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};

use engine::failure::{Failure, FailureKind};
use wire::{ConnectOptions, Error};

pub use ranges::plan;
pub use whole_read::{WholeRead, read_whole};
pub use worker::{RangeWork, copy_ranges};

use crate::bookkeeping::CopyState;
use crate::definitions::TargetNames;
use crate::limits::CopyLimits;
use crate::measures::Measures;
use crate::place::CopyTarget;
use crate::source::source_failure;

/// What readers of rows share.
pub struct ReadContext<'a> {
    pub source: &'a ConnectOptions,
    pub target: CopyTarget<'a>,
    pub names: &'a TargetNames,
    pub state: &'a CopyState,
    pub measures: &'a Measures,
    pub stop: &'a AtomicBool,
    pub workers: usize,
    pub limits: CopyLimits<'a>,
    /// The target's `max_allowed_packet`.
    pub packet_bytes_max: usize,
}

impl ReadContext<'_> {
    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Why a source's answer is none.
#[derive(Debug)]
pub enum ReadEnd {
    /// The table is another one now, or gone: the log says so, too.
    Redefined(String),
    Failed(Failure),
}

impl From<Failure> for ReadEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Of a statement on the source about one table.
fn of_source(error: Error) -> ReadEnd {
    if is_redefined(&error) { ReadEnd::Redefined(error.to_string()) } else { ReadEnd::Failed(source_failure(error)) }
}

/// The table is not the one that was listed.
pub fn is_redefined(error: &Error) -> bool {
    // No such database, table or column; no such index; the definition has changed since the read began.
    const REDEFINED: [u16; 6] = [1049, 1146, 1054, 1176, 1412, 1072];
    error.code().is_some_and(|code| REDEFINED.contains(&code))
}

/// Of rows that were placed: the table may have been made from an older or newer definition than the one that was read.
fn of_target(failure: Failure) -> ReadEnd {
    const REDEFINED: [u16; 3] = [1054, 1136, 1146];
    if failure.code.is_some_and(|code| REDEFINED.contains(&code)) {
        return ReadEnd::Redefined(failure.message);
    }
    ReadEnd::Failed(failure)
}

fn stopped() -> Failure {
    Failure::new(FailureKind::Stopped, "the copy was asked to end")
}
