//! What is made of the log's events, in their order: transactions → write sets → placements. Who reads them says `feeding`.
//!
//! Waits at a DDL until it is applied, so that the definitions it then reads are those of the next event. Stops at the end
//! that the user asked for. Never dispatches anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidSet, GtidState};
use crossbeam_channel::Sender;
use engine::Seq;
use engine::branches::{First, Lookahead};
use engine::failure::{Failure, FailureKind};
use engine::intake::{AssembleError, Intake, KeyingError};
use engine::policy::{Placement, Policy};
use engine::progress::Mark;
use engine::redefined::Redefined;
use engine::schema::Catalogue;
use engine::transaction::{BarrierCause, Body, Item, Transaction};
use relay::{Located, Place};

use crate::flow::budget::{Budget, transaction_bytes, transaction_bytes_max};
use crate::flow::handoff::{Amount, FEW, Thread, Wake};
use crate::flow::messages::Fed;
use crate::flow::prepared::Prepared;
use crate::flow::spill::{Spill, Spills};
use crate::flow::stats::Stats;
use crate::until::Until;

/// A transaction with more bytes of events than this is not held in memory.
pub const SPILL_BYTES: u64 = 16 << 20;
/// Transactions that are handed over together, while more are there to be read: each waking of the coordinator costs more than
/// looking at a transaction does.
const BATCH_TRANSACTIONS: usize = 256;
const BATCH_BYTES: u64 = 256 << 10;

pub struct Feeder {
    pub intake: Intake,
    pub catalogue: Box<dyn Catalogue + Send>,
    pub policy: Box<dyn Policy>,
    pub out: Sender<Fed>,
    pub coordinator: Arc<dyn Wake>,
    pub budget: Arc<Budget>,
    pub stats: Arc<Stats>,
    pub reread: Spills,
    pub until: Until,
    /// Committed by an earlier run with relaxed order, above its low water.
    pub islands: Vec<(Seq, Seq)>,
    /// The same, noted by nothing but their GTIDs. Whatever has come by is not in here any more.
    pub executed: GtidSet,
    /// What is applied already; moves on with what is handed over.
    pub applied: Mark,
    /// End once this one has been handed over.
    pub last_seq: Option<Seq>,
    pub prepared: Prepared,
    /// Where branches whose end is in the log need not be prepared: what has been read and not looked at.
    pub branches: Option<Lookahead<Place>>,
    /// A transaction that this server logged first stops the channel.
    pub not_from: Option<u32>,
    pub stop: Arc<AtomicBool>,
    /// First event of the transaction that is being put together.
    pub first: Option<(Place, Arc<binlog::FormatDescription>)>,
    pub at: At,
    pub batch: Batch,
    /// To go on with before anything else is read.
    pub held: Option<Held>,
}

/// A transaction that has been read, and where its last event is.
#[derive(Debug)]
pub struct Held {
    transaction: Transaction,
    last: Place,
}

/// What is still to be handed over.
#[derive(Debug, Default)]
pub struct Batch {
    transactions: Vec<(Arc<Transaction>, Placement)>,
    bytes: u64,
    /// Up to where the log has been read, between two transactions.
    read_to: Option<LogPosition>,
}

/// Where the last event stands in the source's log.
#[derive(Debug)]
pub struct At {
    start: LogPosition,
    end: LogPosition,
}

impl Default for At {
    fn default() -> Self {
        let nowhere = LogPosition::new("", 0);
        Self { start: nowhere.clone(), end: nowhere }
    }
}

impl At {
    fn set(&mut self, located: &Located) {
        // Nearly always the same file, whose name is shared.
        if !Arc::ptr_eq(&self.start.file, &located.position.file) {
            self.start = located.position.clone();
            self.end = self.start.clone();
        }
        self.start.offset = located.position.offset;
        self.end.offset = located.end;
    }
}

impl Batch {
    fn is_full(&self) -> bool {
        self.transactions.len() >= BATCH_TRANSACTIONS || self.bytes >= BATCH_BYTES
    }
}

/// The coordinator is gone.
pub struct Gone;

/// Why nothing more is read.
pub enum Ended {
    /// By itself.
    Finished,
    /// The coordinator is gone or stops.
    Abandoned,
    Failed(Failure),
}

impl From<Gone> for Ended {
    fn from(_: Gone) -> Self {
        Self::Abandoned
    }
}

impl Feeder {
    /// Its last word.
    pub fn end(&mut self, last: Fed) {
        if self.hand_over().is_ok() {
            // A coordinator that has gone does not need to know.
            let _ = self.out.send(last);
            self.coordinator.wake();
        }
    }

