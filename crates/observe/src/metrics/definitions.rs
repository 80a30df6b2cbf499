//! Every metric: name, unit, kind, meaning, and where the snapshot has it. A line of docs/metrics.md for each.

use channel::snapshot::Lag;
use engine::quality::jain_index;

use super::Kind::{Counter, Gauge};
use super::read::{each_stage, each_worker, idle_cause, received, timestamp};
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
        "Age of the oldest transaction that is not applied, by the source's clock; if it is not read yet, of the last applied one. 0: everything received is applied. Absent: nothing is applied yet, or the source cannot be reached.",
        |seen, to| match seen.snapshot.lag() {
            Lag::CaughtUp => to.number(0.0),
            Lag::Behind(lag) => to.number(lag.as_secs_f64()),
            Lag::Unknown | Lag::SourceLost(_) => {}
        },
    ),
    define(
        "heddle_caught_up_in",
        Unit::Seconds,
        Gauge,
        "Forecast until the channel has caught up, at the rate at which the backlog shrinks; 0: nothing is left. Absent: it does not shrink, or is not known.",
        |seen, to| to.known(seen.snapshot.forecast.seconds()),
    ),
    define(
        "heddle_source_lost",
        Unit::Seconds,
        Gauge,
        "Time since the source was lost; 0: it can be reached.",
        |seen, to| {
            let lost = seen.snapshot.trouble.source_lost.as_ref().map(|outage| outage.time.as_secs_f64());
            to.known(lost.or_else(|| received(seen).map(|_| 0.0)));
        },
    ),
    define(
        "heddle_target_lost",
        Unit::Seconds,
        Gauge,
        "Time since the target was lost; 0: it can be reached.",
        |seen, to| {
            to.number(seen.snapshot.trouble.target.lost.as_ref().map_or(0.0, |outage| outage.time.as_secs_f64()));
        },
    ),
    define("heddle_paused", Unit::None, Gauge, "1: an operator has paused the channel.", |seen, to| {
        to.number(f64::from(u8::from(seen.snapshot.trouble.paused)));
    }),
    define(
        "heddle_standby",
        Unit::None,
        Gauge,
        "1: another process has the channel, and this one waits for it. 0: this one has it.",
        |seen, to| to.number(f64::from(u8::from(seen.snapshot.trouble.standby.is_some()))),
    ),
    define(
        "heddle_standby_behind",
        Unit::Bytes,
        Gauge,
        "Of a process that waits: bytes of the source's log that it has not received, as the source said in the last ten seconds. Absent: it has the channel, or it is not known.",
        |seen, to| {
            let waits = seen.snapshot.trouble.standby.is_some();
            let behind = received(seen).filter(|_| waits).and_then(|received| received.unreceived_bytes);
            to.known(behind.map(|bytes| bytes as f64));
        },
    ),
    define("heddle_received", Unit::Bytes, Counter, "Bytes of events received from the source.", |seen, to| {
        to.known(received(seen).map(|received| received.amount.bytes as f64));
    }),
    define(
        "heddle_received_transactions",
        Unit::None,
        Counter,
        "Transactions received from the source; 0: its log does not say where they begin.",
        |seen, to| to.known(received(seen).map(|received| received.amount.transactions as f64)),
    ),
    define(
        "heddle_received_timestamp",
        Unit::Seconds,
        Gauge,
        "When the source wrote the last received event, seconds since 1970.",
        |seen, to| {
            let time = received(seen).map(|received| received.amount.time_s).filter(|time| *time > 0);
            to.known(time.map(f64::from));
        },
    ),
    define(
        "heddle_durable_timestamp",
        Unit::Seconds,
        Gauge,
        "The same of the last event that is durable in the relay log.",
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
            "Age of the oldest event that has not passed the stage, by the source's clock: received, durable, scheduled, applied, committed. Absent: not known.",
            |seen, to| each_stage(seen, to, |stage| stage.lag_s),
        ),
    ),
    by(
        &["stage"],
        define(
            "heddle_stage_behind_transactions",
            Unit::None,
            Gauge,
            "Received transactions that have not passed the stage; those of an earlier run are estimated by bytes.",
            |seen, to| each_stage(seen, to, |stage| stage.transactions.map(|count| count as f64)),
        ),
    ),
    by(
        &["stage"],
        define(
            "heddle_stage_behind",
            Unit::Bytes,
            Gauge,
            "Received bytes that have not passed the stage (approximate).",
            |seen, to| each_stage(seen, to, |stage| stage.bytes.map(|bytes| bytes as f64)),
        ),
    ),
    define("heddle_relay_log", Unit::Bytes, Gauge, "Size of the relay log on the disk.", |seen, to| {
        to.known(received(seen).map(|received| received.relay_bytes as f64));
    }),
    define(
        "heddle_relay_log_full",
        Unit::None,
        Gauge,
        "1: the relay log is full, and nothing is received.",
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
        "When the source committed the last read transaction, seconds since 1970.",
        |seen, to| to.known(timestamp(seen.snapshot.read.commit_time_us)),
    ),
    define(
        "heddle_committed_timestamp",
        Unit::Seconds,
        Gauge,
        "When the source committed the transaction at the low water, seconds since 1970.",
        |seen, to| to.known(timestamp(seen.snapshot.committed.commit_time_us)),
    ),
    define(
        "heddle_behind_transactions",
        Unit::None,
        Gauge,
        "Read transactions above the low water: waiting, under way, or committed ahead.",
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
    define("heddle_memory", Unit::Bytes, Gauge, "Memory of transactions under way.", |seen, to| {
        to.number(seen.snapshot.memory.used_bytes as f64);
    }),
    define("heddle_memory_max", Unit::Bytes, Gauge, "Limit of that memory (--memory).", |seen, to| {
        to.number(seen.snapshot.memory.max_bytes as f64);
    }),
    define("heddle_memory_wait", Unit::Seconds, Counter, "Time that reading waited for memory.", |seen, to| {
        to.number(seen.snapshot.workers.waits.for_memory.as_secs_f64());
    }),
    define(
        "heddle_transactions",
        Unit::None,
        Counter,
        "The source's transactions that are committed on the target.",
        |seen, to| to.number(seen.snapshot.scheduled.counters.transactions as f64),
    ),
    define(
        "heddle_unsafe_transactions",
        Unit::None,
        Counter,
        "Transactions with a statement whose result may differ on the target (--unsafe-statements).",
        |seen, to| to.number(seen.snapshot.read.unsafe_transactions as f64),
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
        "Source transactions in each committed group.",
        |seen, to| to.histogram([], &seen.snapshot.workers.totals.group_transactions, 1.0),
    ),
    define(
        "heddle_group",
        Unit::Seconds,
        Kind::Histogram,
        "Time of each group from dispatch to durable commit.",
        |seen, to| to.histogram([], &seen.snapshot.workers.totals.group_micros, 1e-6),
    ),
    define(
        "heddle_commit",
        Unit::Seconds,
        Kind::Histogram,
        "Time of each durable commit on the target, with the rows that are sent along.",
        |seen, to| to.histogram([], &seen.snapshot.workers.totals.commit_micros, 1e-6),
    ),
    by(
        &["worker"],
        define(
            "heddle_worker_busy",
            Unit::Seconds,
            Counter,
            "Time with a group, waiting for the turn to commit included.",
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
            "Time without a group, by cause as in heddle_workers_idle_seconds_total, barriers together.",
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
            "1: the worker waits now for its turn to commit, or for rows of earlier groups.",
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
            "Age of the worker's group; absent: it has none.",
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
        "Jain's index of the workers' busy time since the start: 1: even; 1 / workers: one did everything.",
        |seen, to| to.known(jain_index(seen.snapshot.workers.each.iter().map(|worker| worker.done.busy.as_secs_f64()))),
    ),
    by(
        &["cause"],
        define(
            "heddle_workers_idle",
            Unit::Seconds,
            Counter,
            "Time of all workers without a group, by cause: nothing_queued, dependency, gathering, barrier_CAUSE, stopping.",
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
        "Time that workers waited for their turn to commit; part of their busy time.",
        |seen, to| to.number(seen.snapshot.workers.waits.to_commit.as_secs_f64()),
    ),
    define(
        "heddle_row_wait",
        Unit::Seconds,
        Counter,
        "The part of it with rows that earlier groups change.",
        |seen, to| to.number(seen.snapshot.workers.waits.for_rows.as_secs_f64()),
    ),
    by(
        &["cause"],
        define("heddle_barriers", Unit::None, Counter, "Transactions that ran alone, by cause.", |seen, to| {
            for (cause, count) in &seen.snapshot.workers.totals.barriers {
                to.labelled([cause.as_str().to_owned()], *count as f64);
            }
        }),
    ),
    define("heddle_retries", Unit::None, Counter, "Groups that failed and were tried again.", |seen, to| {
        to.number(seen.snapshot.scheduled.counters.retries as f64);
    }),
    define(
        "heddle_aborts",
        Unit::None,
        Counter,
        "Groups that rolled back because they held a lock that an earlier group needed.",
        |seen, to| to.number(seen.snapshot.scheduled.counters.aborts as f64),
    ),
    define(
        "heddle_isolations",
        Unit::None,
        Counter,
        "Groups that failed together and were applied one transaction at a time.",
        |seen, to| to.number(seen.snapshot.scheduled.counters.isolations as f64),
    ),
    define("heddle_lock_waits", Unit::None, Counter, "Lock waits between two groups on the target.", |seen, to| {
        to.number(seen.snapshot.workers.totals.lock_waits as f64);
    }),
    define(
        "heddle_lock_holders",
        Unit::None,
        Gauge,
        "Other sessions on the target that hold locks which workers wait for now.",
        |seen, to| {
            to.number(seen.snapshot.trouble.target.holders.iter().filter(|holder| !holder.is_own).count() as f64);
        },
    ),
    define(
        "heddle_retrying",
        Unit::Seconds,
        Gauge,
        "Time for which the target has refused a group that is tried again; 0: none.",
        |seen, to| {
            let retried = seen.snapshot.trouble.target.retried.as_ref();
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
        "Transactions that ran before possible conflicts had committed.",
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
        "AMIL of tags by keys since the start: MySQL's WRITESET with its default history. Absent: nothing was read.",
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
        "Share of the last seconds' transactions that wait for an earlier one by the policy.",
        |seen, to| to.number(seen.snapshot.read.placed.waiting_share),
    ),
    define("heddle_process_cpu", Unit::Seconds, Counter, "Processor time of this process.", |seen, to| {
        to.number(seen.usage.cpu.as_secs_f64());
    }),
    define("heddle_process_memory_max", Unit::Bytes, Gauge, "Most resident memory of this process.", |seen, to| {
        to.number(seen.usage.memory_bytes_max as f64);
    }),
];
