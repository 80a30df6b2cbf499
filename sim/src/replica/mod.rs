//! Replicas of several kinds applying one and the same stream in virtual time.
//!
//! What is modelled: who may start when (each replica's own rule), a limited number of workers and of processors, time
//! to apply, to read what is not cached, to commit, and syncs that commits share. What is not: lock waits within the
//! engine other than by row, purge, page flushing, the network, readers. [`Model::ASSUMPTIONS`] says it to the user.
//! Everything is a function of its arguments: the same trace and costs give the same numbers.
//!
//! Each transaction is taken in the order of the stream, and all that it has to wait for comes before it: so one pass
//! computes its times.

mod commit;
mod heddle;
mod knee;
mod mariadb;
mod mysql;
mod policy;
mod resources;
mod rounds;

use engine::policy::{ALL, DEFAULT, PolicySpec};

/// One of the engine's.
pub type Policy = &'static PolicySpec;
pub use knee::{Knee, knee};
pub use policy::fits;

use crate::replica::resources::{Cores, Pool};

/// One transaction of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Applied {
    pub rows: u32,
    /// What it took on the source, where the log says it (DDL, statements), in microseconds; else 0.
    pub source_us: f32,
    /// Numbers of the last transactions that it has to follow, from 1; 0 for none: by the source's tags, by
    /// WRITESET, by WRITESET_SESSION.
    pub source_parent: u32,
    pub writeset_parent: u32,
    pub session_parent: u32,
    /// MariaDB: group commits are numbered in the order of the stream.
    pub group: u32,
    pub domain: u32,
    /// MariaDB's optimistic modes do not run it ahead: DDL, not transactional.
    pub alone: bool,
    /// MariaDB's mode `optimistic` does not run it ahead: it waited on the source, or is not to be.
    pub held: bool,
    /// Nothing may run beside it by exact dependencies.
    pub barrier: bool,
    /// Which schemas it touches: bit n modulo 64; of more schemas some count as one.
    pub schemas: u64,
    /// Exact predecessors: places in [`Trace::follows`].
    pub first_follow: u32,
    pub end_follow: u32,
}

/// A stream of transactions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub transactions: Vec<Applied>,
    /// Numbers of transactions, from 1.
    pub follows: Vec<u32>,
    /// The source has tags of its own (MySQL 5.7 and later).
    pub has_tags: bool,
    /// It is MariaDB's.
    pub has_groups: bool,
}

impl Trace {
    /// Exact predecessors of a transaction, by number from 1.
    pub fn follows(&self, applied: &Applied) -> &[u32] {
        self.follows.get(applied.first_follow as usize..applied.end_follow as usize).unwrap_or_default()
    }
}

/// What things take on the replica, in microseconds. Its fields are what `heddle simulate --json` and `--costs` name.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Costs {
    /// Processor time of a transaction without rows: begin, bookkeeping, commit.
    pub transaction_us: f64,
    /// Processor time of a row.
    pub row_us: f64,
    /// Processor time that the thread which hands out work needs for a transaction.
    pub dispatch_us: f64,
    /// The part of a commit that is done one after the other.
    pub commit_us: f64,
    /// A durable commit's sync of the engine's log; 0: not durable.
    pub sync_us: f64,
    /// The sync of the binary log that comes after it; 0: there is none.
    pub log_sync_us: f64,
    /// Share of rows whose page is not cached.
    pub miss_share: f64,
    /// Reading such a page.
    pub miss_us: f64,
    /// Processors of the replica.
    pub cores: usize,
    /// Heddle: processor time of a target transaction of many, of each transaction and row in it, and of a row that was merged into another.
    pub group_us: f64,
    pub group_transaction_us: f64,
    pub group_row_us: f64,
    pub merged_row_us: f64,
    /// Heddle: what a transaction that is applied by itself costs more than by the server's own applier: statements, the row
    /// of progress, Heddle's own work.
    pub heddle_us: f64,
    /// Heddle: the same where it commits in any order.
    pub relaxed_us: f64,
    /// Heddle with several workers: from one commit's answer until the next one in order is sent.
    pub turn_us: f64,
    /// Heddle with grouping: what one thread does for all workers, as a share of what a worker does.
    pub feed_share: f64,
    /// Heddle: from statements to their answer, beside what the server does.
    pub round_trip_us: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            transaction_us: 90.0,
            row_us: 25.0,
            dispatch_us: 12.0,
            commit_us: 6.0,
            sync_us: 400.0,
            log_sync_us: 400.0,
            miss_share: 0.0,
            miss_us: 100.0,
            cores: 4,
            group_us: 400.0,
            group_transaction_us: 6.0,
            group_row_us: 14.0,
            merged_row_us: 1.5,
            heddle_us: 200.0,
            relaxed_us: 250.0,
            turn_us: 100.0,
            feed_share: 0.3,
            round_trip_us: 50.0,
        }
    }
}

