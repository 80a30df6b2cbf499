//! Chores beside the hot path, on a thread of their own: lock waits, interruptions, checkpoints, purging, and whether this process still holds
//! the channel. It waits for the target as long as it takes; nobody waits for it but the end of the run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apply::Target;
use apply::status::{RetryStatus, Waits};
use crossbeam_channel::Sender;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;

use crate::flow::chores::{ChoreReceiver, WaitOutcome};
use crate::flow::handoff::Wake;
use crate::flow::messages::News;
use crate::flow::run_handles::RunHandles;
use crate::source::purge::RelayPurger;

const CHECKPOINT_EVERY: Duration = Duration::from_millis(500);
/// A process that has lost the channel and has nothing to apply would not notice otherwise.
const HELD_EVERY: Duration = Duration::from_secs(5);

/// Who writes the low water to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// The housekeeper: transactions may commit before earlier ones have.
    ByHousekeeper,
    /// Each group, with its rows.
    WithRows,
}

pub struct Housekeeper {
    target: Arc<dyn Target>,
    chores: ChoreReceiver,
    coordinator: CoordinatorLink,
    relay: Option<RelayPurger>,
    shared: RunHandles,
    checkpoints: Checkpoints,
}

/// How the coordinator is told something.
pub struct CoordinatorLink {
    pub news: Sender<News>,
    pub wake: Arc<dyn Wake>,
}

impl Housekeeper {
    /// `relay`: of a live source.
    pub fn new(
        target: Arc<dyn Target>,
        chores: ChoreReceiver,
        coordinator: CoordinatorLink,
        relay: Option<RelayPurger>,
        shared: RunHandles,
        checkpoints: Checkpoints,
    ) -> Self {
        Self { target, chores, coordinator, relay, shared, checkpoints }
    }

    /// Until there are no more chores; then the last checkpoint is on the target.
    pub fn run(self) -> Result<(), Failure> {
        let done = self.keep_house();
        if let Err(failure) = &done {
            self.tell(News::Failed(failure.clone()));
        }
        done
    }

    fn keep_house(&self) -> Result<(), Failure> {
        let mut low_water: Option<Mark> = None;
        let mut recorded = Instant::now();
        let mut held = Instant::now();
        let mut warned = false;
        let mut in_vain = false;
        let mut retry_recorded = false;
        loop {
            let is_full = self.shared.signals.is_relay_full();
            let pause = if is_full { CHECKPOINT_EVERY } else { HELD_EVERY };
            match self.chores.wait(pause.min(HELD_EVERY.saturating_sub(held.elapsed()))) {
                WaitOutcome::Woken => {
                    if let Err(failure) = self.see_to_locks()
                        && !is_outage(&failure)
                        && !std::mem::replace(&mut warned, true)
                    {
                        tracing::warn!(
                            "lock waits on the target can not be seen or ended, a conflict then lasts until the lock wait \
                             times out: {failure}"
                        );
                    }
                    low_water = self.chores.take_low_water().or(low_water);
                }
                // Without room nothing comes that would move the low water.
                WaitOutcome::TimedOut if is_full => self.purge_to(&self.shared.signals.done_with()),
                WaitOutcome::TimedOut => {}
                WaitOutcome::Ended => break,
            }
            if recorded.elapsed() >= CHECKPOINT_EVERY
                && let Some(mark) = low_water.clone()
            {
                if self.try_to_record(&mark)? {
                    low_water = None;
                }
                recorded = Instant::now();
            }
            if held.elapsed() >= HELD_EVERY {
                in_vain = self.check_held(in_vain)?;
                retry_recorded = self.show(retry_recorded);
                held = Instant::now();
            }
        }
        low_water.map_or(Ok(()), |mark| self.try_to_record(&mark).map(|_| ()))
    }

