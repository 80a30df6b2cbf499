//! Every metric of a mirror and of the replicas that are attached to it: name, unit, kind, meaning, and where the snapshot has it. A line of docs/metrics.md for each.

use serve::retag::Parallelism;
use serve::status::{LinkState, ReplicaStatus, RetagStatus};

use super::Kind::{Counter, Gauge};
use super::{Definition, Kind, MirrorReading, ReadMirror, Samples, Unit, by, define};

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
        "1: the source sends its log; 0: not connected.",
        |seen, to| to.number(f64::from(u8::from(seen.snapshot.source.state == LinkState::Connected))),
    ),
    define(
        "heddle_mirror_source_lost",
        Unit::Seconds,
        Gauge,
        "Time since the source was lost; 0: it can be reached.",
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
        "Age of the last received event, by the source's clock; 0: the mirror has everything. Absent: the end of the source's log is not known.",
        |seen, to| to.known(seen.snapshot.lag.and_then(|lag| lag.seconds)),
    ),
    define(
        "heddle_mirror_behind",
        Unit::Bytes,
        Gauge,
        "From the durable end of the mirror to the end of the source's log. Absent: not known.",
        |seen, to| to.known(seen.snapshot.lag.and_then(|lag| lag.bytes).map(|bytes| bytes as f64)),
    ),
    define("heddle_mirror_received", Unit::Bytes, Counter, "Bytes of new events.", |seen, to| {
        to.number(seen.snapshot.mirror.received.bytes as f64);
    }),
    define(
        "heddle_mirror_last_event_timestamp",
        Unit::Seconds,
        Gauge,
        "When the source wrote the last received event, seconds since 1970.",
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
        "Size of the mirror on the disk, former sources included.",
        |seen, to| to.number(seen.snapshot.mirror.disk.used_bytes as f64),
    ),
    define("heddle_mirror_disk_free", Unit::Bytes, Gauge, "Free space on the mirror's disk.", |seen, to| {
        to.known(seen.snapshot.mirror.disk.free_bytes.map(|bytes| bytes as f64));
    }),
    define(
        "heddle_mirror_standby",
        Unit::None,
        Gauge,
        "1: it stands by, and replicas attach to the other mirror; 0: replicas can attach here. Absent: without `--standby-of`.",
        |seen, to| to.known(seen.snapshot.listener.standby.as_ref().map(|standby| f64::from(u8::from(standby.waits)))),
    ),
    define(
        "heddle_mirror_connections",
        Unit::None,
        Gauge,
        "Connections of replicas and tools. Absent: without `--listen`.",
        |seen, to| to.known(seen.snapshot.listener.connections.map(|count| count as f64)),
    ),
    define("heddle_mirror_replicas", Unit::None, Gauge, "Replicas and tools that receive the log.", |seen, to| {
        to.number(seen.snapshot.replicas.len() as f64);
    }),
    each_replica(
        "heddle_replica_behind",
        Unit::Bytes,
        Gauge,
        "From the replica's sent position to the durable end of the mirror. Absent: nothing sent yet, or a former source's files.",
        |seen, to| replicas(seen, to, |replica| replica.behind.bytes.map(|bytes| bytes as f64)),
    ),
    each_replica(
        "heddle_replica_lag",
        Unit::Seconds,
        Gauge,
        "Age of the last event sent to the replica, by the source's clock; 0: everything is sent. Says nothing of what it has applied.",
        |seen, to| replicas(seen, to, |replica| replica.behind.seconds),
    ),
    each_replica("heddle_replica_attached", Unit::Seconds, Gauge, "Time since the replica attached.", |seen, to| {
        replicas(seen, to, |replica| Some(replica.seconds));
    }),
    each_replica(
        "heddle_replica_groups",
        Unit::None,
        Counter,
        "Groups sent to the replica since it attached. Absent: without groups (`--group`).",
        |seen, to| replicas(seen, to, |replica| replica.groups.map(|sent| sent.groups as f64)),
    ),
    each_replica(
        "heddle_replica_grouped_transactions",
        Unit::None,
        Counter,
        "Transactions in these groups. Groups of one count in neither.",
        |seen, to| replicas(seen, to, |replica| replica.groups.map(|sent| sent.transactions as f64)),
    ),
    define(
        "heddle_retag_transactions",
        Unit::None,
        Counter,
        "Transactions with new tags since the process began. Absent, as the next ones, without `--retag`.",
        |seen, to| retagged(seen, to, |retag| Some(retag.transactions as f64)),
    ),
    define("heddle_retag_changed", Unit::None, Counter, "Those whose tag differs from the source's.", |seen, to| {
        retagged(seen, to, |retag| Some(retag.changed as f64));
    }),
    define(
        "heddle_retag_behind",
        Unit::Bytes,
        Gauge,
        "From the end of the new tags, up to which replicas can have the log, to the durable end of the mirror.",
        |seen, to| retagged(seen, to, |retag| retag.behind_bytes.map(|bytes| bytes as f64)),
    ),
    by(
        &["tags"],
        define(
            "heddle_retag_group_size",
            Unit::None,
            Gauge,
            "Parallelism by the source's tags and by the new ones: pseudo group size (MySQL), transactions with the same commit id (MariaDB).",
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
            "What transactions wait for by their new tags; causes as in `heddle retag --explain`.",
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
    define("heddle_mirror_memory_max", Unit::Bytes, Gauge, "Most resident memory of this process.", |seen, to| {
        to.number(seen.usage.memory_bytes_max as f64);
    }),
];

fn retagged(seen: &MirrorReading<'_>, to: &mut Samples, value: impl Fn(&RetagStatus) -> Option<f64>) {
    to.known(seen.snapshot.mirror.retag.as_ref().and_then(value));
}

/// A sample for each replica that has the value.
fn replicas(seen: &MirrorReading<'_>, to: &mut Samples, value: impl Fn(&ReplicaStatus) -> Option<f64>) {
    for replica in &seen.snapshot.replicas {
        if let Some(value) = value(replica) {
            to.labelled([replica.server_id.to_string(), replica.account.clone(), replica.address.clone()], value);
        }
    }
}