    /// Before anything is read.
    pub fn go_on(&mut self, thread: Thread) -> Result<(), Ended> {
        if self.is_over() {
            return Err(Ended::Finished);
        }
        if thread == Thread::Own
            && let Some(held) = self.held.take()
        {
            self.pass(held)?;
            self.read_on()?;
        }
        Ok(())
    }

    /// Nothing more can be read for now.
    pub fn caught_up(&mut self) -> Result<(), Ended> {
        if !self.looks_ahead() {
            return Ok(());
        }
        self.pass_on(true)?;
        self.read_on()
    }

    /// Something may have to be waited for, or there is much to do.
    pub fn is_for_own_thread(&self) -> bool {
        self.held.is_some() || self.looks_ahead() || self.batch.transactions.len() > FEW
    }

    pub fn end_of_log(&self) -> Ended {
        if self.intake.is_between_transactions() {
            return match self.until.missed(self.batch.read_to.as_ref().or(self.applied.position.as_ref()), &self.applied.gtids) {
                None => Ended::Finished,
                Some(missed) => Ended::Failed(
                    Failure::new(FailureKind::Refused, format!("the log ends before {missed}"))
                        .remedy("everything in it is applied; give the rest of the log and run the same command again, or, if the end was mistaken, leave it out"),
                ),
            };
        }
        Ended::Failed(
            Failure::new(FailureKind::Refused, "the log ends in the middle of a transaction")
                .at(self.applied.position.as_ref().map_or_else(String::new, |position| format!("after {position}")))
                .remedy("everything before it is applied; give the rest of the log (a newer copy) and run the same command again"),
        )
    }

    pub fn take(&mut self, located: &Located, thread: Thread) -> Result<(), Ended> {
        if located.restarted {
            self.intake.restart();
        }
        self.stats.read_bytes.fetch_add(located.event.bytes().len() as u64, Ordering::Relaxed);
        self.at.set(located);
        if self.intake.is_between_transactions() {
            self.first = Some((located.place.clone(), Arc::clone(&located.format)));
        }
        let (start, end) = (&self.at.start, &self.at.end);
        let transaction = self.intake.event(&located.event, &located.format, start, end);
        if let Some(transaction) = transaction.map_err(|error| Ended::Failed(assemble_failure(&error)))? {
            let held = Held { transaction, last: located.place.clone() };
            if thread == Thread::Callers && self.may_wait(&held.transaction) {
                self.held = Some(held);
                return Ok(());
            }
            self.pass(held)?;
        }
        self.read_on()
    }

    /// Something has been read that has not been passed on.
    fn looks_ahead(&self) -> bool {
        self.branches.as_ref().is_some_and(|lookahead| !lookahead.is_empty())
    }

    /// A transaction goes on at once, unless it prepares a branch, or follows one, whose end may come.
    fn pass(&mut self, held: Held) -> Result<(), Ended> {
        let is_of_xa = held.transaction.barrier == Some(BarrierCause::Xa);
        match &mut self.branches {
            Some(lookahead) if is_of_xa || !lookahead.is_empty() => {
                lookahead.push(held.transaction, held.last);
                self.pass_on(false)
            }
            _ => self.transaction(held),
        }
    }

    fn pass_on(&mut self, no_more: bool) -> Result<(), Ended> {
        while let Some(ahead) = self.branches.as_ref() {
            match ahead.first(no_more) {
                None | Some(First::Waits) => break,
                Some(First::Passes) => {}
                Some(First::EndsAt(at)) => self.keep_branch(at)?,
            }
            let Some((transaction, last)) = self.branches.as_mut().and_then(Lookahead::pop) else { break };
            self.transaction(Held { transaction, last })?;
            if self.looks_ahead() && self.is_over() {
                return Err(Ended::Finished);
            }
        }
        Ok(())
    }

    /// The next transaction prepares a branch that the one at `at` ends.
    fn keep_branch(&mut self, at: usize) -> Result<(), Ended> {
        let Some((transaction, xid)) = self.branches.as_ref().and_then(Lookahead::branch) else { return Ok(()) };
        if self.is_applied(transaction) || self.prepared.is_open(xid) {
            return Ok(());
        }
        let Self { branches: Some(lookahead), intake, catalogue, .. } = self else { return Ok(()) };
        lookahead.keep(at, |end| match intake.key(end, &mut **catalogue) {
            Err(error) => Err(Ended::Failed(keying_failure(&error, end))),
            Ok(()) => Ok(end.items().iter().all(is_found_by_key)),
        })
    }

    /// For the target's definitions, for a statement to be applied, or for memory.
    fn may_wait(&self, transaction: &Transaction) -> bool {
        transaction.barrier.is_some()
            || self.looks_ahead()
            || !self.intake.knows(transaction)
            || !self.budget.has_room(transaction_bytes_max(transaction))
    }

