//! Every metric: name, unit, kind, meaning, and where the snapshot has it. A line of docs/metrics.md for each.

use channel::snapshot::Lag;
use engine::quality::jain_index;

use super::Kind::{Counter, Gauge};
use super::read::{each_stage, each_worker, idle_cause, lost, received, timestamp};
use super::{Definition, Kind, Unit, by, define};

/// In the order of the page: how far behind, each stage, workers, groups, trouble, the source's tags, this process.
pub const ALL: &[Definition] = &[
    by(
        &["version"],
        define("heddle_build_info", Unit::None, Gauge, "Always 1; the label says which version runs.", |_, to| {
            to.labelled([env!("CARGO_PKG_VERSION").to_owned()], 1.0);
        }),
    ),
    define(
        "heddle_lag",
        Unit::Seconds,
        Gauge,
        "Age of the first transaction that is not committed on the target, where it is known, else of the last that is, by the source's clock; 0: all that was read is committed. Absent: nothing was applied yet, or the source cannot be reached.",
        |seen, to| match seen.snapshot.lag() {
            Lag::CaughtUp => to.number(0.0),
            Lag::Behind(lag) => to.number(lag.as_secs_f64()),
            Lag::Unknown | Lag::SourceLost(_) => {}
        },
    ),
    define(
        "heddle_source_lost",
        Unit::Seconds,
        Gauge,
        "For so long the source cannot be reached; 0: it can.",
        |seen, to| to.known(received(seen).map(|received| lost(received.source_lost))),
    ),
    define(
        "heddle_target_lost",
        Unit::Seconds,
        Gauge,
        "For so long the target cannot be reached; 0: it can.",
        |seen, to| to.number(lost(seen.snapshot.target.lost)),
    ),
    define("heddle_paused", Unit::None, Gauge, "1: an operator has paused the channel.", |seen, to| {
        to.number(f64::from(u8::from(seen.snapshot.paused)));
    }),
    define("heddle_received", Unit::Bytes, Counter, "Events that the source has sent.", |seen, to| {
        to.known(received(seen).map(|received| received.amount.bytes as f64));
    }),
    define(
        "heddle_received_transactions",
        Unit::None,
        Counter,
        "Transactions that the source has sent; 0: its log does not say where they begin.",
        |seen, to| to.known(received(seen).map(|received| received.amount.transactions as f64)),
    ),
    define(
        "heddle_received_timestamp",
        Unit::Seconds,
        Gauge,
        "When the source wrote the last event that was received, seconds since 1970.",
        |seen, to| {
            let time = received(seen).map(|received| received.amount.time_s).filter(|time| *time > 0);
            to.known(time.map(f64::from));
        },
    ),
    define(
        "heddle_durable_timestamp",
        Unit::Seconds,
        Gauge,
        "The same of the last event that is on the disk of the relay log.",
        |seen, to| {
            let time = received(seen).map(|received| received.on_disk.time_s).filter(|time| *time > 0);
            to.known(time.map(f64::from));
        },
    ),
    by(
        &["stage"],
        define(
            "heddle_stage_lag",
            Unit::Seconds,
            Gauge,
            "Age of what has not passed the stage, by the source's clock: received, durable, scheduled, applied, committed. Absent: not known.",
            |seen, to| each_stage(seen, to, |stage| stage.lag_s),
        ),
    ),
    by(
        &["stage"],
        define(
            "heddle_stage_behind_transactions",
            Unit::None,
            Gauge,
            "Received transactions that have not passed the stage; those that are not read yet are estimated by their bytes.",
            |seen, to| each_stage(seen, to, |stage| stage.transactions.map(|count| count as f64)),
        ),
    ),
    by(
        &["stage"],
        define(
            "heddle_stage_behind",
            Unit::Bytes,
            Gauge,
            "Received bytes that have not passed the stage, about.",
            |seen, to| each_stage(seen, to, |stage| stage.bytes.map(|bytes| bytes as f64)),
        ),
    ),
    define("heddle_relay_log", Unit::Bytes, Gauge, "What the relay log takes on the disk.", |seen, to| {
        to.known(received(seen).map(|received| received.relay_bytes as f64));
    }),
    define(
        "heddle_relay_log_full",
        Unit::None,
        Gauge,
        "1: the relay log is as large as it may be, and nothing is received.",
        |seen, to| to.known(received(seen).map(|received| f64::from(u8::from(received.relay_full)))),
    ),
    define(
        "heddle_relay_sync",
        Unit::Seconds,
        Kind::Histogram,
        "Time of each sync of the relay log to the disk.",
        |seen, to| {
            if let Some(received) = received(seen) {
                to.histogram([], &received.syncs, 1e-6);
            }
        },
    ),
    define("heddle_read", Unit::Bytes, Counter, "Events read from the relay log, or from files.", |seen, to| {
        to.number(seen.snapshot.read.bytes as f64);
    }),
    define(
        "heddle_read_timestamp",
        Unit::Seconds,
        Gauge,
        "When the source committed the last transaction that was read, seconds since 1970.",
        |seen, to| to.known(timestamp(seen.snapshot.read.commit_time_us)),
    ),
    define(
        "heddle_committed_timestamp",
        Unit::Seconds,
        Gauge,
        "When the source committed the last transaction up to which all is committed on the target, seconds since 1970.",
        |seen, to| to.known(timestamp(seen.snapshot.committed.commit_time_us)),
    ),
    define(
        "heddle_behind_transactions",
        Unit::None,
        Gauge,
        "Transactions that were read and are not yet covered by the low water: waiting, under way, or committed ahead.",
        |seen, to| {
            to.number(seen.snapshot.read.seq.saturating_sub(seen.snapshot.committed.seq) as f64);
        },
    ),
    define("heddle_queued_transactions", Unit::None, Gauge, "Transactions that wait to be dispatched.", |seen, to| {
        to.number(seen.snapshot.scheduled.queued_transactions as f64);
    }),
    define("heddle_queued", Unit::Bytes, Gauge, "Bytes of the transactions that wait to be dispatched.", |seen, to| {
        to.number(seen.snapshot.scheduled.queued_bytes as f64);
    }),
    define("heddle_memory", Unit::Bytes, Gauge, "Memory that transactions under way take.", |seen, to| {
        to.number(seen.snapshot.memory.used_bytes as f64);
    }),
    define("heddle_memory_max", Unit::Bytes, Gauge, "What they may take (--memory).", |seen, to| {
        to.number(seen.snapshot.memory.max_bytes as f64);
    }),
    define(
        "heddle_memory_wait",
        Unit::Seconds,
        Counter,
        "Time that reading has waited for room in memory.",
        |seen, to| to.number(seen.snapshot.workers.waits.for_memory.as_secs_f64()),
    ),
    define(
        "heddle_transactions",
        Unit::None,
        Counter,
        "The source's transactions that are committed on the target.",
        |seen, to| to.number(seen.snapshot.scheduled.counters.transactions as f64),
    ),
    define("heddle_rows", Unit::None, Counter, "Row changes that are committed on the target.", |seen, to| {
        to.number(seen.snapshot.scheduled.counters.rows as f64);
    }),
    define("heddle_target_transactions", Unit::None, Counter, "Commits on the target.", |seen, to| {
        to.number(seen.snapshot.scheduled.counters.groups as f64);
    }),
    define(
        "heddle_group_transactions",
        Unit::None,
        Kind::Histogram,
        "The source's transactions in each group that was committed.",
        |seen, to| to.histogram([], &seen.snapshot.workers.totals.group_transactions, 1.0),
    ),
    define(
        "heddle_group",
        Unit::Seconds,
        Kind::Histogram,
        "Time of each group from its dispatch to its durable commit on the target.",
        |seen, to| to.histogram([], &seen.snapshot.workers.totals.group_micros, 1e-6),
    ),
    define(
        "heddle_commit",
        Unit::Seconds,
        Kind::Histogram,
        "Time of each commit on the target, until it is durable there, with the rows that are sent along with it.",
        |seen, to| to.histogram([], &seen.snapshot.workers.totals.commit_micros, 1e-6),
    ),
    by(
        &["worker"],
        define(
            "heddle_worker_busy",
            Unit::Seconds,
            Counter,
            "Time that the worker has had a group, waiting for its turn to commit included.",
            |seen, to| {
                each_worker(seen, to, |worker| Some(worker.done.busy.as_secs_f64()));
            },
        ),
    ),
    by(
        &["worker", "cause"],
        define(
            "heddle_worker_idle",
            Unit::Seconds,
            Counter,
            "Time that the worker has had no group, by why nothing was dispatched: as in heddle_workers_idle_seconds_total, barriers together.",
            |seen, to| {
                for (number, worker) in seen.snapshot.workers.each.iter().enumerate() {
                    let mut sums = std::collections::BTreeMap::new();
                    for (cause, time) in &worker.idle {
                        *sums.entry(cause.as_str()).or_insert(0.0) += time.as_secs_f64();
                    }
                    for (cause, time) in sums {
                        to.labelled([number.to_string(), cause.to_owned()], time);
                    }
                }
            },
        ),
    ),
    by(
        &["worker"],
        define(
            "heddle_worker_waits_to_commit",
            Unit::None,
            Gauge,
            "1: the worker waits for its turn to commit, or for rows of earlier groups, now.",
            |seen, to| each_worker(seen, to, |worker| Some(f64::from(u8::from(worker.waits_to_commit)))),
        ),
    ),
    by(
        &["worker"],
        define("heddle_worker_groups", Unit::None, Counter, "Groups that the worker has committed.", |seen, to| {
            each_worker(seen, to, |worker| Some(worker.done.groups as f64));
        }),
    ),
    by(
        &["worker"],
        define(
            "heddle_worker_transactions",
            Unit::None,
            Counter,
            "The source's transactions that the worker has committed.",
            |seen, to| {
                each_worker(seen, to, |worker| Some(worker.done.transactions as f64));
            },
        ),
    ),
    by(
        &["worker"],
        define(
            "heddle_worker_group_age",
            Unit::Seconds,
            Gauge,
            "For so long the worker has had its group; absent: it has none.",
            |seen, to| {
                each_worker(seen, to, |worker| worker.running.as_ref().map(|running| running.time.as_secs_f64()));
            },
        ),
    ),
    define("heddle_workers", Unit::None, Gauge, "Workers of the channel.", |seen, to| {
        to.number(seen.snapshot.workers.each.len() as f64);
    }),
    define("heddle_workers_busy", Unit::None, Gauge, "Workers that have a group.", |seen, to| {
        to.number(seen.snapshot.workers.each.iter().filter(|worker| worker.running.is_some()).count() as f64);
    }),
    define(
        "heddle_workers_jain",
        Unit::Ratio,
        Gauge,
        "Jain's index of the workers' busy time since the start: 1: all were used alike; 1 / workers: one did everything.",
        |seen, to| to.known(jain_index(seen.snapshot.workers.each.iter().map(|worker| worker.done.busy.as_secs_f64()))),
    ),
    by(
        &["cause"],
        define(
            "heddle_workers_idle",
            Unit::Seconds,
            Counter,
            "Time of all workers without a group, by why nothing was dispatched: nothing_queued, dependency, gathering, barrier_CAUSE, stopping.",
            |seen, to| {
                for (cause, time) in &seen.snapshot.workers.totals.idle {
                    to.labelled([idle_cause(*cause)], time.as_secs_f64());
                }
            },
        ),
    ),
    define(
        "heddle_commit_order_wait",
        Unit::Seconds,
        Counter,
        "Time that workers have waited for their turn to commit; it is part of their busy time.",
        |seen, to| to.number(seen.snapshot.workers.waits.to_commit.as_secs_f64()),
    ),
    define(
        "heddle_row_wait",
        Unit::Seconds,
        Counter,
        "The part of it that was spent with rows still to apply that earlier groups change.",
        |seen, to| to.number(seen.snapshot.workers.waits.for_rows.as_secs_f64()),
    ),
    by(
        &["cause"],
        define(
            "heddle_barriers",
            Unit::None,
            Counter,
            "Transactions beside which nothing may run, by cause.",
            |seen, to| {
                for (cause, count) in &seen.snapshot.workers.totals.barriers {
                    to.labelled([cause.as_str().to_owned()], *count as f64);
                }
            },
        ),
    ),
    define("heddle_retries", Unit::None, Counter, "Groups that failed and were tried again.", |seen, to| {
        to.number(seen.snapshot.scheduled.counters.retries as f64);
    }),
    define(
        "heddle_aborts",
        Unit::None,
        Counter,
        "Groups that were rolled back because they held what an earlier group needed.",
        |seen, to| to.number(seen.snapshot.scheduled.counters.aborts as f64),
    ),
    define(
        "heddle_isolations",
        Unit::None,
        Counter,
        "Groups that failed together and were applied one transaction at a time.",
        |seen, to| to.number(seen.snapshot.scheduled.counters.isolations as f64),
    ),
    define(
        "heddle_lock_waits",
        Unit::None,
        Counter,
        "Waits for locks between two groups that were found on the target.",
        |seen, to| to.number(seen.snapshot.workers.totals.lock_waits as f64),
    ),
    define(
        "heddle_lock_holders",
        Unit::None,
        Gauge,
        "Sessions of others on the target that hold what workers wait for now, as far as the target says.",
        |seen, to| to.number(seen.snapshot.target.holders.iter().filter(|holder| !holder.is_own).count() as f64),
    ),
    define(
        "heddle_retrying",
        Unit::Seconds,
        Gauge,
        "For so long the target has not taken a group that is tried again; 0: it takes all.",
        |seen, to| {
            let retried = seen.snapshot.target.retried.as_ref();
            to.number(retried.map_or(0.0, |retried| retried.since.elapsed().as_secs_f64()));
        },
    ),
    define("heddle_deferred_rows", Unit::None, Counter, "Rows that had to wait for an earlier group.", |seen, to| {
        to.number(seen.snapshot.scheduled.counters.rows_deferred as f64);
    }),
    define(
        "heddle_speculative_transactions",
        Unit::None,
        Counter,
        "Transactions that were run without knowing what they may conflict with.",
        |seen, to| to.number(seen.snapshot.scheduled.counters.speculative as f64),
    ),
    define(
        "heddle_source_amil",
        Unit::None,
        Gauge,
        "Average modified interval length of the source's LOGICAL_CLOCK tags since the start (MySQL). Absent: no tags.",
        |seen, to| to.known(seen.snapshot.read.tags.intervals.amil()),
    ),
    define(
        "heddle_source_pseudo_group_size",
        Unit::None,
        Gauge,
        "2 × AMIL − 1: the size of equally parallel group commits (MySQL).",
        |seen, to| to.known(seen.snapshot.read.tags.intervals.pseudo_group_size()),
    ),
    define(
        "heddle_source_tagged_transactions",
        Unit::None,
        Counter,
        "Transactions with LOGICAL_CLOCK tags; with the next one: AMIL over any time.",
        |seen, to| to.number(seen.snapshot.read.tags.intervals.transactions as f64),
    ),
    define(
        "heddle_source_interval_length",
        Unit::None,
        Counter,
        "Sum of their modified interval lengths.",
        |seen, to| to.number(seen.snapshot.read.tags.intervals.modified_sum as f64),
    ),
    define(
        "heddle_source_group_transactions",
        Unit::None,
        Kind::Histogram,
        "Transactions in each of the source's group commits (MariaDB; MySQL without tags: 1 each).",
        |seen, to| to.histogram([], &seen.snapshot.read.tags.groups.sizes, 1.0),
    ),
    define(
        "heddle_exact_amil",
        Unit::None,
        Gauge,
        "Average modified interval length of tags by keys, whatever the source wrote, since the start: MySQL's WRITESET with its default history. Absent: nothing was read.",
        |seen, to| to.known(seen.snapshot.read.placed.exact.amil()),
    ),
    define("heddle_exact_pseudo_group_size", Unit::None, Gauge, "2 × that − 1.", |seen, to| {
        to.known(seen.snapshot.read.placed.exact.pseudo_group_size());
    }),
    define(
        "heddle_exact_transactions",
        Unit::None,
        Counter,
        "Transactions that were tagged by their keys; with the next one: exact AMIL over any time.",
        |seen, to| to.number(seen.snapshot.read.placed.exact.transactions as f64),
    ),
    define(
        "heddle_exact_interval_length",
        Unit::None,
        Counter,
        "Sum of their modified interval lengths.",
        |seen, to| to.number(seen.snapshot.read.placed.exact.modified_sum as f64),
    ),
    define(
        "heddle_waiting",
        Unit::Ratio,
        Gauge,
        "Of the transactions read in the last seconds, the part that waits for an earlier one by the policy.",
        |seen, to| to.number(seen.snapshot.read.placed.waiting_share),
    ),
    define("heddle_process_cpu", Unit::Seconds, Counter, "Processor time of this process.", |seen, to| {
        to.number(seen.usage.cpu.as_secs_f64());
    }),
    define(
        "heddle_process_memory_max",
        Unit::Bytes,
        Gauge,
        "The most memory of this process that was resident at once.",
        |seen, to| to.number(seen.usage.memory_bytes_max as f64),
    ),
];
