//! The policies by name: what each needs, what it promises, what holds it up, and how it is made.

use std::str::FromStr;

use super::{
    Conservative, Database, Domain, LogicalClock, Minimal, Optimistic, Policy, Serial, ServerTags, WriteSetPolicy,
};
use crate::scheduler::CommitOrder;
use crate::tags::{Generation, HISTORY_HASHES, Rules, Tracking};

/// `--policy`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyName {
    /// Common keys keep their order
    Writeset,
    /// One after the other
    Serial,
    /// One schema after the other's, each in its order (MySQL 5.6)
    Database,
    /// The source's tags, as a native replica uses them (MySQL 5.7)
    LogicalClock,
    /// The source's tags, without waiting for the one in front
    LogicalClockUnblocked,
    /// The source's clock alone, by MySQL's rules
    CommitOrder,
    /// Tags from write sets, by MySQL's rules and limits
    WritesetTags,
    /// The same, and sessions keep their order
    WritesetSession,
    /// MariaDB's domains beside each other
    Domain,
    /// The next begins when the one before commits (MariaDB)
    Minimal,
    /// What committed together runs together (MariaDB)
    Conservative,
    /// All at once, conflicts are rolled back (MariaDB)
    Optimistic,
    /// The same, without believing the source's hints (MariaDB)
    Aggressive,
}

/// For people: `heddle policies`.
#[derive(Clone, Copy, Debug)]
pub struct About {
    pub name: PolicyName,
    /// What it is, in a few words.
    pub summary: &'static str,
    pub needs: &'static str,
    pub guarantees: &'static str,
    pub blocked_by: &'static str,
}

/// What some policies can be told.
#[derive(Clone, Copy, Debug)]
pub struct PolicyOptions {
    /// `--writeset-history`: hashes that the tags' rules remember.
    pub history_max: usize,
    /// `--writeset-rules`
    pub generation: Generation,
    /// `--domain-workers-max`: how many workers one lane may have.
    pub lane_workers_max: Option<usize>,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self { history_max: HISTORY_HASHES, generation: Generation::Mysql84, lane_workers_max: None }
    }
}

/// Order and target do not suit a policy: why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsuitable(String);

impl FromStr for PolicyName {
    type Err = Unsuitable;

    fn from_str(text: &str) -> Result<Self, Unsuitable> {
        let known = ABOUT.iter().map(|about| about.name).find(|name| name.as_str() == text);
        known.ok_or_else(|| Unsuitable(format!("unknown policy {text}: `heddle policies` lists all")))
    }
}

impl PolicyName {
    /// All of them; the one to choose first.
    pub fn all() -> impl Iterator<Item = Self> {
        ABOUT.iter().map(|about| about.name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Writeset => "writeset",
            Self::Serial => "serial",
            Self::Database => "database",
            Self::LogicalClock => "logical-clock",
            Self::LogicalClockUnblocked => "logical-clock-unblocked",
            Self::CommitOrder => "commit-order",
            Self::WritesetTags => "writeset-tags",
            Self::WritesetSession => "writeset-session",
            Self::Domain => "domain",
            Self::Minimal => "minimal",
            Self::Conservative => "conservative",
            Self::Optimistic => "optimistic",
            Self::Aggressive => "aggressive",
        }
    }