    /// An event is done with.
    fn read_on(&mut self) -> Result<(), Ended> {
        if !self.intake.is_between_transactions() || self.looks_ahead() {
            return Ok(());
        }
        let end = &self.at.end;
        match &mut self.batch.read_to {
            Some(read_to) if Arc::ptr_eq(&read_to.file, &end.file) => read_to.offset = end.offset,
            read_to => *read_to = Some(end.clone()),
        }
        let reached = self.until.is_reached(Some(end), &self.applied.gtids) || self.is_last();
        if reached { Err(Ended::Finished) } else { Ok(()) }
    }

    /// What has been passed on is all that was asked for.
    fn is_over(&self) -> bool {
        self.until.is_reached(self.applied.position.as_ref(), &self.applied.gtids) || self.is_last()
    }

    fn is_last(&self) -> bool {
        self.last_seq.is_some_and(|last| self.applied.seq >= last) && self.executed.is_empty()
    }

    /// One that runs alone has its own way to find out what became of it.
    fn is_executed(&mut self, transaction: &Transaction) -> bool {
        let Some(Gtid::MySql { uuid, tag, gno }) = &transaction.gtid else { return false };
        let tag = tag.as_deref().unwrap_or_default();
        if !self.executed.contains(uuid, tag, *gno) {
            return false;
        }
        let mut this = GtidSet::default();
        this.add(uuid, tag, *gno);
        self.executed.subtract(&this);
        transaction.barrier.is_none()
    }

    fn transaction(&mut self, held: Held) -> Result<(), Ended> {
        let Held { mut transaction, last } = held;
        if self.until.is_before(&transaction) {
            return Err(Ended::Finished);
        }
        if self.is_applied(&transaction) {
            return Ok(());
        }
        if self.not_from == Some(transaction.server_id) {
            return Err(Ended::Failed(
                Failure::new(
                    FailureKind::Refused,
                    "the source sends a transaction that began on the target itself: they replicate in a ring",
                )
                .at(transaction.place())
                .remedy(
                    "open the ring first: a native applier goes past what its own server has logged, heddle does not",
                ),
            ));
        }
        if let Some(gtid) = &transaction.gtid
            && let Err(why) = self.until.check_kind(gtid)
        {
            let failure = Failure::new(FailureKind::Refused, why).at(transaction.place());
            return Err(Ended::Failed(failure.remedy("MySQL's are UUID:1-9, MariaDB's DOMAIN-SERVER-NUMBER")));
        }
        if let Some(gtid) = &transaction.gtid
            && let Err(mixed) = self.applied.gtids.add(gtid)
        {
            let failure = Failure::new(FailureKind::Refused, mixed.to_string()).at(transaction.place());
            return Err(Ended::Failed(failure.remedy("use another --channel for another source")));
        }
        transaction.beside_prepared = self.prepared.is_any();
        self.prepared.note(&transaction);
        transaction.seq = self.applied.seq + 1;
        self.applied.seq = transaction.seq;
        self.applied.position = Some(transaction.end.clone());
        self.stats.read_time_us.store(transaction.commit_time_us, Ordering::Relaxed);
        // What is committed already needs no keys, and the definitions of its time may be gone.
        let seq = transaction.seq;
        let is_executed = self.is_executed(&transaction);
        let is_committed = is_executed || self.islands.iter().any(|&(first, last)| (first..=last).contains(&seq));
        if !is_committed && let Err(error) = self.intake.key(&mut transaction, &mut *self.catalogue) {
            return Err(Ended::Failed(keying_failure(&error, &transaction)));
        }
        if let (Body::Spilled { .. }, Some((from, format))) = (&transaction.body, &self.first) {
            let spill = Spill { from: from.clone(), until: last, format: Arc::clone(format) };
            self.reread.remember(transaction.seq, spill);
        }
        if let Err(why) = self.policy.accepts(&transaction) {
            let message = format!("--policy {} can not be used: {why}", self.policy.name());
            let failure = Failure::new(FailureKind::Refused, message).at(transaction.place());
            return Err(Ended::Failed(failure.remedy("take another policy, such as writeset; see heddle policies")));
        }
        self.policy.low_water(self.stats.low_water.load(Ordering::Acquire));
        let mut placement = self.policy.place(&transaction);
        placement.committed = is_executed;
        let redefined = Redefined::by(&transaction);
        let seq = transaction.seq;
        self.add(transaction, placement)?;
        if redefined != Redefined::Nothing {
            self.after_schema_change(seq, &redefined)?;
        }
        Ok(())
    }