/// Many rows share an event.
const DISPATCHED_ROWS_MAX: u32 = 100;

impl Costs {
    /// Both syncs of one commit.
    pub fn syncs_us(&self) -> f64 {
        self.sync_us + self.log_sync_us
    }

    /// Processor time and waiting time of a transaction's execution.
    fn execution(&self, applied: &Applied) -> (f64, f64) {
        let rows = f64::from(applied.rows);
        let processor = (self.transaction_us + self.row_us * rows).max(f64::from(applied.source_us));
        (processor, rows * self.miss_share * self.miss_us)
    }

    /// Processor time of the thread that hands a transaction out. It looks at each event: a row mostly has two, and a transaction four of its own.
    fn dispatching(&self, applied: &Applied) -> f64 {
        self.dispatch_us * (1.0 + f64::from(applied.rows.min(DISPATCHED_ROWS_MAX)) / 2.0) / 1.5
    }
}

/// Whose tags say what may run in parallel under `LOGICAL_CLOCK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tags {
    Source,
    Writeset,
    WritesetSession,
}

/// `slave_parallel_mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Minimal,
    Conservative,
    Optimistic,
    Aggressive,
}

/// A kind of replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// One after the other.
    Serial,
    /// MySQL's workers by schema; commits in any order.
    Database,
    /// MySQL's coordinator with intervals.
    LogicalClock {
        tags: Tags,
        ordered: bool,
    },
    MariaDb {
        mode: Mode,
    },
    Heddle {
        policy: Policy,
        grouping: bool,
        ordered: bool,
    },
}

impl Model {
    /// All, in the order in which they are shown.
    pub fn all() -> Vec<Model> {
        let mut all = vec![Self::Serial, Self::Database];
        for tags in [Tags::Source, Tags::Writeset, Tags::WritesetSession] {
            all.extend([true, false].map(|ordered| Self::LogicalClock { tags, ordered }));
        }
        let modes = [Mode::Minimal, Mode::Conservative, Mode::Optimistic, Mode::Aggressive];
        all.extend(modes.map(|mode| Self::MariaDb { mode }));
        for policy in ALL.iter() {
            all.push(Self::Heddle { policy, grouping: false, ordered: true });
            if !policy.speculates() {
                all.push(Self::Heddle { policy, grouping: false, ordered: false });
            }
            all.push(Self::Heddle { policy, grouping: true, ordered: true });
        }
        all
    }

    /// Those that people choose among.
    pub fn is_usual(self) -> bool {
        match self {
            Self::Heddle { policy, .. } => policy == DEFAULT,
            Self::MariaDb { mode } => mode != Mode::Minimal,
            Self::LogicalClock { tags, ordered } => tags != Tags::WritesetSession || ordered,
            Self::Serial | Self::Database => true,
        }
    }

