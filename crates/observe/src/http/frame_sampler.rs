//! A frame of the channel each second, its history, and who waits for the next one. It reads snapshots and changes nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use channel::monitor::Monitor;
use channel::snapshot::Snapshot;
use tokio::sync::watch;

use super::log_sampler::LogSampler;
use super::readiness::Readiness;
use crate::view::fact_values::StopCause;
use crate::view::frame::{Frame, Process};
use crate::view::history::{Columns, History};

pub const EVERY: Duration = Duration::from_secs(1);
/// A frame looks back so many samples: rates of one second jump.
const LOOK_BACK: usize = 3;
/// Who asks for frames asks again within this.
const ASKS_WITHIN: Duration = Duration::from_secs(5);

pub struct FrameSampler {
    process: Process,
    log_sampler: Option<Arc<LogSampler>>,
    /// When the last frame was asked for.
    asked: Mutex<Option<Instant>>,
    monitor: Arc<Monitor>,
    state: Mutex<State>,
    frames: watch::Sender<Arc<str>>,
}

#[derive(Default)]
struct State {
    before: VecDeque<Snapshot>,
    history: History,
    /// The last frame stays: it says why the run has ended.
    ended: bool,
}

impl FrameSampler {
    pub fn new(channel: String, route: String, monitor: Arc<Monitor>, log_sampler: Option<Arc<LogSampler>>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let process = Process { channel, route, started_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) };
        let sampler = Self {
            process,
            log_sampler,
            asked: Mutex::default(),
            monitor,
            state: Mutex::default(),
            frames: watch::Sender::new(Arc::from("{}")),
        };
        sampler.sample();
        sampler
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn sample(&self) {
        let frame = self.frame(None);
        let mut state = self.state();
        if !state.ended {
            self.publish(&frame, &mut state);
        }
    }

    /// The last frame. `stopped`: the error that ended the run.
    pub fn end(&self, stopped: Option<StopCause>) {
        let mut frame = self.frame(stopped);
        frame.head.ended = true;
        let mut state = self.state();
        state.ended = true;
        self.publish(&frame, &mut state);
    }

    fn frame(&self, stopped: Option<StopCause>) -> Frame {
        let now = self.monitor.snapshot();
        let mut state = self.state();
        let before = state.before.front().unwrap_or(&now);
        let mut frame = Frame::new(&self.process, before, &now, stopped);
        if let Some(log_sampler) = &self.log_sampler {
            log_sampler.consider(&frame, now.committed.position.as_ref().filter(|_| self.is_watched()));
            frame.why.ahead = log_sampler.found();
        }
        if state.before.len() >= LOOK_BACK {
            state.before.pop_front();
        }
        state.before.push_back(now);
        frame
    }

    fn publish(&self, frame: &Frame, state: &mut State) {
        state.history.add(frame);
        match serde_json::to_string(frame) {
            Ok(text) => {
                self.frames.send_replace(Arc::from(text));
            }
            Err(error) => tracing::debug!("a frame for the dashboard: {error}"),
        }
    }

    pub fn watch(&self) -> watch::Receiver<Arc<str>> {
        self.frames.subscribe()
    }

    /// A page is open, or `heddle top` asks.
    fn is_watched(&self) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.frames.receiver_count() > 0 || asked.is_some_and(|asked| asked.elapsed() < ASKS_WITHIN)
    }

    pub fn last(&self) -> Arc<str> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Arc::clone(&self.frames.borrow())
    }

    pub fn history(&self) -> Columns {
        self.state().history.columns()
    }

    /// Some seconds ago.
    pub fn before(&self) -> Option<Snapshot> {
        self.state().before.front().cloned()
    }

    pub(super) fn readiness(&self) -> Readiness {
        if self.state().ended {
            return Readiness::NotReady("it ends");
        }
        Readiness::of_channel(&self.monitor.snapshot())
    }

    pub fn channel(&self) -> (&str, &Arc<Monitor>) {
        (&self.process.channel, &self.monitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_frame_stays() {
        let sampler = FrameSampler::new("orders".to_owned(), String::new(), Arc::default(), None);
        assert!(sampler.last().contains("\"ended\":false"));
        let kind = "divergence".to_owned();
        sampler.end(Some(StopCause { kind, message: "a row is missing".to_owned(), ..StopCause::default() }));
        // The clock's next tick.
        sampler.sample();
        let last = sampler.last();
        assert!(last.contains("\"ended\":true") && last.contains("a row is missing"), "{last}");
    }
}
