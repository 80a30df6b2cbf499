//! Says once a second that this process lives, for as long as it has its channel: processes that wait for the channel see it on the target. Where somebody asks for the
//! channel it has the run end without gaps. It has a thread of its own: whatever the others wait for, the signs come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use apply::Target;
use engine::failure::{Failure, FailureKind};

use crate::flow::signals::Signals;
use crate::spawn::spawn;

const EVERY: Duration = Duration::from_secs(1);
/// A node that has taken no sign for so long, and no commit, is given up where the target has others.
const NODE_SILENCE: Duration = Duration::from_secs(4);

/// Ends when it is dropped.
pub struct Heartbeat {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    ended: AtomicBool,
    handed_over: AtomicBool,
    /// Why the target's node was given up.
    given_up: Mutex<Option<Failure>>,
}

impl Shared {
    fn given_up(&self) -> MutexGuard<'_, Option<Failure>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heartbeat {
    /// `stop`: the run's, set once the channel is asked for.
    pub fn start(target: &Arc<dyn Target>, signals: &Arc<Signals>, stop: &Arc<AtomicBool>) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let beating = Beating { target: Arc::clone(target), signals: Arc::clone(signals), stop: Arc::clone(stop) };
        let own = Arc::clone(&shared);
        let thread = spawn("heartbeat", move || beating.run(&own))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// True: the run was asked to end, so that another process takes the channel.
    pub fn is_handing_over(&self) -> bool {
        self.shared.handed_over.load(Ordering::Acquire)
    }

    /// The run was asked to end, as the target's node gives no answer and there are others.
    pub fn given_up(&self) -> Option<Failure> {
        self.shared.given_up().clone()
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the heartbeat thread has panicked");
            }
        }
    }
}

struct Beating {
    target: Arc<dyn Target>,
    signals: Arc<Signals>,
    stop: Arc<AtomicBool>,
}

impl Beating {
    fn run(&self, shared: &Shared) {
        let mut answered = Instant::now();
        let mut committed = self.signals.low_water();
        while !shared.ended.load(Ordering::Acquire) {
            match self.target.give_sign(self.signals.source_contact()) {
                Ok(true) if !shared.handed_over.swap(true, Ordering::AcqRel) => {
                    tracing::info!("another process is to take the channel: it is handed over");
                    self.stop.store(true, Ordering::Relaxed);
                }
                Ok(_) => answered = Instant::now(),
                // Who applies, or asks for the lease, fails for the same reason, and says it.
                Err(lost) if lost.kind == FailureKind::Fenced => return,
                Err(failure) => {
                    tracing::debug!("no sign of life could be given: {failure}");
                    let now = self.signals.low_water();
                    if std::mem::replace(&mut committed, now) != now {
                        answered = Instant::now();
                    }
                    if self.target.has_other_nodes() && answered.elapsed() >= NODE_SILENCE {
                        self.give_up(shared, &failure);
                        return;
                    }
                }
            }
            std::thread::park_timeout(EVERY);
        }
    }

    /// Ends the run: what waits for the node is not waited for.
    fn give_up(&self, shared: &Shared, why: &Failure) {
        let message =
            format!("the target's node has given no answer for {} s: {}", NODE_SILENCE.as_secs(), why.message);
        *shared.given_up() = Some(Failure { kind: FailureKind::ConnectionLost, message, ..why.clone() });
        self.stop.store(true, Ordering::Relaxed);
        self.target.give_up();
    }
}
