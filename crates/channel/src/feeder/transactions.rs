//! What becomes of each transaction that was read: skipped, refused, or placed by the policy and handed over.

use std::time::{Duration, Instant};

use apply::mysql::progress::SCHEMA;
use engine::branches::{HeadState, LogTail, Lookahead};
use engine::definition_change::DefinitionChange;
use engine::failure::{Failure, FailureKind};
use engine::policy::Policy;
use engine::transaction::{BarrierCause, Item, Transaction};
use relay::{LocatedEvent, Place};

use super::event_intake::{EventIntake, ReadTransaction};
use super::extent::Extent;
use super::no_effect::leave_empty;
use super::output::{Disconnected, Output};
use super::pending_definitions::PendingDefinitions;
use super::prepared_branches::PreparedBranches;
use super::unsafe_statements::UnsafeStatements;
use crate::flow::handoff::Thread;
use crate::flow::memory::budget::transaction_bytes_max;
use crate::flow::memory::event_memory::EventMemory;
use crate::flow::messages::FeederMessage;
use crate::flow::run_handles::RunHandles;

pub struct Feeder {
    intake: EventIntake,
    extent: Extent,
    policy: Box<dyn Policy>,
    output: Output,
    prepared: PreparedBranches,
    unsafe_statements: UnsafeStatements,
    /// Transactions that were read ahead, where XA branches whose end is in the log need not be prepared.
    lookahead: Option<Lookahead<HeldTransaction>>,
    shared: RunHandles,
    /// Definitions that were handed over: the target's may still be those before them.
    redefined: PendingDefinitions,
    /// A transaction has been handed over in this run.
    has_begun: bool,
    /// Left to the feeder's own thread, before anything else is read.
    postponed: Option<ReadTransaction>,
    /// Likewise: an event of so many bytes comes.
    large: Option<u64>,
}

/// What goes with a transaction that was read ahead.
struct HeldTransaction {
    last: Place,
    read_at: Instant,
}

/// How long the end of an XA branch is waited for where the channel has nothing else to do: most sessions end a branch right after they have prepared
/// it, and to prepare it here takes longer than that. What comes behind it waits as well.
const END_COMES_WITHIN: Duration = Duration::from_millis(10);

/// Why nothing more is read.
pub enum FeedEnd {
    /// Everything that was asked for is read.
    Finished,
    /// The coordinator is gone or stops.
    Abandoned,
    Failed(Failure),
}

impl From<Disconnected> for FeedEnd {
    fn from(_: Disconnected) -> Self {
        Self::Abandoned
    }
}

impl From<Failure> for FeedEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Feeder {
    pub fn new(
        intake: EventIntake,
        extent: Extent,
        policy: Box<dyn Policy>,
        output: Output,
        prepared: PreparedBranches,
        unsafe_statements: UnsafeStatements,
        shared: RunHandles,
    ) -> Self {
        Self {
            intake,
            extent,
            policy,
            output,
            prepared,
            unsafe_statements,
            lookahead: None,
            shared,
            redefined: PendingDefinitions::default(),
            has_begun: false,
            postponed: None,
            large: None,
        }
    }

    /// XA branches whose end is in the log are not prepared: their rows are applied with the end.
    pub fn defers_branches(mut self) -> Self {
        self.lookahead = Some(Lookahead::default());
        self
    }

    pub fn is_stopping(&self) -> bool {
        self.shared.is_stopping()
    }

    pub fn is_paused(&self) -> bool {
        self.shared.signals.is_paused()
    }

    pub fn end(&mut self, message: FeederMessage) {
        self.output.end(message, self.extent.seq());
    }

    pub fn hand_over(&mut self) -> Result<(), Disconnected> {
        self.output.hand_over(self.extent.seq())
    }

    /// Before anything is read.
    pub fn go_on(&mut self, thread: Thread) -> Result<(), FeedEnd> {
        if self.extent.is_over() {
            return Err(FeedEnd::Finished);
        }
        if thread == Thread::Own
            && let Some(postponed) = self.postponed.take()
        {
            self.pass(postponed)?;
            self.read_on()?;
        }
        if thread == Thread::Own
            && let Some(bytes) = self.large.take()
        {
            self.large_event(bytes, thread)?;
        }
        Ok(())
    }

    /// An event of so many bytes is read next: not before there is memory for it.
    pub fn large_event(&mut self, bytes: u64, thread: Thread) -> Result<(), FeedEnd> {
        match thread {
            Thread::Own => Ok(self.output.wait_for_room(bytes, self.extent.seq())?),
            Thread::Callers => {
                self.large = Some(bytes);
                Ok(())
            }
        }
    }