    fn add(&mut self, transaction: Transaction, placement: Placement) -> Result<(), Gone> {
        let bytes = transaction_bytes(&transaction);
        if !self.budget.try_acquire(bytes) {
            // What has been taken becomes free only when the coordinator knows of it.
            self.hand_over()?;
            let _waiting = self.stats.wait_for_memory();
            if !self.budget.acquire(bytes) {
                return Err(Gone);
            }
        }
        self.batch.bytes += bytes;
        self.batch.transactions.push((Arc::new(transaction), placement));
        if self.batch.is_full() && self.send()? {
            self.coordinator.wake();
        }
        Ok(())
    }

    /// What there is, with nothing else to do meanwhile.
    pub fn hand_over(&mut self) -> Result<(), Gone> {
        let amount = Amount::of_transactions(self.batch.transactions.len());
        if self.send()? {
            self.coordinator.hand_over(amount);
        }
        Ok(())
    }

    /// False: there was nothing to send.
    fn send(&mut self) -> Result<bool, Gone> {
        let Batch { transactions, read_to, .. } = std::mem::take(&mut self.batch);
        let is_any = !transactions.is_empty();
        if is_any {
            self.out.send(Fed::Transactions(transactions)).map_err(|_| Gone)?;
        }
        if let Some(end) = read_to {
            self.stats.set_read_to(end, self.applied.seq);
        }
        Ok(is_any)
    }

    /// Only then is the target's schema the one of the next event.
    fn after_schema_change(&mut self, seq: Seq, redefined: &Redefined) -> Result<(), Gone> {
        self.hand_over()?;
        if !self.stats.wait_for(seq) {
            return Err(Gone);
        }
        self.catalogue.invalidate(redefined);
        self.intake.invalidate();
        Ok(())
    }

    /// Sent again by a source that starts earlier than asked.
    fn is_applied(&self, transaction: &Transaction) -> bool {
        let is_behind = |applied: &LogPosition| transaction.start >= *applied;
        match &transaction.gtid {
            // Without gtid_strict_mode a MariaDB's sequence numbers can go back: what comes later in its log is new all the same.
            Some(Gtid::MariaDb { .. }) if self.applied.position.as_ref().is_some_and(is_behind) => false,
            Some(gtid) if self.applied.gtids != GtidState::None => self.applied.gtids.contains(gtid),
            _ => self.applied.position.as_ref().is_some_and(|applied| !is_behind(applied)),
        }
    }
}

/// Rows of a table that can be changed again as they are, whoever does it, and taken back.
fn is_found_by_key(item: &Item) -> bool {
    let Item::Rows(rows) = item else { return false };
    rows.table
        .as_ref()
        .is_some_and(|table| table.is_keyed() && table.transactional && table.alone.is_none() && !table.works_out)
}

pub fn log_failure(error: &relay::Error) -> Failure {
    Failure::new(FailureKind::Refused, error.to_string())
        .remedy("everything before it is applied; replace or fetch the log again and run the same command again")
}

fn assemble_failure(error: &AssembleError) -> Failure {
    let remedy = match error {
        AssembleError::Incident { .. } => {
            "everything before it is applied; what the source has lost is in no log, so the target would differ from here on: load it anew from the \
             source, and begin a new --channel where that copy was made, behind the incident"
        }
        AssembleError::Corrupt { .. } | AssembleError::Unexpected { .. } | AssembleError::UnknownEvent { .. } => {
            "everything before it is applied; if the log is intact this is something that heddle does not know yet: please report it"
        }
    };
    Failure::new(FailureKind::Refused, error.to_string()).remedy(remedy)
}

fn keying_failure(error: &KeyingError, transaction: &Transaction) -> Failure {
    let remedy = match error {
        KeyingError::Catalogue(_) => {
            "as the message says; if the target could not be asked, run the same command again"
        }
        KeyingError::Rows { .. } => {
            "if the log is intact, and the table has no TIME, DATETIME or TIMESTAMP with a fraction from mysql56_temporal_format=OFF \
             (MariaDB), please report it"
        }
    };
    Failure::new(FailureKind::Refused, error.to_string()).at(transaction.place()).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::LogPosition;

    #[test]
    fn what_to_do_about_an_event() {
        let position = LogPosition::new("binlog.000003", 157);
        let incident = AssembleError::Incident { position: position.clone(), message: "number 1: lost".to_owned() };
        let failure = assemble_failure(&incident);
        assert!(failure.remedy.contains("load it anew") && !failure.remedy.contains("report it"), "{failure}");
        let unknown = AssembleError::UnknownEvent { position, code: 200, name: "UNKNOWN" };
        assert!(assemble_failure(&unknown).remedy.contains("report it"));
    }
}
