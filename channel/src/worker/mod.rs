//! One worker: takes groups, applies them on its session, reports what became of them.
//!
//! Decides nothing about order: it commits when it is granted to, and rolls back when it is told to.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use engine::Seq;
use engine::compact::{Batch, Plan, plan};
use engine::failure::{Directive, Failure, FailureKind};
use engine::group::{Group, GroupId};
use engine::schedule::{Run, Signals, Worker};
use engine::transaction::Transaction;

use crate::flow::handoff::{Amount, Handoff, Stage, Then, Thread, Wake};
use crate::flow::messages::{Order, Report};
use crate::flow::spill::Spills;
use crate::flow::stats::Stats;
use apply::retry::{back_off, until_reached};
use apply::{Commit, Range, RecordedAs, Session, Single};

/// Transactions of a group that has failed which are tried together once more, before they are tried one by one.
const PIECE_TRANSACTIONS: usize = 100;
/// How often statements are tried together.
const TOGETHER_TRIES_MAX: u32 = 2;
/// How often one transaction is tried that fails although each of its rows can be applied.
const TRIES_MAX: u32 = 3;

pub struct WorkerTask {
    pub number: Worker,
    pub session: Box<dyn Session>,
    pub orders: Receiver<Order>,
    pub reports: Sender<Report>,
    pub coordinator: Arc<dyn Wake>,
    pub reread: Spills,
    pub merge: bool,
    pub relaxed: bool,
    /// The transactions of a group only share packets: each commits by itself. In the source's order one that has no other beside it may be applied
    /// ahead of its turn.
    pub apart: bool,
    pub stats: Arc<Stats>,
    /// To see to before anything else.
    pub next: Option<Next>,
    /// Orders for the group under way that have come before it could do anything about them.
    pub early: VecDeque<Order>,
}

/// What a bringer has begun, or left to the worker's own thread.
#[derive(Debug)]
pub enum Next {
    /// A group is on its way to the target, or could not be sent: what became of it is still to be found out.
    Sent {
        group: Arc<Group>,
        run: Run,
        sent: Result<(), Failure>,
    },
    Order(Order),
}

/// The worker's own thread.
pub fn run(handoff: &Handoff<WorkerTask>, worker: Worker, reports: &Sender<Report>) {
    if handoff.run_loop().is_none() {
        // If the coordinator has gone nobody waits for this worker.
        let _ = reports.send(Report::Panicked(worker));
    }
}

/// Nothing depends on it: with every order the bell rings.
const TICK: Duration = Duration::from_secs(60);

impl Stage for WorkerTask {
    fn run_once(&mut self, thread: Thread) -> Then {
        match thread {
            Thread::Own => self.work(),
            Thread::Callers => self.begin(),
        }
    }

    fn tick(&self) -> Duration {
        TICK
    }
}

/// The coordinator is gone: nothing is left to do.
struct Gone;

impl WorkerTask {
    /// Until there are no more orders.
    fn work(&mut self) -> Then {
        loop {
            let next = self.next.take().or_else(|| self.early.pop_front().map(Next::Order));
            let next = next.map_or_else(|| self.orders.try_recv().map(Next::Order), Ok);
            let done = match next {
                Ok(Next::Sent { group, run, sent }) => {
                    let outcome = sent.and_then(|()| self.session.answer());
                    self.after(&group, run, outcome, 0)
                }
                Ok(Next::Order(Order::Run { group, run })) => self.group(&group, run),
                // Left over from an attempt that has ended by itself.
                Ok(Next::Order(Order::Release(_) | Order::Grant(_) | Order::Abort { .. })) => Ok(()),
                Err(TryRecvError::Empty) => return Then::Sleep,
                Err(TryRecvError::Disconnected) => return Then::End,
            };
            if done.is_err() {
                return Then::End;
            }
        }
    }

    /// Sends a group off if it is one statement; its answer, and any other order, is for the own thread.
    fn begin(&mut self) -> Then {
        if self.next.is_some() {
            return Then::Again;
        }
        let order = match self.orders.try_recv() {
            Ok(order) => order,
            Err(TryRecvError::Empty) => return Then::Sleep,
            Err(TryRecvError::Disconnected) => return Then::Again,
        };
        self.next = Some(match order {
            Order::Run { group, run } => match self.send(&group, run) {
                Ok(false) => Next::Order(Order::Run { group, run }),
                Ok(true) => Next::Sent { group, run, sent: Ok(()) },
                Err(failure) => Next::Sent { group, run, sent: Err(failure) },
            },
            order => Next::Order(order),
        });
        Then::Again
    }