    pub fn memory(&self) -> EventMemory {
        self.shared.events
    }

    /// Nothing more can be read for now: what waits for the end of a branch goes on when it has waited for long enough.
    pub fn caught_up(&mut self) -> Result<(), FeedEnd> {
        self.pass_all(Feeder::rest_of_first)
    }

    /// Nothing more will be read.
    pub fn all_is_read(&mut self) -> Result<(), FeedEnd> {
        self.pass_all(|_| LogTail::NotYet)
    }

    fn pass_all(&mut self, rest: fn(&Self) -> LogTail) -> Result<(), FeedEnd> {
        if !self.looks_ahead() {
            return Ok(());
        }
        self.pass_on(rest)?;
        self.read_on()
    }

    /// As long as something is being applied, nothing is lost by waiting.
    fn rest_of_first(&self) -> LogTail {
        let is_idle = self.shared.signals.low_water() >= self.extent.seq();
        let first = self.lookahead.as_ref().and_then(Lookahead::with_first);
        match first {
            Some(held) if !is_idle || held.read_at.elapsed() < END_COMES_WITHIN => LogTail::Comes,
            _ => LogTail::NotYet,
        }
    }

    /// What comes next may have to wait, or is much.
    pub fn is_for_own_thread(&self) -> bool {
        self.postponed.is_some() || self.large.is_some() || self.looks_ahead() || self.output.has_many()
    }

    pub fn end_of_log(&self) -> FeedEnd {
        if !self.intake.is_between_transactions() {
            return FeedEnd::Failed(self.extent.cut_off());
        }
        self.extent.missed(self.output.read_to()).map_or(FeedEnd::Finished, FeedEnd::Failed)
    }

    pub fn take(&mut self, located: &LocatedEvent, thread: Thread) -> Result<(), FeedEnd> {
        self.shared.measures.read(located);
        if let Some(read) = self.intake.event(located)? {
            self.shared.measures.read_whole();
            if thread == Thread::Callers && self.may_wait(&read.transaction) {
                self.postponed = Some(read);
                return Ok(());
            }
            self.pass(read)?;
        }
        self.read_on()
    }

    /// Transactions were read that have not been passed on.
    pub fn looks_ahead(&self) -> bool {
        self.lookahead.as_ref().is_some_and(|lookahead| !lookahead.is_empty())
    }

    /// A transaction goes on at once, unless it prepares a branch whose end may come, or follows one that does.
    fn pass(&mut self, read: ReadTransaction) -> Result<(), FeedEnd> {
        let is_of_xa = read.transaction.barrier == Some(BarrierCause::Xa);
        match &mut self.lookahead {
            Some(lookahead) if is_of_xa || !lookahead.is_empty() => {
                lookahead.push(read.transaction, HeldTransaction { last: read.last, read_at: Instant::now() });
                self.pass_on(|_| LogTail::Comes)
            }
            _ => self.transaction(read),
        }
    }

    fn pass_on(&mut self, rest: fn(&Self) -> LogTail) -> Result<(), FeedEnd> {
        while let Some(ahead) = self.lookahead.as_ref() {
            match ahead.first(rest(self)) {
                None | Some(HeadState::Waits) => break,
                Some(HeadState::Passes) => {}
                Some(HeadState::EndsAt(at)) => self.defer_branch(at)?,
            }
            let Some((transaction, held)) = self.lookahead.as_mut().and_then(Lookahead::pop) else { break };
            self.transaction(ReadTransaction { transaction, last: held.last })?;
            if self.looks_ahead() && self.extent.is_over() {
                return Err(FeedEnd::Finished);
            }
        }
        Ok(())
    }

    /// The next transaction prepares a branch that the one at `at` ends: its rows are applied with that one, if a key finds them all.
    fn defer_branch(&mut self, at: usize) -> Result<(), FeedEnd> {
        let Some((transaction, xid)) = self.lookahead.as_ref().and_then(Lookahead::branch) else { return Ok(()) };
        // What the target has executed ahead of the channel it has prepared.
        let is_there = self.extent.is_applied(transaction) || self.extent.will_be_executed(transaction);
        if is_there || self.prepared.is_open(xid) {
            return Ok(());
        }
        self.await_definitions()?;
        let Self { lookahead: Some(lookahead), intake, .. } = self else { return Ok(()) };
        lookahead.defer(at, |end| {
            intake.key(end)?;
            Ok(end.items().iter().all(is_found_by_key))
        })
    }

    /// For the target's definitions, for a statement to be applied, or for memory.
    fn may_wait(&self, transaction: &Transaction) -> bool {
        transaction.barrier.is_some()
            || self.looks_ahead()
            || self.redefined.concerns(transaction)
            || !self.intake.knows(transaction)
            || !self.output.has_room(transaction_bytes_max(transaction))
    }

