//! What a worker does on its session: applies groups, commits, rolls back, connects again. Knows no orders and reports nothing.

use std::sync::Arc;
use std::time::Duration;

use apply::retry::{target_is_lost, until_reached};
use apply::{Commit, ProgressRecord, Range, Session, SingleTransaction};
use engine::Seq;
use engine::compact::{Batch, Plan, plan};
use engine::failure::{Failure, FailureKind};
use engine::group::Group;
use engine::schedule::{Commits, Worker};

use engine::transaction::Transaction;

use crate::flow::memory::spill::Spills;

/// How often the statements of one group are tried together.
const TOGETHER_TRIES_MAX: u32 = 2;

/// How groups are applied; the same for all workers of a run.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// Rows of a group that have the same key are merged.
    pub merges_rows: bool,
    pub recorded_as: ProgressRecord,
    pub commits: Commits,
    /// For how long to try to reach a target that is gone.
    pub reconnect_for: Duration,
}

pub struct Applier {
    pub number: Worker,
    pub session: Box<dyn Session>,
    spilled: Spills,
    mode: Mode,
}

impl Applier {
    pub fn new(number: Worker, session: Box<dyn Session>, spilled: Spills, mode: Mode) -> Self {
        Self { number, session, spilled, mode }
    }

    /// Rows that may be applied at once, and rows that have to wait for earlier groups.
    pub fn plan<'a>(&self, group: &'a Group) -> Plan<'a> {
        plan(group, self.mode.merges_rows)
    }

    pub fn range<'a>(&self, group: &'a Group) -> Range<'a> {
        let branches = if group.has_branches { group.transactions.as_slice() } else { &[] };
        Range {
            first: group.first(),
            before: group.before.seq,
            mark: &group.mark,
            recorded_as: self.mode.recorded_as,
            transactions: &group.transactions,
            branches,
        }
    }

    pub fn commits_each(&self, group: &Group) -> bool {
        self.mode.commits == Commits::Each && group.transactions.len() > 1
    }

    /// Whether its transactions share a target transaction.
    pub fn shares_commit(&self, group: &Group) -> bool {
        self.mode.commits == Commits::Together && !group.is_barrier()
    }

    /// Sends the group off if it is one statement, without waiting for the answer. False: nothing was sent.
    pub fn send(&mut self, group: &Group) -> Result<bool, Failure> {
        let Some(named_by) = group.named_by() else { return Ok(false) };
        let Plan { independent, deferred } = self.plan(group);
        let range = self.range(group);
        self.session.send(named_by, &[independent, deferred].concat(), range)
    }

    pub fn commit(&mut self, group: &Group, named_by: &Transaction, batches: &[Batch<'_>]) -> Result<Commit, Failure> {
        let range = self.range(group);
        self.session.commit(named_by, batches, range)
    }

    /// A connection that is lost has rolled back. The next use of the session finds out that it is lost.
    pub fn roll_back(&mut self) -> Result<(), Failure> {
        match self.session.rollback() {
            Err(lost) if lost.kind == FailureKind::ConnectionLost => Ok(()),
            done => done,
        }
    }

    /// One transaction after the other, each with its own commit, in as few packets as possible.
    pub fn each(&mut self, group: &Group, committed_to: &mut Seq) -> Result<Commit, Failure> {
        let groups: Vec<Group> = group.singles().collect();
        self.session.commit_each(&self.singles(group, &groups), committed_to)
    }

    /// A barrier, and what runs after it in the log's order.
    pub fn in_order(
        &mut self,
        group: &Group,
        first: &Transaction,
        attempt: u32,
        committed_to: &mut Seq,
    ) -> Result<Commit, Failure> {
        if group.transactions.len() == 1 {
            return self.barrier(first, group).map(|()| Commit::Durable);
        }
        let groups: Vec<Group> = group.singles().collect();
        let singles = self.singles(group, &groups);
        // What has failed twice together, with the connection for example, goes on one by one.
        if attempt > TOGETHER_TRIES_MAX {
            return self.session.run_serially(&singles, &self.spilled, committed_to);
        }
        self.session.run_in_order(&singles, &self.spilled, committed_to)
    }

    pub fn barrier(&mut self, transaction: &Transaction, single: &Group) -> Result<(), Failure> {
        let range = self.range(single);
        self.session.run_barrier(transaction, &self.spilled, range)
    }

    /// `groups`: its transactions one by one.
    fn singles<'a>(&self, group: &'a Group, groups: &'a [Group]) -> Vec<SingleTransaction<'a>> {
        let rows = |single: &'a Group| if single.is_barrier() { Vec::new() } else { plan(single, false).independent };
        let one = |(single, transaction): (&'a Group, &'a Arc<Transaction>)| SingleTransaction {
            transaction,
            batches: rows(single),
            range: self.range(single),
        };
        groups.iter().zip(&group.transactions).map(one).collect()
    }

    /// After a lost connection: connects again, and says up to where the group is committed.
    pub fn reconnect(&mut self, group: &Group, failure: &Failure) -> Result<Seq, Failure> {
        target_is_lost(&failure.message);
        let range = self.range(group);
        until_reached(self.mode.reconnect_for, || self.session.recover(&group.transactions, range))
    }

    /// After a lost connection in a run that was not isolated. A group is committed as a whole or not at all, unless it commits each
    /// transaction by itself.
    pub fn after_loss(&mut self, group: &Group, failure: &Failure, committed_to: &mut Seq) -> Result<Commit, Failure> {
        *committed_to = self.reconnect(group, failure)?;
        if *committed_to >= group.mark.seq {
            return Ok(Commit::Durable);
        }
        let message = format!("{} (connected again; the rest of the group was not committed)", failure.message);
        Err(Failure::new(FailureKind::Conflict, message))
    }
}
