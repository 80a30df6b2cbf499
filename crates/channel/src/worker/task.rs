//! The worker as a stage: orders in, reports out. A caller's thread may send a small group to the target; its answer, and all else, is for
//! the worker's own thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apply::Commit;
use apply::retry::pause;
use crossbeam_channel::{Receiver, Sender, TryRecvError};
use engine::Seq;
use engine::compact::{Batch, Plan};
use engine::failure::{Failure, FailureKind};
use engine::group::Group;
use engine::schedule::{Run, Signals, Worker};
use engine::transaction::Transaction;

use super::applier::Applier;
use super::isolate;
use super::orders::{GrantAnswer, Orders};
use crate::flow::handoff::{Amount, Handoff, Stage, StageState, Thread, Wake};
use crate::flow::measures::{Measures, Turn};
use crate::flow::messages::{Order, Report};

pub struct WorkerTask {
    applier: Applier,
    orders: Orders,
    reports: Sender<Report>,
    coordinator: Arc<dyn Wake>,
    measures: Arc<Measures>,
    /// What comes before any other order.
    next: Option<NextStep>,
}

/// What a caller's thread has begun, or left to the worker's own thread.
#[derive(Debug)]
enum NextStep {
    /// A group is on its way to the target, or could not be sent. What became of it is still to be found out.
    Sent {
        group: Arc<Group>,
        run: Run,
        sent: Result<(), Failure>,
    },
    Order(Order),
}

/// The loop of the worker's own thread.
pub fn run(worker: &Handoff<WorkerTask>, number: Worker, reports: &Sender<Report>) {
    if worker.run_loop().is_none() {
        // If the coordinator is gone, nobody waits for this worker.
        let _ = reports.send(Report::Panicked(number));
    }
}

/// Nothing depends on it: the worker is woken for every order.
const TICK: Duration = Duration::from_secs(60);