    /// An event is done with.
    fn read_on(&mut self) -> Result<(), FeedEnd> {
        if !self.intake.is_between_transactions() || self.looks_ahead() {
            return Ok(());
        }
        let end = self.intake.end();
        self.output.has_read_to(end);
        if self.extent.is_over_at(end) { Err(FeedEnd::Finished) } else { Ok(()) }
    }

    fn transaction(&mut self, read: ReadTransaction) -> Result<(), FeedEnd> {
        let ReadTransaction { mut transaction, last } = read;
        if self.extent.ends_before(&transaction) {
            return Err(FeedEnd::Finished);
        }
        if self.extent.is_applied(&transaction) {
            return Ok(());
        }
        self.extent.accept(&mut transaction)?;
        if self.redefined.concerns(&transaction) {
            self.await_definitions()?;
        }
        let is_skipped = self.extent.is_skipped(&transaction);
        if is_skipped {
            leave_out(&mut transaction)?;
        } else if self.has_begun && self.intake.has_no_effect(&transaction) {
            leave_empty(&mut transaction);
        }
        self.has_begun = true;
        transaction.beside_prepared = self.prepared.is_any();
        self.prepared.record(&transaction);
        let low_water = self.shared.signals.low_water();
        self.shared.measures.read_transaction(&transaction, low_water);
        let seq = transaction.seq;
        let is_executed = self.extent.is_executed(&transaction);
        if !is_skipped && !is_executed && !self.extent.is_committed(seq) {
            if let Some(refusal) = transaction.refusal.take() {
                let failure = Failure::new(FailureKind::Refused, refusal.what).remedy(refusal.remedy);
                return Err(FeedEnd::Failed(failure.at(transaction.place()).of(transaction.culprit())));
            }
            for left_out in &transaction.left_out {
                tracing::info!("left out: {left_out}: {}", transaction.place());
            }
            self.unsafe_statements.judge(&transaction)?;
        }
        // What is committed already needs no keys, and the definitions of its time may be gone.
        if !is_executed && !self.extent.is_committed(seq) {
            self.intake.key(&mut transaction).map_err(|failure| failure.of(transaction.culprit()))?;
        }
        if let Some(spill) = self.intake.spill(&transaction, last) {
            self.shared.spilled.remember(seq, spill);
        }
        if let Err(why) = self.policy.accepts(&transaction) {
            let message = format!("--policy {} can not be used: {why}", self.policy.name());
            let failure = Failure::new(FailureKind::Refused, message).at(transaction.place());
            return Err(FeedEnd::Failed(failure.remedy("take another policy, such as writeset; see heddle policies")));
        }
        self.policy.low_water(self.shared.signals.low_water());
        let mut placement = self.policy.place(&transaction);
        placement.committed = is_executed;
        self.shared.measures.placed(&transaction, &placement);
        self.redefined.add(seq, DefinitionChange::by(&transaction));
        self.output.add(transaction, placement, seq)?;
        Ok(())
    }

    /// Only when a DDL is applied, the target's schema is the one of what follows.
    fn await_definitions(&mut self) -> Result<(), Disconnected> {
        if self.redefined.is_empty() {
            return Ok(());
        }
        self.hand_over()?;
        if !self.shared.signals.wait_until_committed(self.redefined.last()) {
            return Err(Disconnected);
        }
        for redefined in self.redefined.take() {
            self.intake.invalidate(&redefined);
        }
        Ok(())
    }
}

/// Nothing of it is applied. It keeps its number and its GTID, so its progress is recorded as any other's, exactly once.
fn leave_out(transaction: &mut Transaction) -> Result<(), Failure> {
    if transaction.barrier == Some(BarrierCause::Xa) || transaction.branch.is_some() {
        return Err(Failure::new(
            FailureKind::Refused,
            format!("a part of an XA transaction is to be skipped ({SCHEMA}.skips on the target)"),
        )
        .at(transaction.place())
        .remedy("delete its row there; repair the target by hand instead"));
    }
    tracing::warn!("skipped, as an operator has asked for ({SCHEMA}.skips on the target): {}", transaction.place());
    leave_empty(transaction);
    Ok(())
}

/// Rows of a table that can be changed again as they are, in any session, and rolled back.
fn is_found_by_key(item: &Item) -> bool {
    let Item::Rows(rows) = item else { return false };
    rows.table
        .as_ref()
        .is_some_and(|table| table.is_keyed() && table.transactional && table.barrier.is_none() && !table.works_out)
}