    /// What `heddle status` says of it. `before`, and returned: a retry is recorded on the target.
    fn show(&self, before: bool) -> bool {
        let signals = &self.shared.signals;
        let retried = self.shared.measures.retried();
        let closed = retried.as_ref().is_some_and(|retried| retried.kind == FailureKind::Maintenance);
        self.target.show_waits(Waits {
            source_lost: signals.source().outage().is_some(),
            paused: signals.is_paused(),
            closed,
            ..Waits::default()
        });
        let retrying = retried.filter(|_| !closed).map(|retried| RetryStatus {
            message: retried.message,
            code: retried.code,
            tries: retried.tries,
            seconds: retried.since.elapsed().as_secs(),
        });
        if retrying.is_none() && !before {
            return false;
        }
        match self.target.record_retry(retrying.as_ref()) {
            Ok(()) => retrying.is_some(),
            Err(failure) => {
                tracing::debug!("what is tried again is not recorded: {failure}");
                before
            }
        }
    }

    /// Does all of it, and returns the first failure.
    fn see_to_locks(&self) -> Result<(), Failure> {
        let mut done = Ok(());
        for worker in self.chores.take_interrupts() {
            done = done.and(self.target.interrupt(worker));
        }
        if self.chores.take_lock_waits() {
            done = done.and(self.look_for_lock_waits());
        }
        if self.chores.take_lock_holders() {
            match self.target.lock_holders() {
                Ok(holders) => self.shared.measures.set_holders(holders),
                Err(failure) => tracing::debug!("who holds locks on the target can not be seen: {failure}"),
            }
        }
        done
    }

    /// True: the target could not be asked; `before`: the same of the last time. That alone ends nothing: workers that meet it try again.
    fn check_held(&self, before: bool) -> Result<bool, Failure> {
        match self.target.still_held() {
            Err(lost) if lost.kind == FailureKind::Fenced => Err(lost),
            Err(failure) => {
                if failure.kind == FailureKind::ConnectionLost {
                    apply::retry::target_is_lost(&failure.message);
                } else if !before {
                    tracing::warn!(
                        "the target does not answer whether this process still holds the channel: {failure}"
                    );
                }
                Ok(true)
            }
            Ok(()) => {
                if before {
                    apply::retry::target_is_reached();
                }
                Ok(false)
            }
        }
    }

    /// False: the target cannot be reached, is full or closed, or the statement was killed. What is committed above the low water is on the target all the same,
    /// and a later checkpoint does as well.
    fn try_to_record(&self, mark: &Mark) -> Result<bool, Failure> {
        match self.record(mark) {
            Ok(()) => Ok(true),
            Err(failure) => match failure.kind {
                FailureKind::ConnectionLost
                | FailureKind::Conflict
                | FailureKind::Exhausted
                | FailureKind::Maintenance => {
                    tracing::debug!("the low water can not be recorded now: {failure}");
                    Ok(false)
                }
                FailureKind::Divergence | FailureKind::Refused | FailureKind::Fenced | FailureKind::Stopped => {
                    Err(failure)
                }
            },
        }
    }

    fn record(&self, mark: &Mark) -> Result<(), Failure> {
        if self.checkpoints == Checkpoints::ByHousekeeper {
            self.target.checkpoint(mark)?;
        }
        self.shared.spilled.forget_to(mark.seq);
        self.purge_to(mark);
        Ok(())
    }

    fn purge_to(&self, mark: &Mark) {
        if let Some(relay) = &self.relay {
            relay.purge_to(mark);
        }
    }

    fn look_for_lock_waits(&self) -> Result<(), Failure> {
        let began = Instant::now();
        let waits = self.target.lock_waits();
        self.chores.looked(began.elapsed());
        for (waiting, blocking) in waits? {
            self.tell(News::LockWait { waiting, blocking });
        }
        Ok(())
    }

    fn tell(&self, news: News) {
        // The coordinator ends before this thread does: then nobody needs to know any more.
        let _ = self.coordinator.news.send(news);
        self.coordinator.wake.wake();
    }
}

/// It is said where the channel waits for the target.
fn is_outage(failure: &Failure) -> bool {
    matches!(failure.kind, FailureKind::ConnectionLost | FailureKind::Maintenance)
}