    /// `locks_rows`: the target's sessions hold locks on the rows that they have changed, and wait for each other's.
    pub fn make(self, order: CommitOrder, locks_rows: bool, options: &PolicyOptions) -> Box<dyn Policy> {
        let tags = |tracking| {
            let rules = Rules { tracking, generation: options.generation, history_max: options.history_max };
            Box::new(ServerTags::new(rules))
        };
        let in_order = order == CommitOrder::Preserve;
        match self {
            Self::Writeset => Box::<WriteSetPolicy>::default(),
            Self::Serial => Box::new(Serial),
            Self::Database => Box::<Database>::default(),
            Self::LogicalClock => Box::new(LogicalClock::blocking()),
            Self::LogicalClockUnblocked => Box::new(LogicalClock::unblocked()),
            Self::CommitOrder => tags(Tracking::CommitOrder),
            Self::WritesetTags => tags(Tracking::Writeset),
            Self::WritesetSession => tags(Tracking::WritesetSession),
            Self::Domain => Box::<Domain>::default(),
            Self::Minimal if !locks_rows => Box::new(Minimal::without_locks()),
            Self::Minimal if in_order => Box::new(Minimal::in_order()),
            Self::Minimal => Box::new(Minimal::overtaking()),
            Self::Conservative => Box::new(Conservative::new(locks_rows && in_order)),
            Self::Optimistic => Box::<Optimistic>::default(),
            Self::Aggressive => Box::new(Optimistic::aggressive()),
        }
    }

    /// Everything starts at once; a conflict shows on the target. Commits have to be in order.
    pub fn speculates(self) -> bool {
        matches!(self, Self::Optimistic | Self::Aggressive)
    }

    /// Whether its placements count on commits that have begun.
    pub fn uses_begun_commits(self) -> bool {
        matches!(self, Self::Minimal | Self::Conservative)
    }

    /// Whose write sets it wants beside ours.
    pub fn server_sets(self, options: &PolicyOptions) -> Option<Generation> {
        matches!(self, Self::WritesetTags | Self::WritesetSession).then_some(options.generation)
    }

