//! Chores beside the hot path, on a thread of their own: lock waits, interruptions, checkpoints, purging, whether the channel is still ours.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;

use crate::flow::handoff::Wake;
use crate::flow::messages::News;
use crate::flow::spill::Spills;
use crate::flow::stats::Stats;
use apply::Target;

#[derive(Debug)]
pub enum Chore {
    /// Look for workers that wait for each other's locks.
    LockWaits,
    /// End what a worker's session executes.
    Interrupt(usize),
    LowWater(Mark),
}

/// Frees what lies below the low water: the relay log's purger.
pub type Purge = Box<dyn FnMut(&Mark) + Send>;

const CHECKPOINT_EVERY: Duration = Duration::from_millis(500);
/// One who has lost the channel and has nothing to apply would not notice otherwise.
const HELD_EVERY: Duration = Duration::from_secs(5);

pub struct Housekeeper {
    pub target: Arc<dyn Target>,
    pub chores: Receiver<Chore>,
    pub news: Sender<News>,
    pub coordinator: Arc<dyn Wake>,
    pub reread: Spills,
    pub purge: Option<Purge>,
    pub stats: Arc<Stats>,
    /// Relaxed order: the low water is not written with the rows, so it is noted here.
    pub checkpoints: bool,
}

impl Housekeeper {
    /// Until there are no more chores; then the last checkpoint is on the target.
    pub fn run(mut self) -> Result<(), Failure> {
        let done = self.keep_house();
        if let Err(failure) = &done {
            self.tell(News::Failed(failure.clone()));
        }
        done
    }

    fn keep_house(&mut self) -> Result<(), Failure> {
        let mut low_water: Option<Mark> = None;
        let mut noted = Instant::now();
        let mut held = Instant::now();
        let mut warned = false;
        let mut in_vain = false;
        loop {
            let is_full = self.stats.relay_full.load(Ordering::Relaxed);
            let pause = if is_full { CHECKPOINT_EVERY } else { HELD_EVERY };
            let done = match self.chores.recv_timeout(pause.min(HELD_EVERY.saturating_sub(held.elapsed()))) {
                Ok(Chore::LockWaits) => self.look_for_lock_waits(),
                Ok(Chore::Interrupt(worker)) => self.target.interrupt(worker),
                Ok(Chore::LowWater(mark)) => {
                    low_water = Some(mark);
                    Ok(())
                }
                // Without room nothing comes that would move the low water.
                Err(RecvTimeoutError::Timeout) if is_full => {
                    self.purge_to(&self.stats.done_with());
                    Ok(())
                }
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(failure) = done
                && !std::mem::replace(&mut warned, true)
            {
                tracing::warn!(
                    "lock waits on the target can not be seen or ended, a conflict then lasts until the lock wait \
                     times out: {failure}"
                );
            }
            if noted.elapsed() >= CHECKPOINT_EVERY
                && let Some(mark) = low_water.clone()
            {
                if self.try_to_note(&mark)? {
                    low_water = None;
                }
                noted = Instant::now();
            }
            if held.elapsed() >= HELD_EVERY {
                in_vain = self.see_whether_it_is_held(in_vain)?;
                self.target.show_source_lost(self.stats.source_lost_for().is_some());
                held = Instant::now();
            }
        }
        low_water.map_or(Ok(()), |mark| self.try_to_note(&mark).map(|_| ()))
    }

    /// True: it could not be asked, as `before` says of the last time. That alone ends nothing: workers that meet it try again.
    fn see_whether_it_is_held(&self, before: bool) -> Result<bool, Failure> {
        match self.target.still_held() {
            Err(lost) if lost.kind == FailureKind::Fenced => Err(lost),
            Err(failure) => {
                if !before {
                    tracing::warn!("the target can not be asked whether the channel is still held: {failure}");
                }
                Ok(true)
            }
            Ok(()) => Ok(false),
        }
    }

    /// False when the target can not be reached, or somebody has ended the statement: what is committed above the low water is on
    /// it all the same, and a later checkpoint does as well.
    fn try_to_note(&mut self, mark: &Mark) -> Result<bool, Failure> {
        match self.note(mark) {
            Err(failure) if matches!(failure.kind, FailureKind::ConnectionLost | FailureKind::Conflict) => {
                tracing::debug!("the low water can not be noted now: {failure}");
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    fn note(&mut self, mark: &Mark) -> Result<(), Failure> {
        if self.checkpoints {
            self.target.checkpoint(mark)?;
        }
        self.reread.forget_to(mark.seq);
        self.purge_to(mark);
        Ok(())
    }

    fn purge_to(&mut self, mark: &Mark) {
        if let Some(purge) = &mut self.purge {
            purge(mark);
        }
    }

    fn look_for_lock_waits(&self) -> Result<(), Failure> {
        for (waiting, blocking) in self.target.lock_waits()? {
            self.tell(News::LockWait { waiting, blocking });
        }
        Ok(())
    }

    fn tell(&self, news: News) {
        // Nobody listens any more when the run is over: the coordinator ends before this thread does.
        let _ = self.news.send(news);
        self.coordinator.wake();
    }
}
