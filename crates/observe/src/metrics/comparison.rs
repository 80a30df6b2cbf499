//! Every metric of a comparison that goes round: name, unit, kind, meaning, and where its board has it. A line of docs/metrics.md for each.

use ::copy::compare::watch::RoundSummary;

use super::Kind::{Counter, Gauge};
use super::{ComparisonReading, Definition, ReadComparison, Samples, Unit, define};

/// In the order of the page: what was found, how it goes on, this process.
pub const ALL: &[Definition<ReadComparison>] = &[
    last("heddle_compare_tables", Unit::None, "Tables of the last round.", |seen, to| {
        of_last(seen, to, |last| last.tables as f64);
    }),
    last("heddle_compare_different_tables", Unit::None, "Tables that differ, of the last round.", |seen, to| {
        of_last(seen, to, |last| last.different_tables as f64);
    }),
    last(
        "heddle_compare_differences",
        Unit::None,
        "Rows that differ, of the last round, at most `--max-differences` a table; and tables and columns that the target lacks.",
        |seen, to| {
            of_last(seen, to, |last| last.differences as f64);
        },
    ),
    last(
        "heddle_compare_unsettled_rows",
        Unit::None,
        "Rows of the last round that were changed at each look, or wait for a channel that is stopped.",
        |seen, to| {
            of_last(seen, to, |last| last.unsettled as f64);
        },
    ),
    last("heddle_compare_last_round_rows", Unit::None, "Rows of the last round.", |seen, to| {
        of_last(seen, to, |last| last.rows as f64);
    }),
    last("heddle_compare_last_round", Unit::Seconds, "What the last round took.", |seen, to| {
        of_last(seen, to, |last| last.seconds);
    }),
    last(
        "heddle_compare_last_round_timestamp",
        Unit::Seconds,
        "When the last round ended, seconds since 1970.",
        |seen, to| {
            of_last(seen, to, |last| last.ended_at);
        },
    ),
    define("heddle_compare_period", Unit::Seconds, Gauge, "What a round is to take: `--watch`.", |seen, to| {
        to.number(seen.board.period.as_secs_f64());
    }),
    define("heddle_compare_rounds", Unit::None, Counter, "Rounds that have ended.", |seen, to| {
        to.number(seen.board.rounds() as f64);
    }),
    define(
        "heddle_compare_failed_rounds",
        Unit::None,
        Counter,
        "Rounds that came to no end, as a server was away.",
        |seen, to| {
            to.number(seen.board.failed_rounds() as f64);
        },
    ),
    define("heddle_compare_rows", Unit::None, Counter, "Rows compared, of all rounds.", |seen, to| {
        to.number(seen.board.rows() as f64);
    }),
    define(
        "heddle_compare_progress",
        Unit::Ratio,
        Gauge,
        "The part of the round under way that is done, by the source's estimate of its rows.",
        |seen, to| {
            to.known(seen.board.progress());
        },
    ),
    define(
        "heddle_compare_cpu",
        Unit::Seconds,
        Counter,
        "Processor time of this process, in user mode and in the kernel.",
        |seen, to| {
            to.number(seen.usage.cpu.as_secs_f64());
        },
    ),
    define("heddle_compare_memory_max", Unit::Bytes, Gauge, "Most resident memory of this process.", |seen, to| {
        to.number(seen.usage.memory_bytes_max as f64);
    }),
];

const fn last(name: &'static str, unit: Unit, help: &'static str, read: ReadComparison) -> Definition<ReadComparison> {
    define(name, unit, Gauge, help, read)
}

/// Nothing, before the first round has ended.
fn of_last(seen: &ComparisonReading<'_>, to: &mut Samples, value: impl Fn(&RoundSummary) -> f64) {
    to.known(seen.last.map(value));
}