    /// Whether order and target suit it.
    pub fn check(self, order: CommitOrder, locks_rows: bool) -> Result<(), Unsuitable> {
        let name = self.as_str();
        let refused = |why: String| Err(Unsuitable(why));
        if self.speculates() && order.has_gaps() {
            return refused(format!(
                "--policy {name} finds conflicts only while the earlier transaction is not committed: it needs \
                 --commit-order preserve (or take --policy writeset with --commit-order {})",
                order.as_str()
            ));
        }
        if self.speculates() && !locks_rows {
            return refused(format!(
                "--policy {name} needs a target that locks rows, which the embedded store does not: take --policy writeset"
            ));
        }
        if order == CommitOrder::PerLane && !matches!(self, Self::Database | Self::Domain) {
            return refused(
                "--commit-order per-lane needs a policy with lanes: --policy database (a lane is a schema) or --policy domain (a \
                 lane is a MariaDB domain)"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// What holds up every policy.
pub const ALWAYS: &str = "DDL, statements, XA and huge transactions (each runs alone)";

/// All of them; the one to choose first.
pub const ABOUT: [About; 13] = [
    About {
        name: PolicyName::Writeset,
        summary: "Common keys keep their order",
        needs: "row format; keys of the tables (read from the target)",
        guarantees: "transactions that touch a common key keep their order, row by row; nothing else waits",
        blocked_by: "hot rows; tables without a unique key, keys of collations not handled yet (ordered by table)",
    },
    About {
        name: PolicyName::Serial,
        summary: "One after the other",
        needs: "nothing",
        guarantees: "one after the other, as a replica without parallel replication",
        blocked_by: "every transaction",
    },
    About {
        name: PolicyName::Database,
        summary: "One schema after the other's, each in its order (MySQL 5.6)",
        needs: "several schemas",
        guarantees: "each schema's order; a transaction on several schemas has its place in each",
        blocked_by: "one busy schema; transactions on many schemas",
    },
    About {
        name: PolicyName::LogicalClock,
        summary: "The source's tags, as a native replica uses them (MySQL 5.7)",
        needs: "a MySQL source, 5.7 or later",
        guarantees: "what the source's last_committed says, scheduled as a native replica does",
        blocked_by: "a long transaction that others follow: all behind them wait, too; gaps in the numbers; log rotation",
    },
    About {
        name: PolicyName::LogicalClockUnblocked,
        summary: "The source's tags, without waiting for the one in front",
        needs: "a MySQL source, 5.7 or later",
        guarantees: "what the source's last_committed says",
        blocked_by: "a long transaction: those that follow it; few sessions on the source; an intermediate server that committed one by one",
    },
    About {
        name: PolicyName::CommitOrder,
        summary: "The source's clock alone, by MySQL's rules",
        needs: "a source that tags or groups its commits; serial otherwise",
        guarantees: "what had committed on the source before another was prepared comes first",
        blocked_by: "few sessions on the source, fast commits there",
    },
    About {
        name: PolicyName::WritesetTags,
        summary: "Tags from write sets, by MySQL's rules and limits",
        needs: "row format; keys of the tables",
        guarantees: "the tags that MySQL would give with WRITESET, its fallbacks included",
        blocked_by: "log rotation, a full history (--writeset-history), DDL, tables that foreign keys refer to",
    },
    About {
        name: PolicyName::WritesetSession,
        summary: "The same, and sessions keep their order",
        needs: "row format; keys of the tables; a MySQL source, whose log names sessions",
        guarantees: "as writeset-tags, and the order inside each session of the source",
        blocked_by: "as writeset-tags; few sessions",
    },
    About {
        name: PolicyName::Domain,
        summary: "MariaDB's domains beside each other",
        needs: "a MariaDB source that uses several gtid_domain_id; --commit-order relaxed or per-lane",
        guarantees: "each domain's order but for what committed together; common keys keep their order across domains",
        blocked_by: "one busy domain; --domain-workers-max",
    },
    About {
        name: PolicyName::Minimal,
        summary: "The next begins when the one before commits (MariaDB)",
        needs: "nothing; --commit-order relaxed for commits that share an fsync",
        guarantees: "a transaction begins when the one before has applied all its rows",
        blocked_by: "every transaction, but for its commit",
    },
    About {
        name: PolicyName::Conservative,
        summary: "What committed together runs together (MariaDB)",
        needs: "a MariaDB source",
        guarantees: "what was in one group commit on the source runs together, the next group once all of it is applied",
        blocked_by: "small group commits on the source; the longest transaction of each group",
    },
    About {
        name: PolicyName::Optimistic,
        summary: "All at once, conflicts are rolled back (MariaDB)",
        needs: "a target that locks rows; --commit-order preserve",
        guarantees: "a transaction that came too early is rolled back and runs again in its turn",
        blocked_by: "conflicts, each of which costs a rollback; transactions that waited for a lock on a MariaDB source",
    },
    About {
        name: PolicyName::Aggressive,
        summary: "The same, without believing the source's hints (MariaDB)",
        needs: "a target that locks rows; --commit-order preserve",
        guarantees: "as optimistic, also for transactions that waited for a lock on the source",
        blocked_by: "conflicts, each of which costs a rollback",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_bears_its_name() {
        let options = PolicyOptions::default();
        for name in PolicyName::all() {
            assert_eq!(PolicyName::all().filter(|&other| other == name).count(), 1, "{name:?}");
            assert_eq!(name.make(CommitOrder::Preserve, true, &options).name(), name.as_str());
            assert_eq!(name.as_str().parse::<PolicyName>().unwrap(), name);
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        use CommitOrder::{PerLane, Preserve, Relaxed};
        for (name, order, locks_rows, message) in [
            (PolicyName::Writeset, Relaxed, false, None),
            (PolicyName::Optimistic, Preserve, true, None),
            (PolicyName::Optimistic, Relaxed, true, Some("--commit-order preserve")),
            (PolicyName::Aggressive, Preserve, false, Some("locks rows")),
            (PolicyName::Writeset, PerLane, true, Some("policy with lanes")),
            (PolicyName::Domain, PerLane, false, None),
        ] {
            let said = name.check(order, locks_rows).err().map(|error| error.to_string());
            assert_eq!(said.is_some(), message.is_some(), "{name:?} {order:?}");
            assert!(said.unwrap_or_default().contains(message.unwrap_or_default()), "{name:?} {order:?}");
        }
    }
}
