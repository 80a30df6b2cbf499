//! Every metric of a copy under way: name, unit, kind, meaning, and where its sample has it. A line of docs/metrics.md for each.

use super::Kind::{Counter, Gauge};
use super::{CopyReading, Definition, ReadCopy, Unit, define};

/// In the order of the page: what is copied, how far, this process.
pub const ALL: &[Definition<ReadCopy>] = &[
    define("heddle_copy_tables", Unit::None, Gauge, "Tables of the round under way.", |seen, to| {
        to.number(seen.sample.tables as f64);
    }),
    define(
        "heddle_copy_rows",
        Unit::None,
        Gauge,
        "Rows of the round under way that are on the target, those of earlier runs included.",
        |seen, to| to.number(seen.sample.rows as f64),
    ),
    define(
        "heddle_copy_rows_expected",
        Unit::None,
        Gauge,
        "Rows of the round under way, as the source guesses them.",
        |seen, to| to.number(seen.sample.rows_expected as f64),
    ),
    define(
        "heddle_copy_progress",
        Unit::Ratio,
        Gauge,
        "The part of the round's rows that is on the target. Absent: there are none.",
        |seen, to| to.known(seen.progress()),
    ),
    define(
        "heddle_copy_placed",
        Unit::Bytes,
        Counter,
        "Bytes of the statements that have placed rows, of all rounds of this process.",
        |seen, to| to.number(seen.sample.bytes as f64),
    ),
    define(
        "heddle_copy_cpu",
        Unit::Seconds,
        Counter,
        "Processor time of this process, in user mode and in the kernel.",
        |seen, to| to.number(seen.usage.cpu.as_secs_f64()),
    ),
    define("heddle_copy_memory_max", Unit::Bytes, Gauge, "Most resident memory of this process.", |seen, to| {
        to.number(seen.usage.memory_bytes_max as f64);
    }),
];

impl CopyReading {
    fn progress(&self) -> Option<f64> {
        let expected = self.sample.rows_expected;
        (expected > 0).then(|| self.sample.rows as f64 / expected as f64)
    }
}
