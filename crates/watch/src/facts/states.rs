//! What a replication thread does, from the state that the server shows. Pure: text in, one word out.

use serde::{Serialize, Serializer};

use crate::facts::period::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
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

impl Activity {
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

impl Serialize for Activity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// Parts of states in lower case and in today's words (`replica`, `source`), the first that fits.
const KNOWN: &[(&str, Activity)] = &[
    ("has read all relay log", Activity::NoWork),
    ("waiting for an event from coordinator", Activity::NoWork),
    ("waiting for work from sql thread", Activity::NoWork),
    ("waiting for dependent transaction to commit", Activity::Dependency),
    ("to start commit", Activity::Dependency),
    ("to release partition", Activity::Dependency),
    ("worker thread pool is busy", Activity::WorkersBusy),
    ("workers to process their queue", Activity::Barrier),
    ("waiting for preceding transaction to commit", Activity::CommitOrder),
    ("waiting for prior transaction to commit", Activity::CommitOrder),
    ("waiting for its turn to commit", Activity::CommitOrder),
    ("waiting for replica worker queue", Activity::QueueFull),
    ("waiting for room in worker thread event queue", Activity::QueueFull),
    ("to free pending events", Activity::QueueFull),
    ("seconds after source executed event", Activity::Delay),
    ("source_delay seconds", Activity::Delay),
    ("waiting for source to send event", Activity::Source),
    ("metadata lock", Activity::Lock),
    ("level lock", Activity::Lock),
    ("read lock", Activity::Lock),
    ("backup lock", Activity::Lock),
    ("commit lock", Activity::Lock),
    ("waiting for handler commit", Activity::Commit),
    ("semi-sync ack", Activity::Commit),
    ("starting commit", Activity::Commit),
];

pub fn doing(role: Role, state: &str) -> Activity {
    let state = state.to_ascii_lowercase().replace("slave", "replica").replace("master", "source");
    if let Some((_, doing)) = KNOWN.iter().find(|(part, _)| state.contains(part)) {
        return *doing;
    }
    match (role, state.as_str()) {
        (Role::Worker, "commit" | "committing" | "query end") => Activity::Commit,
        (Role::Coordinator, state) if state.starts_with("reading event from") => Activity::Read,
        _ => Activity::Apply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_all_versions() {
        use Role::{Coordinator, Receiver, Worker};
        for (role, state, expected) in [
            (Coordinator, "Slave has read all relay log; waiting for more updates", Activity::NoWork),
            (Coordinator, "Replica has read all relay log; waiting for more updates", Activity::NoWork),
            (Coordinator, "Waiting for dependent transaction to commit", Activity::Dependency),
            (Coordinator, "Waiting for slave workers to process their queues", Activity::Barrier),
            (Coordinator, "Waiting for replica workers to process their queues", Activity::Barrier),
            (Coordinator, "Waiting for Slave Worker queue", Activity::QueueFull),
            (Coordinator, "Waiting for Replica Workers to free pending events", Activity::QueueFull),
            (Coordinator, "Waiting for room in worker thread event queue", Activity::QueueFull),
            (Coordinator, "Reading event from the relay log", Activity::Read),
            (Coordinator, "Waiting until SOURCE_DELAY seconds after source executed event", Activity::Delay),
            (Coordinator, "Waiting until MASTER_DELAY seconds after master executed event", Activity::Delay),
            (Worker, "Waiting for an event from Coordinator", Activity::NoWork),
            (Worker, "Waiting for work from SQL thread", Activity::NoWork),
            (Worker, "Waiting for preceding transaction to commit", Activity::CommitOrder),
            (Worker, "Waiting for prior transaction to commit", Activity::CommitOrder),
            (
                Worker,
                "Waiting for prior transaction to start commit before starting next transaction",
                Activity::Dependency,
            ),
            (Worker, "waiting for handler commit", Activity::Commit),
            (Worker, "Waiting for table metadata lock", Activity::Lock),
            (Worker, "Applying batch of row changes (update)", Activity::Apply),
            (Worker, "", Activity::Apply),
            (Receiver, "Waiting for master to send event", Activity::Source),
        ] {
            assert_eq!(doing(role, state), expected, "{state}");
        }
    }
}
