//! The workers of a run: their threads and sessions, and, where their number is left to Heddle, how many there are.
//!
//! It decides nothing about transactions. Sessions are opened here, so that nobody waits for one that the target does not give.

mod climb;

pub use self::climb::most;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use apply::{Session, Target};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use engine::failure::Failure;
use engine::schedule::Worker;

use self::climb::{Climb, ClimbSample};
use crate::flow::handoff::{Handoff, Wake};
use crate::flow::messages::{Report, Staffing, WorkerHandle};
use crate::flow::run_handles::RunHandles;
use crate::spawn::spawn;
use crate::worker::{self, Applier, Mode, WorkerTask};

/// Orders for one worker. They are never full, so the coordinator never waits: of an attempt to run a group a worker gets the order to run it, and
/// at most one of each to release, to grant and to abort. The next attempt, or group, comes after its report on the one before, so that at most the
/// three last orders of that one are still there: 3 + 4.
const ORDERS_MAX: usize = 8;
/// Between two looks at how fast the target reads.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Makes workers.
pub struct Maker {
    pub shared: RunHandles,
    pub coordinator: Arc<dyn Wake>,
    pub reports: Sender<Report>,
    pub mode: Mode,
}

impl Maker {
    /// Its thread ends once nobody has the handle.
    pub fn make(&self, number: Worker, session: Box<dyn Session>) -> Result<(WorkerHandle, JoinHandle<()>)> {
        let (send_orders, orders) = bounded(ORDERS_MAX);
        let applier = Applier::new(number, session, self.shared.spilled.clone(), self.mode);
        let measures = Arc::clone(&self.shared.measures);
        let task = WorkerTask::new(applier, orders, self.reports.clone(), Arc::clone(&self.coordinator), measures);
        let worker = Arc::new(Handoff::new(task));
        let handle = WorkerHandle { orders: send_orders, worker: Arc::<Handoff<WorkerTask>>::clone(&worker) };
        let reports = self.reports.clone();
        let thread = spawn(&format!("worker-{number}"), move || worker::run(&worker, number, &reports))?;
        Ok((handle, thread))
    }
}

/// Decides how many workers there are. On a thread of its own, as it asks the target.
pub struct Workforce {
    pub maker: Maker,
    pub target: Arc<dyn Target>,
    pub staffing: Sender<Staffing>,
    /// Nothing comes; disconnected: the run ends.
    pub ended: Receiver<()>,
    /// At first, and at least.
    pub workers: usize,
}

impl Workforce {
    /// Until the run ends. Whatever fails, the workers that are there go on.
    pub fn run(self) {
        let mut threads = Vec::new();
        if let Err(failure) = self.look(&mut threads) {
            tracing::warn!("the number of workers stays as it is: {failure:#}");
        }
        let Self { maker, staffing, .. } = self;
        // Their threads end when the coordinator has.
        drop((maker, staffing));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a worker's thread has panicked: this is a bug in heddle");
            }
        }
    }

    fn look(&self, threads: &mut Vec<JoinHandle<()>>) -> Result<()> {
        let mut climb = Climb::new(self.workers);
        let (mut used, mut made) = (self.workers, self.workers);
        let mut before: Option<Moment> = None;
        while self.ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            // A channel that keeps up asks nothing.
            if !self.is_behind() {
                before = None;
                continue;
            }
            let now = match self.moment() {
                Ok(now) => now,
                Err(failure) => {
                    tracing::debug!("what the target reads from its disk can not be seen: {failure}");
                    before = None;
                    continue;
                }
            };
            let Some(last) = before.replace(now) else { continue };
            let wanted = climb.look(now.since(&last));
            if wanted == used {
                continue;
            }
            while made < wanted {
                let session = self.target.session(made)?;
                let (handle, thread) = self.maker.make(made, session)?;
                threads.push(thread);
                self.tell(Staffing::Worker(handle));
                made += 1;
            }
            if wanted > used {
                tracing::info!("{wanted} workers instead of {used}: the target reads rows from its disk");
            } else {
                tracing::info!("{wanted} workers again: {used} are not faster now");
            }
            self.tell(Staffing::Use(wanted));
            used = wanted;
        }
        Ok(())
    }

    fn is_behind(&self) -> bool {
        self.shared().measures.scheduled().queued_transactions > 0
    }

    fn shared(&self) -> &RunHandles {
        &self.maker.shared
    }

    fn moment(&self) -> Result<Moment, Failure> {
        Ok(Moment {
            rows: self.shared().measures.scheduled().counters.rows,
            pages_read: self.target.pages_read()?,
            at: Instant::now(),
        })
    }

    fn tell(&self, change: Staffing) {
        // The coordinator ends before this thread does: then nobody needs to know any more.
        let _ = self.staffing.send(change);
        self.maker.coordinator.wake();
    }
}

#[derive(Clone, Copy)]
struct Moment {
    rows: u64,
    pages_read: u64,
    at: Instant,
}

impl Moment {
    fn since(&self, before: &Moment) -> ClimbSample {
        ClimbSample {
            rows: self.rows.saturating_sub(before.rows),
            seconds: (self.at - before.at).as_secs_f64(),
            pages_read: self.pages_read.saturating_sub(before.pages_read),
        }
    }
}
