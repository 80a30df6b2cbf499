//! What a policy says of itself: its name, its description, what it requires, how it is made.
//!
//! Each policy's file exports one [`PolicySpec`] for each name under which `--policy` knows it. Whoever has to treat policies
//! differently asks for a requirement, never for a name.

use super::commit_order::CommitOrder;
use super::placement::Policy;
use crate::tags::{Generation, HISTORY_HASHES};

#[derive(Debug)]
pub struct PolicySpec {
    /// As in `--policy`.
    pub name: &'static str,
    pub about: PolicyDescription,
    pub requires: Requirements,
    pub make: fn(&Setting<'_>) -> Box<dyn Policy>,
}

/// For people: `heddle policies`.
#[derive(Clone, Copy, Debug)]
pub struct PolicyDescription {
    /// What it is, in a few words.
    pub summary: &'static str,
    pub needs: &'static str,
    pub guarantees: &'static str,
    pub blocked_by: &'static str,
}

/// What a policy needs around it, and what it lets others do.
#[derive(Clone, Copy, Debug)]
pub struct Requirements {
    /// The commit orders with which it is right.
    pub orders: &'static [CommitOrder],
    pub target: TargetLocks,
    pub source: SourceTags,
    /// What one of its lanes is; `None`: it has a single one. Lanes are what `--commit-order per-lane` and
    /// `--domain-workers-max` are about.
    pub lane: Option<&'static str>,
    pub conflicts: Conflicts,
    pub counts_on: WaitUnit,
    pub write_sets: WriteSets,
    pub packets: Packets,
    pub xa_branches: XaBranches,
}

/// Whether the target's sessions have to hold locks on the rows that they have changed, and wait for each other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetLocks {
    Any,
    Rows,
}

/// What the source's log has to say of parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceTags {
    Any,
    /// MySQL's `last_committed` and `sequence_number`.
    LogicalClock,
    /// MariaDB's domains and commit ids.
    GroupCommits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflicts {
    /// The placement orders whatever may conflict.
    Prevented,
    /// All start at once. The target shows a conflict, and the later transaction is rolled back.
    RolledBack,
}

/// What its placements wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitUnit {
    Commits,
    /// Also commits that have begun ([`super::Watermark::CommitBegun`]), if the target locks rows.
    BegunCommits,
}

/// Whose write sets it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteSets {
    Heddle,
    /// A MySQL server's beside ours.
    Server,
}

/// Preserved order without grouping: whether small transactions share a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Each transaction goes to its own worker: who chose the policy wants to see its parallelism.
    Single,
    Shared,
}

/// Whether XA branches whose end is near in the log may be deferred to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XaBranches {
    /// No: the policy goes by tags, which know nothing of rows that come later.
    Prepared,
    Deferred,
}

impl Requirements {
    /// Of a policy that needs nothing, in preserved and relaxed order. Others say what differs.
    pub const NONE: Self = Self {
        orders: &[CommitOrder::Preserve, CommitOrder::Relaxed],
        target: TargetLocks::Any,
        source: SourceTags::Any,
        lane: None,
        conflicts: Conflicts::Prevented,
        counts_on: WaitUnit::Commits,
        write_sets: WriteSets::Heddle,
        packets: Packets::Single,
        xa_branches: XaBranches::Prepared,
    };
    /// Of a policy with lanes.
    pub const EVERY_ORDER: &'static [CommitOrder] =
        &[CommitOrder::Preserve, CommitOrder::PerLane, CommitOrder::Relaxed];
}

/// Where a policy is to work.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub order: CommitOrder,
    /// The target's sessions hold locks on the rows that they have changed, and wait for each other's.
    pub locks_rows: bool,
    pub options: &'a PolicyOptions,
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

impl PolicySpec {
    pub fn allows(&self, order: CommitOrder) -> bool {
        self.requires.orders.contains(&order)
    }

    /// Everything starts at once; a conflict shows on the target.
    pub fn speculates(&self) -> bool {
        self.requires.conflicts == Conflicts::RolledBack
    }

    /// Whose write sets it wants beside ours.
    pub fn server_sets(&self, options: &PolicyOptions) -> Option<Generation> {
        (self.requires.write_sets == WriteSets::Server).then_some(options.generation)
    }
}

/// A name stands for one policy.
impl PartialEq for PolicySpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PolicySpec {}

impl std::hash::Hash for PolicySpec {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