    fn send(&mut self, group: &Group, run: Run) -> Result<bool, Failure> {
        let at_once = run.granted
            && run.signals == Signals::Commit
            && !run.isolate
            && !self.commits_each(group)
            && !group.is_barrier();
        let Some(first) = group.transactions.first().filter(|_| at_once) else { return Ok(false) };
        let Plan { free, held } = plan(group, self.merge);
        let range = self.range(group);
        self.session.send(first, &[free, held].concat(), range)
    }

    fn report(&self, group: &Group, report: Report) -> Result<(), Gone> {
        self.reports.send(report).map_err(|_| Gone)?;
        // Usually it has this worker's next order for an answer.
        self.coordinator.hand_over(Amount::of_transactions(group.transactions.len()));
        Ok(())
    }

    fn group(&mut self, group: &Group, run: Run) -> Result<(), Gone> {
        let mut committed_to = 0;
        let outcome = if run.isolate {
            self.isolated(group, &mut committed_to)
        } else {
            match self.together(group, run, &mut committed_to) {
                Ok(Some(outcome)) => outcome,
                Ok(None) => return Err(Gone),
                Err(failure) => Err(failure),
            }
        };
        self.after(group, run, outcome, committed_to)
    }

    fn after(
        &mut self,
        group: &Group,
        run: Run,
        outcome: Result<Commit, Failure>,
        mut committed_to: Seq,
    ) -> Result<(), Gone> {
        let outcome = match outcome {
            Err(failure) if failure.kind == FailureKind::ConnectionLost && !run.isolate => {
                self.after_loss(group, &failure, &mut committed_to)
            }
            Err(failure) if committed_to >= group.mark.seq => {
                // What failed came after the last commit. If the session can not be used any more, its next group finds that out.
                let rolled_back = self.roll_back();
                tracing::debug!(worker = self.number, ?rolled_back, "after all was committed: {failure}");
                Ok(Commit::Durable)
            }
            Err(failure) => self.roll_back().and(Err(failure)),
            committed => committed,
        };
        if outcome.as_ref().is_err_and(|failure| failure.kind == FailureKind::Exhausted) {
            // What is full does not empty in no time.
            std::thread::sleep(back_off(run.attempt));
        }
        let id = group.id;
        match outcome {
            Ok(Commit::Durable) => self.report(group, Report::Committed(id)),
            Ok(Commit::Ordered) => {
                self.report(group, Report::Ordered(id))?;
                match self.session.wait_durable() {
                    Ok(()) => self.report(group, Report::Committed(id)),
                    Err(failure) => self.report(group, Report::Failed { group: id, failure, committed_to: 0 }),
                }
            }
            Err(failure) => self.report(group, Report::Failed { group: id, failure, committed_to }),
        }
    }

