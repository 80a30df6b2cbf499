//! The kinds of replica, their names, and which model runs each.

use engine::policy::CommitOrder;
use engine::policy::{self, Policies, PolicySpec, SourceTags};

use super::costs::Costs;
use super::heddle::{self, Placements};
pub use super::mariadb::Mode;
pub use super::mysql::Tags;
use super::outcome::Outcome;
use super::trace::Trace;
use super::{mariadb, mysql};

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
        policy: &'static PolicySpec,
        grouping: bool,
        ordered: bool,
    },
}

impl Model {
    /// All, in the order in which they are shown, with Heddle's policies as listed.
    pub fn all(policies: Policies) -> Vec<Model> {
        let mut all = vec![Self::Serial, Self::Database];
        for tags in [Tags::Source, Tags::Writeset, Tags::WritesetSession] {
            all.extend([true, false].map(|ordered| Self::LogicalClock { tags, ordered }));
        }
        let modes = [Mode::Minimal, Mode::Conservative, Mode::Optimistic, Mode::Aggressive];
        all.extend(modes.map(|mode| Self::MariaDb { mode }));
        for policy in policies.iter() {
            all.push(Self::Heddle { policy, grouping: false, ordered: true });
            if policy.allows(CommitOrder::Relaxed) {
                all.push(Self::Heddle { policy, grouping: false, ordered: false });
            }
            all.push(Self::Heddle { policy, grouping: true, ordered: true });
        }
        all
    }

    /// Those that people choose among.
    pub fn is_usual(self) -> bool {
        match self {
            Self::Heddle { policy, .. } => policy == policy::DEFAULT,
            Self::MariaDb { mode } => mode != Mode::Minimal,
            Self::LogicalClock { tags, ordered } => tags != Tags::WritesetSession || ordered,
            Self::Serial | Self::Database => true,
        }
    }

    /// What `heddle replicate` does without options.
    pub fn is_default(self) -> bool {
        matches!(self, Self::Heddle { policy, grouping: true, ordered: true } if policy == policy::DEFAULT)
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
                let policy = if policy == policy::DEFAULT { "" } else { policy.name };
                let parts =
                    ["heddle", policy, if grouping { "grouping" } else { "" }, if ordered { "" } else { "unordered" }];
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
            }
        }
    }

    pub fn by_name(name: &str, policies: Policies) -> Option<Model> {
        Self::all(policies).into_iter().find(|model| model.name() == name)
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

    /// Whether the log has what the replica goes by.
    pub fn fits(self, trace: &Trace) -> bool {
        match self {
            Self::Serial => true,
            Self::Database => !trace.has_groups,
            Self::LogicalClock { tags: Tags::Source, .. } => trace.has_tags,
            Self::LogicalClock { .. } => !trace.has_groups,
            Self::MariaDb { .. } => trace.has_groups,
            Self::Heddle { policy, .. } => match policy.requires.source {
                SourceTags::LogicalClock => trace.has_tags,
                SourceTags::GroupCommits => trace.has_groups,
                SourceTags::Any => true,
            },
        }
    }

    /// What does not depend on costs and workers.
    pub fn prepare(self, trace: &Trace) -> PreparedReplica<'_> {
        let placements = match self {
            Self::Heddle { policy, ordered, .. } => {
                let order = if ordered { CommitOrder::Preserve } else { CommitOrder::Relaxed };
                heddle::place(trace, policy, order)
            }
            _ => Placements::default(),
        };
        PreparedReplica { model: self, trace, placements }
    }

    /// Runs the stream on a replica with so many workers.
    pub fn run(self, trace: &Trace, costs: &Costs, workers: usize) -> Outcome {
        self.prepare(trace).run(costs, workers)
    }
}

/// A replica with its stream, to be run again and again.
#[derive(Debug)]
pub struct PreparedReplica<'a> {
    model: Model,
    trace: &'a Trace,
    /// Of the engine's policy.
    placements: Placements,
}

impl PreparedReplica<'_> {
    pub fn run(&self, costs: &Costs, workers: usize) -> Outcome {
        let (trace, workers) = (self.trace, workers.max(1));
        match self.model {
            Model::Serial => mysql::serial(trace, costs),
            Model::Database => mysql::database(trace, costs, workers),
            Model::LogicalClock { tags, .. } => mysql::logical_clock(trace, costs, workers, tags),
            Model::MariaDb { mode } => mariadb::run(trace, costs, workers, mode),
            Model::Heddle { grouping, ordered, .. } => {
                let replica = heddle::Replica { trace, placements: &self.placements, costs, workers, ordered };
                if grouping { heddle::grouped(&replica) } else { heddle::single(&replica) }
            }
        }
    }

    /// Of a transaction.
    pub fn microseconds_each(&self, costs: &Costs, workers: usize) -> f64 {
        self.run(costs, workers).seconds * 1e6 / self.trace.transactions.len().max(1) as f64
    }
}
