//! Chores beside the hot path, on a thread of their own: lock waits, interruptions, checkpoints, purging.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;

use super::reread::Reread;
use crate::target::Target;

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

pub struct Housekeeper {
    pub target: Arc<dyn Target>,
    pub chores: Receiver<Chore>,
    pub lock_waits: Sender<(usize, usize)>,
    pub reread: Reread,
    pub purge: Option<Purge>,
    /// Relaxed order: the low water is not written with the rows, so it is noted here.
    pub checkpoints: bool,
}

impl Housekeeper {
    /// Until there are no more chores; then the last checkpoint is on the target.
    pub fn run(mut self) -> Result<(), Failure> {
        let mut low_water: Option<Mark> = None;
        let mut noted = Instant::now();
        let mut warned = false;
        while let Ok(chore) = self.chores.recv() {
            let done = match chore {
                Chore::LockWaits => self.look_for_lock_waits(),
                Chore::Interrupt(worker) => self.target.interrupt(worker),
                Chore::LowWater(mark) => {
                    low_water = Some(mark);
                    Ok(())
                }
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
        }
        low_water.map_or(Ok(()), |mark| self.try_to_note(&mark).map(|_| ()))
    }

    /// False when the target can not be reached: what is committed above the low water is on it all the same, and a later
    /// checkpoint does as well.
    fn try_to_note(&mut self, mark: &Mark) -> Result<bool, Failure> {
        match self.note(mark) {
            Err(lost) if lost.kind == FailureKind::ConnectionLost => {
                tracing::debug!("the low water can not be noted now: {lost}");
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
        if let Some(purge) = &mut self.purge {
            purge(mark);
        }
        Ok(())
    }

    fn look_for_lock_waits(&self) -> Result<(), Failure> {
        for pair in self.target.lock_waits()? {
            // The coordinator ends before this thread does.
            let _ = self.lock_waits.send(pair);
        }
        Ok(())
    }
}