impl Stage for WorkerTask {
    fn run_once(&mut self, thread: Thread) -> StageState {
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
struct Disconnected;

impl WorkerTask {
    pub fn new(
        applier: Applier,
        orders: Receiver<Order>,
        reports: Sender<Report>,
        coordinator: Arc<dyn Wake>,
        measures: Arc<Measures>,
    ) -> Self {
        Self { applier, orders: Orders::new(orders), reports, coordinator, measures, next: None }
    }

    /// Until there are no more orders.
    fn work(&mut self) -> StageState {
        loop {
            let next = self.next.take().map_or_else(|| self.orders.next().map(NextStep::Order), Ok);
            let done = match next {
                Ok(NextStep::Sent { group, run, sent }) => {
                    let since = Instant::now();
                    let outcome = sent.and_then(|()| self.applier.session.answer());
                    self.committed(since, &outcome);
                    self.after(&group, run, outcome, 0)
                }
                Ok(NextStep::Order(Order::Run { group, run })) => self.group(&group, run),
                // Left over from an attempt that has ended.
                Ok(NextStep::Order(Order::Release(_) | Order::Grant(_) | Order::Abort { .. })) => Ok(()),
                Err(TryRecvError::Empty) => return StageState::Sleep,
                Err(TryRecvError::Disconnected) => return StageState::End,
            };
            if done.is_err() {
                return StageState::End;
            }
        }
    }

    /// Sends a group off if it is one statement. Its answer, and any other order, is for the own thread.
    fn begin(&mut self) -> StageState {
        if self.next.is_some() {
            return StageState::Again;
        }
        let order = match self.orders.next_new() {
            Ok(order) => order,
            Err(TryRecvError::Empty) => return StageState::Sleep,
            Err(TryRecvError::Disconnected) => return StageState::Again,
        };
        self.next = Some(match order {
            Order::Run { group, run } => match self.send(&group, run) {
                Ok(false) => NextStep::Order(Order::Run { group, run }),
                Ok(true) => NextStep::Sent { group, run, sent: Ok(()) },
                Err(failure) => NextStep::Sent { group, run, sent: Err(failure) },
            },
            order => NextStep::Order(order),
        });
        StageState::Again
    }

    fn send(&mut self, group: &Group, run: Run) -> Result<bool, Failure> {
        let at_once = run.granted && run.signals == Signals::Commit && !run.isolate && !group.is_barrier();
        if at_once && !self.applier.commits_each(group) { self.applier.send(group) } else { Ok(false) }
    }

    fn report(&self, group: &Group, report: Report) -> Result<(), Disconnected> {
        self.reports.send(report).map_err(|_| Disconnected)?;
        // Run inline, the coordinator usually answers with this worker's next order.
        self.coordinator.hand_over(Amount::of_transactions(group.transactions.len()));
        Ok(())
    }

    fn group(&mut self, group: &Group, run: Run) -> Result<(), Disconnected> {
        let mut committed_to = 0;
        let outcome = if run.isolate {
            isolate::run(&mut self.applier, group, &mut committed_to)
        } else {
            match self.together(group, run, &mut committed_to) {
                Ok(Some(commit)) => Ok(commit),
                Ok(None) => return Err(Disconnected),
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
    ) -> Result<(), Disconnected> {
        let outcome = match outcome {
            Err(failure) if failure.kind == FailureKind::ConnectionLost && !run.isolate => {
                self.applier.after_loss(group, &failure, &mut committed_to)
            }
            Err(failure) if committed_to >= group.mark.seq => {
                // It failed after the last commit. If the session cannot be used any more, its next group finds that out.
                let rolled_back = self.applier.roll_back();
                tracing::debug!(worker = self.applier.number, ?rolled_back, "after all was committed: {failure}");
                Ok(Commit::Durable)
            }
            Err(failure) => self.applier.roll_back().and(Err(failure)),
            committed => committed,
        };
        if let Err(failure) = &outcome {
            std::thread::sleep(pause(failure.kind, run.attempt));
        }
        let id = group.id;
        match outcome {
            Ok(Commit::Durable) => self.report(group, Report::Committed(id)),
            Ok(Commit::Ordered) => {
                self.report(group, Report::Ordered(id))?;
                match self.applier.session.wait_durable() {
                    Ok(()) => self.report(group, Report::Committed(id)),
                    Err(failure) => self.report(group, Report::Failed { group: id, failure, committed_to: 0 }),
                }
            }
            Err(failure) => self.report(group, Report::Failed { group: id, failure, committed_to }),
        }
    }

    /// The whole group in one run. `Ok(None)`: the coordinator is gone.
    fn together(&mut self, group: &Group, run: Run, committed_to: &mut Seq) -> Result<Option<Commit>, Failure> {
        let [first, ..] = group.transactions.as_slice() else {
            return Err(Failure::new(FailureKind::Refused, "an empty group"));
        };
        let named_by = group.named_by().unwrap_or(first);
        if group.is_barrier() {
            return self.applier.in_order(group, first, run.attempt, committed_to).map(Some);
        }
        if self.applier.commits_each(group) {
            return self.applier.each(group, committed_to).map(Some);
        }
        let Plan { independent, mut deferred } = self.applier.plan(group);
        // Granted, and nobody waits to hear that all is applied: everything goes with the commit.
        let at_once = run.granted && run.signals == Signals::Commit;
        if run.granted {
            deferred = [independent, deferred].concat();
        } else if !independent.is_empty() {
            // An interruption only meets what has begun.
            if self.orders.is_aborted(group.id, run.attempt) {
                return Err(in_the_way());
            }
            self.applier.session.apply(named_by, &independent)?;
        }
        if !at_once && (run.granted || deferred.is_empty()) {
            self.apply_deferred(named_by, &mut deferred)?;
            self.announce(group, run);
        }
        if !run.granted && !self.until_granted(group, run, named_by, &mut deferred)? {
            return Ok(None);
        }
        let since = Instant::now();
        let committed = self.applier.commit(group, named_by, &deferred);
        self.committed(since, &committed);
        committed.map(Some)
    }

    /// False: the coordinator is gone.
    fn until_granted(
        &mut self,
        group: &Group,
        run: Run,
        named_by: &Transaction,
        deferred: &mut Vec<Batch<'_>>,
    ) -> Result<bool, Failure> {
        loop {
            self.applier.session.waits_for_grant();
            let turn = if deferred.is_empty() { Turn::Commit } else { Turn::Rows };
            let waiting = self.measures.wait_to_commit(self.applier.number, turn);
            let granted = self.orders.wait_for_grant(group.id, run.attempt);
            drop(waiting);
            match granted {
                Some(GrantAnswer::Yes) => return Ok(true),
                Some(GrantAnswer::DeferredRows) => {
                    self.apply_deferred(named_by, deferred)?;
                    self.announce(group, run);
                }
                Some(GrantAnswer::Aborted) => return Err(in_the_way()),
                None => return Ok(false),
            }
        }
    }

    fn committed(&self, since: Instant, outcome: &Result<Commit, Failure>) {
        if outcome.is_ok() {
            self.measures.work().commit(since.elapsed());
        }
    }

    fn apply_deferred(&mut self, named_by: &Transaction, deferred: &mut Vec<Batch<'_>>) -> Result<(), Failure> {
        if !deferred.is_empty() {
            self.applier.session.apply(named_by, deferred)?;
            deferred.clear();
        }
        Ok(())
    }

    fn announce(&self, group: &Group, run: Run) {
        if run.signals == Signals::AppliedFirst {
            // If the coordinator is gone, the next order says so.
            let _ = self.report(group, Report::Applied(group.id));
        }
    }
}

fn in_the_way() -> Failure {
    Failure::new(FailureKind::Conflict, "an earlier group needs a lock that this one holds")
}
