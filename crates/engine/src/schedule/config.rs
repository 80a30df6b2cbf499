//! How a scheduler works: its workers, the commit order, the sizes of groups.

use super::limits::Limits;
use crate::policy::CommitOrder;

#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Those that get groups; see [`Scheduler::use_workers`](super::Scheduler::use_workers).
    pub workers: usize,
    pub order: CommitOrder,
    pub limits: Limits,
    /// How often one group may be retried before the channel stops.
    pub retries_max: u32,
    /// The target has other nodes. One that is gone or closed ends the run, which is not waited for: the channel goes on at another.
    pub has_other_nodes: bool,
    /// The most groups of one lane that run at once; not with preserved order.
    pub lane_groups_max: usize,
    pub signals: Signals,
    pub commits: Commits,
    pub origins: Origins,
}

/// What a worker reports of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// That its place in the order is taken, and that it is committed.
    Commit,
    /// Before that, that all its rows are applied. Placements that count on begun commits need it.
    AppliedFirst,
}

/// How the transactions of a group commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commits {
    /// As one target transaction.
    Together,
    /// Each by itself: they only share a packet. In relaxed order a group takes no more than its share of what waits. In the
    /// source's order a group of more than one starts only in its turn.
    Each,
}

/// Whose transactions may share a target transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origins {
    Any,
    /// Those of one domain and server (MariaDB's GTIDs): the last one's GTID then says that all of them are there.
    One,
}

impl Config {
    /// Without a limit for lanes. Workers signal commits only, and the transactions of a group commit together.
    pub fn new(workers: usize, order: CommitOrder, limits: Limits, retries_max: u32) -> Self {
        Self {
            workers,
            order,
            limits,
            retries_max,
            has_other_nodes: false,
            lane_groups_max: workers,
            signals: Signals::Commit,
            origins: Origins::Any,
            commits: Commits::Together,
        }
    }
}