    fn range<'a>(&self, group: &'a Group) -> Range<'a> {
        let recorded_as = if self.relaxed { RecordedAs::CommittedRange } else { RecordedAs::LowWater };
        let branches = if group.has_branches { group.transactions.as_slice() } else { &[] };
        Range { first: group.first(), before: group.before.seq, mark: &group.mark, recorded_as, branches }
    }

    /// The whole group in one target transaction. `Ok(None)`: the coordinator is gone.
    #[allow(clippy::type_complexity)]
    fn together(
        &mut self,
        group: &Group,
        run: Run,
        committed_to: &mut Seq,
    ) -> Result<Option<Result<Commit, Failure>>, Failure> {
        let Some(first) = group.transactions.first() else {
            return Err(Failure::new(FailureKind::Refused, "an empty group"));
        };
        if group.is_barrier() {
            return Ok(Some(self.in_order(group, first, run.attempt, committed_to)));
        }
        if self.commits_each(group) {
            return Ok(Some(self.each(group, committed_to)));
        }
        let Plan { free, held } = plan(group, self.merge);
        // Granted and nobody waits to hear that all is applied: everything goes with the commit.
        let at_once = run.granted && run.signals == Signals::Commit;
        let (free, mut held) = if run.granted { (Vec::new(), [free, held].concat()) } else { (free, held) };
        if !free.is_empty() {
            // An interruption only meets what has begun.
            if self.is_aborted(group.id, run.attempt) {
                return Err(in_the_way());
            }
            self.session.apply(first, &free)?;
        }
        if !at_once && (run.granted || held.is_empty()) {
            self.apply_held(first, &mut held)?;
            self.announce(group, run);
        }
        if !run.granted && !self.until_granted(group, run, first, &mut held)? {
            return Ok(None);
        }
        let range = self.range(group);
        Ok(Some(self.session.commit(first, &held, range)))
    }

    /// False: the coordinator is gone.
    fn until_granted(
        &mut self,
        group: &Group,
        run: Run,
        first: &Transaction,
        held: &mut Vec<Batch<'_>>,
    ) -> Result<bool, Failure> {
        loop {
            self.session.waits_for_grant();
            match self.wait_for_grant(group.id, run.attempt) {
                Some(Granted::Yes) => return Ok(true),
                Some(Granted::Held) => {
                    self.apply_held(first, held)?;
                    self.announce(group, run);
                }
                Some(Granted::Aborted) => return Err(in_the_way()),
                None => return Ok(false),
            }
        }
    }

    fn apply_held(&mut self, first: &Transaction, held: &mut Vec<Batch<'_>>) -> Result<(), Failure> {
        if !held.is_empty() {
            self.session.apply(first, held)?;
            held.clear();
        }
        Ok(())
    }

    fn announce(&self, group: &Group, run: Run) {
        if run.signals == Signals::AppliedFirst {
            // A coordinator that is gone is found out with the next order.
            let _ = self.report(group, Report::Applied(group.id));
        }
    }

    /// A connection that is gone has rolled back, and is found out to be gone when it is used next.
    fn roll_back(&mut self) -> Result<(), Failure> {
        match self.session.rollback() {
            Err(lost) if lost.kind == FailureKind::ConnectionLost => Ok(()),
            done => done,
        }
    }

    fn is_aborted(&mut self, group: GroupId, attempt: u32) -> bool {
        self.early.extend(self.orders.try_iter());
        let is_abort = |order: &Order| matches!(order, Order::Abort { group: id, attempt: tried } if *id == group && *tried == attempt);
        self.early.iter().any(is_abort)
    }

    fn wait_for_grant(&mut self, group: GroupId, attempt: u32) -> Option<Granted> {
        let since = Instant::now();
        let granted = loop {
            match self.early.pop_front().map_or_else(|| self.orders.recv(), Ok) {
                Ok(Order::Grant(id)) if id == group => break Some(Granted::Yes),
                Ok(Order::Release(id)) if id == group => break Some(Granted::Held),
                Ok(Order::Abort { group: id, attempt: tried }) if id == group && tried == attempt => {
                    break Some(Granted::Aborted);
                }
                Ok(_) => {}
                Err(_) => break None,
            }
        };
        self.stats.waited_for_grant(self.number, since.elapsed());
        granted
    }

    fn commits_each(&self, group: &Group) -> bool {
        self.apart && group.transactions.len() > 1
    }

    /// One transaction after the other, each its own commit, in as few packets as can be.
    fn each(&mut self, group: &Group, committed_to: &mut Seq) -> Result<Commit, Failure> {
        let groups: Vec<Group> = group.singles().collect();
        self.session.commit_each(&self.singles(group, &groups), committed_to)
    }

    /// A barrier, and what runs after it in the log's order.
    fn in_order(
        &mut self,
        group: &Group,
        first: &Transaction,
        attempt: u32,
        committed_to: &mut Seq,
    ) -> Result<Commit, Failure> {
        if group.transactions.len() == 1 {
            let range = self.range(group);
            return self.session.run_barrier(first, &self.reread, range).map(|()| Commit::Durable);
        }
        let groups: Vec<Group> = group.singles().collect();
        let singles = self.singles(group, &groups);
        // What has ended twice, say with the connection, gets somewhere one by one.
        if attempt > TOGETHER_TRIES_MAX {
            return self.session.run_serially(&singles, &self.reread, committed_to);
        }
        self.session.run_in_order(&singles, &self.reread, committed_to)
    }

    /// `groups`: its transactions one by one.
    fn singles<'a>(&self, group: &'a Group, groups: &'a [Group]) -> Vec<Single<'a>> {
        let rows = |single: &'a Group| if single.is_barrier() { Vec::new() } else { plan(single, false).free };
        let one = |(single, transaction): (&'a Group, &'a Arc<Transaction>)| Single {
            transaction,
            batches: rows(single),
            range: self.range(single),
        };
        groups.iter().zip(&group.transactions).map(one).collect()
    }

    /// The same in pieces, and one by one where a piece fails: a failure names its place.
    fn isolated(&mut self, group: &Group, committed_to: &mut Seq) -> Result<Commit, Failure> {
        let together = if self.apart || group.is_barrier() { 1 } else { PIECE_TRANSACTIONS };
        for piece in group.pieces(together) {
            if piece.transactions.len() > 1 && self.piece_commits(&piece)? {
                *committed_to = piece.last();
                continue;
            }
            self.one_by_one(&piece, committed_to)?;
        }
        Ok(Commit::Durable)
    }

    /// False: nothing of it is committed, and its transactions one by one will say why.
    fn piece_commits(&mut self, piece: &Group) -> Result<bool, Failure> {
        match self.piece(piece) {
            Ok(()) => Ok(true),
            Err(lost) if lost.kind == FailureKind::ConnectionLost => Ok(self.reconnect(piece, &lost)? >= piece.last()),
            Err(fenced) if fenced.kind == FailureKind::Fenced => self.roll_back().and(Err(fenced)),
            Err(_) => self.roll_back().map(|()| false),
        }
    }

    fn piece(&mut self, piece: &Group) -> Result<(), Failure> {
        let Some(first) = piece.transactions.first() else { return Ok(()) };
        let plan = plan(piece, false);
        match self.session.commit(first, &plan.free, self.range(piece))? {
            Commit::Durable => Ok(()),
            Commit::Ordered => self.session.wait_durable(),
        }
    }

    fn one_by_one(&mut self, group: &Group, committed_to: &mut Seq) -> Result<(), Failure> {
        for (single, transaction) in group.singles().zip(&group.transactions) {
            let mut tries = 1;
            while let Err(failure) = self.single_across_losses(transaction, &single) {
                self.roll_back()?;
                let (failure, repeats) = self.name_the_row(&single, failure);
                let is_answer = transaction.barrier.is_some() || failure.kind.directive() != Directive::Isolate;
                if repeats || is_answer || tries == TRIES_MAX {
                    return Err(failure);
                }
                // Such as MySQL's answer to a BINLOG statement that somebody has ended: "unknown error".
                tracing::warn!(worker = self.number, "tried again, as no row of it fails by itself: {failure}");
                tries += 1;
            }
            *committed_to = transaction.seq;
        }
        Ok(())
    }

    fn single_across_losses(&mut self, transaction: &Transaction, single: &Group) -> Result<(), Failure> {
        match self.single(transaction, single) {
            Err(lost) if lost.kind == FailureKind::ConnectionLost => match self.reconnect(single, &lost)? {
                seq if seq >= transaction.seq => Ok(()),
                _ => self.single(transaction, single),
            },
            done => done,
        }
    }

    fn single(&mut self, transaction: &Transaction, single: &Group) -> Result<(), Failure> {
        if transaction.barrier.is_some() {
            return self.session.run_barrier(transaction, &self.reread, self.range(single));
        }
        self.piece(single)
    }

    /// Applies the rows one by one, then rolls back: which is the first that fails? True: there is one, and the failure names it.
    fn name_the_row(&mut self, single: &Group, failure: Failure) -> (Failure, bool) {
        let Some(transaction) = single.transactions.first() else { return (failure, false) };
        let mut place = transaction.place();
        let mut repeats = false;
        'search: for batch in &plan(single, false).free {
            for row in &batch.rows {
                let one = batch.with_row(*row);
                if let Err(same) = self.session.apply(transaction, std::slice::from_ref(&one)) {
                    place = format!("{}, {}", apply::row_text::describe(&one), transaction.place());
                    if same.kind == FailureKind::ConnectionLost {
                        return (same, true);
                    }
                    repeats = same.kind == failure.kind;
                    break 'search;
                }
            }
        }
        match self.roll_back() {
            Ok(()) if failure.place.is_empty() => (failure.at(place), repeats),
            Ok(()) => (failure, repeats),
            Err(lost) => (lost, true),
        }
    }

    /// The connection is lost: gets it back, and tells up to where the range is committed.
    fn reconnect(&mut self, group: &Group, failure: &Failure) -> Result<Seq, Failure> {
        tracing::warn!(worker = self.number, "connection to the target lost: {}", failure.message);
        let range = self.range(group);
        until_reached(|| self.session.recover(&group.transactions, range))
    }

    /// After a lost connection in a run that was not isolated: a group is committed as a whole or not at all, unless its
    /// transactions commit apart.
    fn after_loss(&mut self, group: &Group, failure: &Failure, committed_to: &mut Seq) -> Result<Commit, Failure> {
        *committed_to = self.reconnect(group, failure)?;
        if *committed_to >= group.mark.seq {
            return Ok(Commit::Durable);
        }
        let message = format!("{} (connected again; the rest of the group was not committed)", failure.message);
        Err(Failure::new(FailureKind::Conflict, message))
    }
}

fn in_the_way() -> Failure {
    Failure::new(FailureKind::Conflict, "an earlier group needs a lock that this one holds")
}

enum Granted {
    Yes,
    /// Not yet, but the rows that were held.
    Held,
    Aborted,
}
