//! Every metric of a mirror and of the replicas that are attached to it: name, unit, kind, meaning, and where the snapshot has it. A line of docs/metrics.md for each.

use serve::retag::Parallelism;
use serve::seen::{LinkState, ReplicaSeen, RetagSeen};

use super::Kind::{Counter, Gauge};
use super::{Definition, Kind, MirrorSeen, ReadMirror, Samples, Unit, by, define};

const fn each_replica(
    name: &'static str,
    unit: Unit,
    kind: Kind,
    help: &'static str,
    read: ReadMirror,
) -> Definition<ReadMirror> {
    by(&["server_id", "account", "address"], define(name, unit, kind, help, read))
}

/// In the order of the page: the source, the mirror, the disk, replicas, this process.
pub const ALL: &[Definition<ReadMirror>] = &[
    define(
        "heddle_mirror_connected",
        Unit::None,
        Gauge,
        "1: the source sends its log; 0: it cannot be reached, or is not connected yet.",
        |seen, to| to.number(f64::from(u8::from(seen.snapshot.source.state == LinkState::Connected))),
    ),
    define(
        "heddle_mirror_source_lost",
        Unit::Seconds,
        Gauge,
        "For so long the source cannot be reached; 0: it can.",
        |seen, to| {
            let source = &seen.snapshot.source;
            let lost = (source.state == LinkState::Reconnecting).then_some(source.seconds).flatten();
            to.number(lost.unwrap_or_default());
        },
    ),
    define(
        "heddle_mirror_lag",
        Unit::Seconds,
        Gauge,
        "Age of the last event that came, by the source's clock; 0: the mirror has all. Absent: the source does not say where its log ends.",
        |seen, to| to.known(seen.snapshot.lag.and_then(|lag| lag.seconds)),
    ),
    define(
        "heddle_mirror_behind",
        Unit::Bytes,
        Gauge,
        "From the durable end of the mirror to the end of the source's log. Absent: the source does not say where its log ends.",
        |seen, to| to.known(seen.snapshot.lag.and_then(|lag| lag.bytes).map(|bytes| bytes as f64)),
    ),
    define("heddle_mirror_received", Unit::Bytes, Counter, "Events that came and were not there yet.", |seen, to| {
        to.number(seen.snapshot.mirror.received.bytes as f64);
    }),
    define(
        "heddle_mirror_last_event_timestamp",
        Unit::Seconds,
        Gauge,
        "When the source wrote the last event that came, seconds since 1970.",
        |seen, to| to.known(seen.snapshot.mirror.received.last_event_timestamp.map(f64::from)),
    ),
    define(
        "heddle_mirror_sync",
        Unit::Seconds,
        Kind::Histogram,
        "Time of each sync of the mirror to the disk.",
        |seen, to| to.histogram([], &seen.snapshot.mirror.syncs, 1e-6),
    ),
    define("heddle_mirror_files", Unit::None, Gauge, "Log files of the present source.", |seen, to| {
        to.number(seen.snapshot.mirror.files as f64);
    }),
    define(
        "heddle_mirror_disk_used",
        Unit::Bytes,
        Gauge,
        "What the mirror takes on the disk, files of former sources included.",
        |seen, to| to.number(seen.snapshot.mirror.disk.used_bytes as f64),
    ),
    define("heddle_mirror_disk_free", Unit::Bytes, Gauge, "What is free on the mirror's disk.", |seen, to| {
        to.known(seen.snapshot.mirror.disk.free_bytes.map(|bytes| bytes as f64));
    }),
    define(
        "heddle_mirror_connections",
        Unit::None,
        Gauge,
        "Connections of replicas and tools. Absent: without `--listen`.",
        |seen, to| to.known(seen.snapshot.connections.map(|count| count as f64)),
    ),
    define(
        "heddle_mirror_replicas",
        Unit::None,
        Gauge,
        "Replicas and tools that are being sent the log.",
        |seen, to| {
            to.number(seen.snapshot.replicas.len() as f64);
        },
    ),
    each_replica(
        "heddle_replica_behind",
        Unit::Bytes,
        Gauge,
        "From what was sent to the replica to the durable end of the mirror. Absent: nothing was sent yet, or it is sent a former source's files.",
        |seen, to| replicas(seen, to, |replica| replica.behind.bytes.map(|bytes| bytes as f64)),
    ),
    each_replica(
        "heddle_replica_lag",
        Unit::Seconds,
        Gauge,
        "Age of the last event that was sent to the replica, by the source's clock; 0: it was sent all. What the replica has not applied yet is not in it.",
        |seen, to| replicas(seen, to, |replica| replica.behind.seconds),
    ),
    each_replica(
        "heddle_replica_attached",
        Unit::Seconds,
        Gauge,
        "For so long the replica is attached.",
        |seen, to| replicas(seen, to, |replica| Some(replica.seconds)),
    ),
    each_replica(
        "heddle_replica_groups",
        Unit::None,
        Counter,
        "Groups of transactions that the replica was sent since it attached. Absent: it is sent none (`--group`).",
        |seen, to| replicas(seen, to, |replica| replica.groups.map(|sent| sent.groups as f64)),
    ),
    each_replica(
        "heddle_replica_grouped_transactions",
        Unit::None,
        Counter,
        "Transactions in these groups. What it is sent in groups of one, caught up, is in neither.",
        |seen, to| replicas(seen, to, |replica| replica.groups.map(|sent| sent.transactions as f64)),
    ),
    define(
        "heddle_retag_transactions",
        Unit::None,
        Counter,
        "Transactions whose tags were made anew, since this process began. Absent, as all of these: without `--retag`.",
        |seen, to| retagged(seen, to, |retag| Some(retag.transactions as f64)),
    ),
    define(
        "heddle_retag_changed",
        Unit::None,
        Counter,
        "Those whose tag is another one than the source's.",
        |seen, to| retagged(seen, to, |retag| Some(retag.changed as f64)),
    ),
    define(
        "heddle_retag_behind",
        Unit::Bytes,
        Gauge,
        "From where tags are made, which is where replicas can have the log, to the durable end of the mirror.",
        |seen, to| retagged(seen, to, |retag| retag.behind_bytes.map(|bytes| bytes as f64)),
    ),
    by(
        &["tags"],
        define(
            "heddle_retag_group_size",
            Unit::None,
            Gauge,
            "How many transactions may run side by side, by the source's tags and by the new ones: the pseudo group size (MySQL), transactions with the same commit id (MariaDB).",
            |seen, to| {
                let Some(retag) = &seen.snapshot.mirror.retag else { return };
                for (tags, parallelism) in [("source", retag.source), ("new", retag.retagged)] {
                    match parallelism {
                        Some(
                            Parallelism::MySql { pseudo_group_size: size, .. }
                            | Parallelism::MariaDb { group_size: size },
                        ) => to.labelled([tags.to_owned()], size),
                        None => {}
                    }
                }
            },
        ),
    ),
    by(
        &["cause"],
        define(
            "heddle_retag_waits",
            Unit::None,
            Counter,
            "What transactions wait for, by their new tags; the causes are those of `heddle retag --explain`.",
            |seen, to| {
                let waits = seen.snapshot.mirror.retag.iter().flat_map(|retag| &retag.waits_for);
                waits.for_each(|(cause, count)| to.labelled([cause.clone()], *count as f64));
            },
        ),
    ),
    define(
        "heddle_mirror_cpu",
        Unit::Seconds,
        Counter,
        "Processor time of this process, in user mode and in the kernel.",
        |seen, to| to.number(seen.usage.cpu.as_secs_f64()),
    ),
    define(
        "heddle_mirror_memory_max",
        Unit::Bytes,
        Gauge,
        "The most memory of this process that was resident at once.",
        |seen, to| to.number(seen.usage.memory_bytes_max as f64),
    ),
];

fn retagged(seen: &MirrorSeen<'_>, to: &mut Samples, value: impl Fn(&RetagSeen) -> Option<f64>) {
    to.known(seen.snapshot.mirror.retag.as_ref().and_then(value));
}

/// A sample for each replica that has the value.
fn replicas(seen: &MirrorSeen<'_>, to: &mut Samples, value: impl Fn(&ReplicaSeen) -> Option<f64>) {
    for replica in &seen.snapshot.replicas {
        if let Some(value) = value(replica) {
            to.labelled([replica.server_id.to_string(), replica.account.clone(), replica.address.clone()], value);
        }
    }
}
