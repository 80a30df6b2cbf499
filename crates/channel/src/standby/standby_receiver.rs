//! The receiver of a process that waits, in a thread of its own: tries again for as long as the process waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use apply::ChannelRecord;
use engine::failure::Failure;

use crate::errors::failure;
use crate::flow::handoff::Wake;
use crate::monitor::Monitor;
use crate::source::Source;
use crate::source::open;
use crate::source::purge::RelayPurger;
use crate::spawn::spawn;
use crate::spec::Spec;

const RETRY: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);

/// Receives until [`StandbyReceiver::end`].
pub struct StandbyReceiver(Arc<Shared>);

#[derive(Default)]
struct Shared {
    stop: Arc<AtomicBool>,
    /// What the target knows of the channel.
    channel: Mutex<Option<ChannelRecord>>,
    /// Held while the relay log is open.
    relay_open: Mutex<()>,
    purger: Mutex<Option<RelayPurger>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StandbyReceiver {
    pub fn start(spec: &Arc<Spec>, monitor: &Arc<Monitor>) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (own, spec, monitor) = (Arc::clone(&shared), Arc::clone(spec), Arc::clone(monitor));
        // Nobody waits for a thread that asks a source which does not answer.
        spawn("standby", move || own.run(&spec, &monitor))?;
        Ok(Self(shared))
    }

    /// What is applied need not be kept any more.
    pub fn follow(&self, channel: ChannelRecord) {
        if let (Some(purger), Some(mark)) = (&*locked(&self.0.purger), &channel.mark) {
            purger.purge_to(mark);
        }
        *locked(&self.0.channel) = Some(channel);
    }

    /// Then the relay log is closed.
    pub fn end(self) {
        self.0.stop.store(true, Ordering::Release);
        drop(locked(&self.0.relay_open));
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn run(&self, spec: &Spec, monitor: &Monitor) {
        let mut said = String::new();
        while !self.is_over() {
            let channel = locked(&self.channel).clone().filter(|channel| channel.mark.is_some() && !channel.is_copying);
            let Some(channel) = channel else {
                std::thread::sleep(POLL);
                continue;
            };
            if let Err(failure) = self.receive(spec, monitor, &channel)
                && !self.is_over()
            {
                let text = failure.to_string();
                if said != text {
                    tracing::warn!(remedy = failure.remedy, "standby: nothing is received: {text}");
                    said = text;
                }
                monitor.signals().source().lost(&failure.message);
            }
            self.pause();
        }
    }

    fn pause(&self) {
        let mut left = RETRY;
        while !left.is_zero() && !self.is_over() {
            std::thread::sleep(POLL);
            left = left.saturating_sub(POLL);
        }
    }

    /// Until it is to end, or fails.
    fn receive(&self, spec: &Spec, monitor: &Monitor, channel: &ChannelRecord) -> Result<(), Failure> {
        let Source::Live(options) = &spec.source else { return Ok(()) };
        let source = open::read_state(options).map_err(failure)?;
        let (start, _) = open::plan(spec, &source, channel).map_err(failure)?;
        let _open = locked(&self.relay_open);
        if self.is_over() || start.is_new {
            return Ok(());
        }
        let (receiver, relay) = open::receiver(spec, options, &source, &start, monitor).map_err(failure)?;
        *locked(&self.purger) = Some(RelayPurger::new(relay));
        let received = receiver.of_standby(&self.stop).run(&NoReader);
        *locked(&self.purger) = None;
        received
    }
}

/// Nobody reads the relay log yet.
struct NoReader;

impl Wake for NoReader {
    fn wake(&self) {}

    fn run_inline(&self) {}
}