    /// As in `--policy`: stable.
    pub fn name(self) -> String {
        match self {
            Self::Serial => "serial".to_owned(),
            Self::Database => "mysql-database".to_owned(),
            Self::LogicalClock { tags, ordered } => {
                let tags = match tags {
                    Tags::Source => "logical-clock",
                    Tags::Writeset => "writeset",
                    Tags::WritesetSession => "writeset-session",
                };
                format!("mysql-{tags}{}", if ordered { "" } else { "-unordered" })
            }
            Self::MariaDb { mode: Mode::Minimal } => "mariadb-minimal".to_owned(),
            Self::MariaDb { mode: Mode::Conservative } => "mariadb-conservative".to_owned(),
            Self::MariaDb { mode: Mode::Optimistic } => "mariadb-optimistic".to_owned(),
            Self::MariaDb { mode: Mode::Aggressive } => "mariadb-aggressive".to_owned(),
            Self::Heddle { policy, grouping, ordered } => {
                // The default policy goes without saying.
                let policy = if policy == DEFAULT { "" } else { policy.name };
                let parts =
                    ["heddle", policy, if grouping { "grouping" } else { "" }, if ordered { "" } else { "unordered" }];
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
            }
        }
    }

    pub fn by_name(name: &str) -> Option<Model> {
        Self::all().into_iter().find(|model| model.name() == name)
    }

    /// What the numbers rest on.
    pub const ASSUMPTIONS: &'static [&'static str] = &[
        "the replica is far behind: work is always there, and reading it from the source does not limit",
        "a row costs the same whatever its size, table and indexes; a statement or DDL what it took on the source",
        "processors are given out first come, first served; waiting for a sync or a page takes none",
        "workers of a server fall into step: they execute together, then share the syncs of one group commit",
        "MySQL: the coordinator itself waits for last_committed and for an idle worker; commit order does not \
         slow it down",
        "MariaDB: a transaction that meets an earlier one's row waits for that commit, and half of its work is done again",
        "Heddle in the source's order: commits come one after the other, each with syncs of its own",
        "Heddle with grouping: groups of up to 10,000 transactions or 40,000 rows, in which changes of the same row are merged; \
         rows that an uncommitted earlier group touches are applied after its commit (policy writeset)",
    ];

    /// Runs the stream on a replica with so many workers.
    pub fn run(self, trace: &Trace, costs: &Costs, workers: usize) -> Outcome {
        let workers = workers.max(1);
        match self {
            Self::Serial => mysql::serial(trace, costs),
            Self::Database => mysql::database(trace, costs, workers),
            Self::LogicalClock { tags, .. } => mysql::logical_clock(trace, costs, workers, tags),
            Self::MariaDb { mode } => mariadb::run(trace, costs, workers, mode),
            Self::Heddle { policy, grouping: false, ordered } => heddle::single(trace, costs, workers, policy, ordered),
            Self::Heddle { policy, grouping: true, ordered } => heddle::grouped(trace, costs, workers, policy, ordered),
        }
    }
}

/// What workers spent their time with, all together, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// Without work: what could have come was held back by what it has to follow.
    pub dependency_us: f64,
    /// Until all before had committed.
    pub order_us: f64,
    /// For syncs and the serial part of commits.
    pub commit_us: f64,
    /// For a processor, or for pages.
    pub machine_us: f64,
    /// Executing.
    pub work_us: f64,
}

/// How a run went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub workers: usize,
    pub transactions: u64,
    pub seconds: f64,
    /// Busy time of each worker ÷ the whole time.
    pub utilisation: f64,
    /// Of the processors.
    pub processors: f64,
    /// Transactions by worker.
    pub shares: Vec<u64>,
    pub waits: Waits,
    /// MariaDB: transactions that met an earlier one's row.
    pub conflicts: u64,
}

impl Outcome {
    pub fn transactions_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.transactions as f64 / self.seconds } else { 0.0 }
    }

    fn new(pool: &Pool, cores: &Cores, trace: &Trace, end_us: f64, waits: Waits) -> Self {
        let workers = pool.len();
        let busy: f64 = pool.busy_us();
        let whole = end_us * workers as f64;
        let mut waits = waits;
        waits.dependency_us = (whole - busy).max(0.0);
        Self {
            workers,
            transactions: trace.transactions.len() as u64,
            seconds: end_us / 1e6,
            utilisation: if whole > 0.0 { (busy / whole).min(1.0) } else { 0.0 },
            processors: cores.utilisation(end_us),
            shares: pool.shares().to_vec(),
            waits,
            conflicts: 0,
        }
    }
}

#[cfg(test)]
mod tests;
