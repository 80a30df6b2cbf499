//! The state of a running mirror, for status and for other threads. The mirror writes it once for each batch of events. It never waits for a reader.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::quality::Histogram;
use wire::ConnectOptions;

use super::receiver_status::ReceiverStatus;

/// A source that sent nothing for so long is not heard, though nothing has ended the connection: it sends heartbeats.
const HEARD_FOR: Duration = Duration::from_millis(2500);

/// The state of the connection to the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Connecting,
    Connected,
    /// It was lost, or never reached: why.
    Lost(String),
}

impl Link {
    /// The reason, if the connection was lost.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Lost(why) => Some(why.clone()),
            Self::Connecting | Self::Connected => None,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Monitor(Mutex<MirrorState>);

/// The state of a mirror at one moment.
#[derive(Debug, Clone, Default)]
pub struct MirrorState {
    pub link: Link,
    /// When the connection came into this state.
    pub since: Option<Instant>,
    /// When something came last: events, or a heartbeat.
    pub heard: Option<Instant>,
    pub address: Option<String>,
    pub identity: Option<String>,
    /// The options for another connection to the same source.
    pub options: Option<ConnectOptions>,
    pub received: Option<LogPosition>,
    /// The timestamp of the last received event.
    pub timestamp: u32,
    pub bytes: u64,
    pub syncs: Histogram,
}

impl MirrorState {
    fn is_heard(&self) -> bool {
        self.link == Link::Connected && self.heard.is_some_and(|heard| heard.elapsed() < HEARD_FOR)
    }
}

impl Monitor {
    pub fn connected(&self, options: &ConnectOptions, identity: &str) {
        let mut state = self.lock();
        state.link = Link::Connected;
        state.since = Some(Instant::now());
        state.heard = state.since;
        state.address = Some(options.address());
        state.identity = Some(identity.to_owned());
        state.options = Some(options.clone());
    }

    /// Before the first connection: the source that the mirror will ask.
    pub fn expects(&self, options: &ConnectOptions) {
        self.lock().options.get_or_insert_with(|| options.clone());
    }

    /// The connection's state for SHOW REPLICA STATUS. `None`: no source is known yet.
    pub fn receiving(&self) -> Option<ReceiverStatus> {
        let state = self.lock();
        let options = state.options.as_ref()?;
        let is_attached = state.link == Link::Connected;
        let is_heard = state.is_heard();
        Some(ReceiverStatus { is_attached, is_heard, error: state.link.why(), ..ReceiverStatus::from(options) })
    }

    pub fn lost(&self, why: &str) {
        let mut state = self.lock();
        if !matches!(state.link, Link::Lost(_)) {
            state.since = Some(Instant::now());
        }
        state.link = Link::Lost(why.to_owned());
    }

    /// The state of the connection; and the source's options and identity.
    pub(crate) fn source(&self) -> (Link, Option<(ConnectOptions, String)>) {
        let state = self.lock();
        (state.link.clone(), state.options.clone().zip(state.identity.clone()))
    }

    /// Records what was received. `timestamp`: the last event's; 0: none.
    pub fn received(&self, position: Option<&LogPosition>, bytes: u64, timestamp: u32) {
        let mut state = self.lock();
        if let Some(position) = position {
            state.received = Some(position.clone());
        }
        state.bytes = bytes;
        state.heard = Some(Instant::now());
        if timestamp > 0 {
            state.timestamp = timestamp;
        }
    }

    /// A heartbeat came.
    pub fn heartbeat(&self) {
        self.lock().heard = Some(Instant::now());
    }

    /// Whether the source's stream comes, or its heartbeats.
    pub fn hears_source(&self) -> bool {
        self.lock().is_heard()
    }

    pub fn synced(&self, time: Duration) {
        self.lock().syncs.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// The state now.
    pub fn state(&self) -> MirrorState {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, MirrorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
