//! Every metric of native replicas that are watched: name, unit, kind, meaning, and where a report has it. A line of docs/metrics.md for each.

use super::Kind::{Counter, Gauge};
use super::{Definition, ReadWatch, Samples, Unit, WatchReading, by, define};
use watch::report::model::{Report, Share};
use watch::rules::finding::Severity;

const REPLICA: &[&str] = &["replica", "channel"];

const fn each(name: &'static str, unit: Unit, help: &'static str, read: ReadWatch) -> Definition<ReadWatch> {
    by(REPLICA, define(name, unit, Gauge, help, read))
}

/// In the order of the page: the verdict, how far behind, where the time goes, workers, the source's tags, this process.
pub const ALL: &[Definition<ReadWatch>] = &[
    each("heddle_watch_up", Unit::None, "1: the replica answered; 0: it did not, or is no replica.", |seen, to| {
        of_each(seen, to, |report| Some(f64::from(u8::from(report.severity != Severity::Unknown))));
    }),
    each(
        "heddle_watch_severity",
        Unit::None,
        "0: nothing has to be done; 1: warning; 2: critical; 3: unknown.",
        |seen, to| {
            of_each(seen, to, |report| {
                Some(match report.severity {
                    Severity::Ok => 0.0,
                    Severity::Warning => 1.0,
                    Severity::Critical => 2.0,
                    Severity::Unknown => 3.0,
                })
            });
        },
    ),
    by(
        &["replica", "channel", "rule", "severity"],
        define(
            "heddle_watch_finding",
            Unit::Ratio,
            Gauge,
            "A finding of a rule: its share of the observed time.",
            |seen, to| {
                for (_, report) in seen.reports() {
                    for finding in &report.findings {
                        let severity = finding.severity.name();
                        let [replica, channel] = names(report);
                        to.labelled([replica, channel, finding.rule.to_owned(), severity.to_owned()], finding.share);
                    }
                }
            },
        ),
    ),
    each("heddle_watch_look_timestamp", Unit::Seconds, "Time of the last look, seconds since 1970.", |seen, to| {
        for (at_ms, report) in seen.reports() {
            to.labelled(names(report), at_ms as f64 / 1e3);
        }
    }),
    each(
        "heddle_watch_lag",
        Unit::Seconds,
        "Lag of the replica: by commit times where the server has them, else Seconds_Behind_Source.",
        |seen, to| {
            of_each(seen, to, |report| report.behind.lag_seconds);
        },
    ),
    each("heddle_watch_behind_transactions", Unit::None, "Received transactions that are not applied.", |seen, to| {
        of_each(seen, to, |report| report.behind.behind_transactions.map(|count| count as f64));
    }),
    each("heddle_watch_behind", Unit::Bytes, "The same in bytes of the relay log.", |seen, to| {
        of_each(seen, to, |report| report.behind.behind_bytes.map(|bytes| bytes as f64));
    }),
    each(
        "heddle_watch_applied_per_second",
        Unit::None,
        "Transactions applied a second in the last look.",
        |seen, to| {
            of_each(seen, to, |report| report.behind.applied_per_second);
        },
    ),
    each(
        "heddle_watch_received_per_second",
        Unit::None,
        "Transactions received a second in the last look.",
        |seen, to| {
            of_each(seen, to, |report| report.behind.received_per_second);
        },
    ),
    each(
        "heddle_watch_caught_up_in",
        Unit::Seconds,
        "Forecast until the replica has caught up. Absent: it keeps up, or falls further behind.",
        |seen, to| {
            of_each(seen, to, |report| report.behind.caught_up_in_seconds);
        },
    ),
    by(
        &["replica", "channel", "stage"],
        define(
            "heddle_watch_stage",
            Unit::Ratio,
            Gauge,
            "Share of the time in which this stage held up the next transaction: receive, schedule, apply, commit.",
            |seen, to| {
                for (_, report) in seen.reports() {
                    for stage in &report.applier.stages {
                        if let Some(share) = stage.share {
                            let [replica, channel] = names(report);
                            to.labelled([replica, channel, stage.stage.to_owned()], share);
                        }
                    }
                }
            },
        ),
    ),
    by(
        &["replica", "channel", "state"],
        define("heddle_watch_coordinator", Unit::Ratio, Gauge, "The coordinator's time by state.", |seen, to| {
            shares(seen, to, |report| &report.applier.coordinator);
        }),
    ),
    by(
        &["replica", "channel", "state"],
        define("heddle_watch_work", Unit::Ratio, Gauge, "The workers' time by state.", |seen, to| {
            shares(seen, to, |report| &report.applier.work);
        }),
    ),
    each("heddle_watch_workers", Unit::None, "Configured workers.", |seen, to| {
        of_known(seen, to, |report| Some(report.applier.workers_configured as f64));
    }),
    each("heddle_watch_busy_workers", Unit::None, "Workers with work, on average.", |seen, to| {
        of_known(seen, to, |report| Some(report.applier.busy_workers));
    }),
    each(
        "heddle_watch_jain",
        Unit::Ratio,
        "Jain's index over the workers' commits in the last look; 1: all the same.",
        |seen, to| {
            of_each(seen, to, |report| report.applier.jain);
        },
    ),
    each(
        "heddle_watch_binlog_group_size",
        Unit::None,
        "Transactions in a group commit of the replica's own binary log (MariaDB).",
        |seen, to| {
            of_each(seen, to, |report| report.period.binlog_group_size);
        },
    ),
    each(
        "heddle_watch_source_amil",
        Unit::None,
        "AMIL of the source's tags where the replica is in its log. Only with `--source`.",
        |seen, to| {
            of_each(seen, to, |report| report.source.as_ref()?.parallelism.amil);
        },
    ),
    each("heddle_watch_source_amil_writeset", Unit::None, "AMIL that write sets would give there.", |seen, to| {
        of_each(seen, to, |report| report.source.as_ref()?.parallelism.amil_writeset);
    }),
    each("heddle_watch_source_amil_exact", Unit::None, "AMIL of the exact dependencies by keys there.", |seen, to| {
        of_each(seen, to, |report| report.source.as_ref()?.parallelism.amil_exact);
    }),
    define(
        "heddle_watch_cpu",
        Unit::Seconds,
        Counter,
        "Processor time of this process, in user mode and in the kernel.",
        |seen, to| {
            to.number(seen.usage.cpu.as_secs_f64());
        },
    ),
    define("heddle_watch_memory_max", Unit::Bytes, Gauge, "Most resident memory of this process.", |seen, to| {
        to.number(seen.usage.memory_bytes_max as f64);
    }),
];

fn names(report: &Report) -> [String; 2] {
    [report.identity.replica.clone(), report.identity.channel.clone()]
}

/// A sample for each channel that has the value.
fn of_each(seen: &WatchReading<'_>, to: &mut Samples, value: impl Fn(&Report) -> Option<f64>) {
    for (_, report) in seen.reports() {
        if let Some(value) = value(report) {
            to.labelled(names(report), value);
        }
    }
}

/// The same, only of replicas that could be asked.
fn of_known(seen: &WatchReading<'_>, to: &mut Samples, value: impl Fn(&Report) -> Option<f64>) {
    of_each(seen, to, |report| value(report).filter(|_| report.severity != Severity::Unknown));
}

fn shares(seen: &WatchReading<'_>, to: &mut Samples, of: impl Fn(&Report) -> &[Share]) {
    for (_, report) in seen.reports() {
        for share in of(report) {
            let [replica, channel] = names(report);
            to.labelled([replica, channel, share.state.name().to_owned()], share.share);
        }
    }
}
