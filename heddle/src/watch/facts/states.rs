//! What a replication thread does, from the state that the server shows. Pure: text in, one word out.

use serde::{Serialize, Serializer};

use crate::watch::facts::period::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doing {
    /// It has nothing to do: all that was received is handed out, or no transaction is handed to it.
    NoWork,
    /// The transaction that comes next has to wait until an earlier one has committed.
    Dependency,
    /// Every worker has a transaction.
    WorkersBusy,
    /// Nothing may run beside the transaction that comes next, or that is running.
    Barrier,
    /// A worker's queue, or the memory for all queues, is full.
    QueueFull,
    /// It has applied a transaction and waits for its turn to commit.
    CommitOrder,
    /// It commits: syncs of the logs.
    Commit,
    /// A lock of a table, of the schema, or of a backup.
    Lock,
    /// On purpose: SQL_DELAY.
    Delay,
    /// The receiver waits for the source.
    Source,
    /// The coordinator reads and hands out.
    Read,
    /// It applies.
    Apply,
}

impl Doing {
    /// In JSON and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoWork => "no_work",
            Self::Dependency => "dependency",
            Self::WorkersBusy => "workers_busy",
            Self::Barrier => "barrier",
            Self::QueueFull => "queue_full",
            Self::CommitOrder => "commit_order",
            Self::Commit => "commit",
            Self::Lock => "lock",
            Self::Delay => "delay",
            Self::Source => "source",
            Self::Read => "read",
            Self::Apply => "apply",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::NoWork => "no work",
            Self::Dependency => "waits for a transaction that the next one depends on",
            Self::WorkersBusy => "waits for a worker, all are busy",
            Self::Barrier => "waits for a transaction that runs alone",
            Self::QueueFull => "waits for room in a queue",
            Self::CommitOrder => "waits for its turn to commit",
            Self::Commit => "commits",
            Self::Lock => "waits for a lock",
            Self::Delay => "waits on purpose (SQL_DELAY)",
            Self::Source => "waits for the source",
            Self::Read => "reads the relay log",
            Self::Apply => "applies",
        }
    }
}

impl Serialize for Doing {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// Parts of states in lower case and in today's words (`replica`, `source`), the first that fits.
const KNOWN: &[(&str, Doing)] = &[
    ("has read all relay log", Doing::NoWork),
    ("waiting for an event from coordinator", Doing::NoWork),
    ("waiting for work from sql thread", Doing::NoWork),
    ("waiting for dependent transaction to commit", Doing::Dependency),
    ("to start commit", Doing::Dependency),
    ("to release partition", Doing::Dependency),
    ("worker thread pool is busy", Doing::WorkersBusy),
    ("workers to process their queue", Doing::Barrier),
    ("waiting for preceding transaction to commit", Doing::CommitOrder),
    ("waiting for prior transaction to commit", Doing::CommitOrder),
    ("waiting for its turn to commit", Doing::CommitOrder),
    ("waiting for replica worker queue", Doing::QueueFull),
    ("waiting for room in worker thread event queue", Doing::QueueFull),
    ("to free pending events", Doing::QueueFull),
    ("seconds after source executed event", Doing::Delay),
    ("source_delay seconds", Doing::Delay),
    ("waiting for source to send event", Doing::Source),
    ("metadata lock", Doing::Lock),
    ("level lock", Doing::Lock),
    ("read lock", Doing::Lock),
    ("backup lock", Doing::Lock),
    ("commit lock", Doing::Lock),
    ("waiting for handler commit", Doing::Commit),
    ("semi-sync ack", Doing::Commit),
    ("starting commit", Doing::Commit),
];

pub fn doing(role: Role, state: &str) -> Doing {
    let state = state.to_ascii_lowercase().replace("slave", "replica").replace("master", "source");
    if let Some((_, doing)) = KNOWN.iter().find(|(part, _)| state.contains(part)) {
        return *doing;
    }
    match (role, state.as_str()) {
        (Role::Worker, "commit" | "committing" | "query end") => Doing::Commit,
        (Role::Coordinator, state) if state.starts_with("reading event from") => Doing::Read,
        _ => Doing::Apply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_all_versions() {
        use Role::{Coordinator, Receiver, Worker};
        for (role, state, expected) in [
            (Coordinator, "Slave has read all relay log; waiting for more updates", Doing::NoWork),
            (Coordinator, "Replica has read all relay log; waiting for more updates", Doing::NoWork),
            (Coordinator, "Waiting for dependent transaction to commit", Doing::Dependency),
            (Coordinator, "Waiting for slave workers to process their queues", Doing::Barrier),
            (Coordinator, "Waiting for replica workers to process their queues", Doing::Barrier),
            (Coordinator, "Waiting for Slave Worker queue", Doing::QueueFull),
            (Coordinator, "Waiting for Replica Workers to free pending events", Doing::QueueFull),
            (Coordinator, "Waiting for room in worker thread event queue", Doing::QueueFull),
            (Coordinator, "Reading event from the relay log", Doing::Read),
            (Coordinator, "Waiting until SOURCE_DELAY seconds after source executed event", Doing::Delay),
            (Coordinator, "Waiting until MASTER_DELAY seconds after master executed event", Doing::Delay),
            (Worker, "Waiting for an event from Coordinator", Doing::NoWork),
            (Worker, "Waiting for work from SQL thread", Doing::NoWork),
            (Worker, "Waiting for preceding transaction to commit", Doing::CommitOrder),
            (Worker, "Waiting for prior transaction to commit", Doing::CommitOrder),
            (
                Worker,
                "Waiting for prior transaction to start commit before starting next transaction",
                Doing::Dependency,
            ),
            (Worker, "waiting for handler commit", Doing::Commit),
            (Worker, "Waiting for table metadata lock", Doing::Lock),
            (Worker, "Applying batch of row changes (update)", Doing::Apply),
            (Worker, "", Doing::Apply),
            (Receiver, "Waiting for master to send event", Doing::Source),
        ] {
            assert_eq!(doing(role, state), expected, "{state}");
        }
    }
}
