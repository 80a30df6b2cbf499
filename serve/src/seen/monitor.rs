//! What the mirror says of itself while it runs, for who looks. Cheap: it is told once for each batch of events, not for each event.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::quality::Histogram;
use wire::ConnectOptions;

use super::receiving::Receiving;
use super::snapshot::LinkState;
use crate::retag::Measured;

/// How the source is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Link {
    #[default]
    Connecting,
    Connected,
    /// It was lost, or never reached: why.
    Lost(String),
}

impl Link {
    pub(super) fn state(&self) -> LinkState {
        match self {
            Self::Connecting => LinkState::Connecting,
            Self::Connected => LinkState::Connected,
            Self::Lost(_) => LinkState::Reconnecting,
        }
    }

    pub(super) fn why(&self) -> Option<String> {
        match self {
            Self::Lost(why) => Some(why.clone()),
            Self::Connecting | Self::Connected => None,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Monitor(Mutex<Watched>);

#[derive(Debug, Clone, Default)]
pub(super) struct Watched {
    pub(super) link: Link,
    /// Since when it is so.
    pub(super) since: Option<Instant>,
    pub(super) address: Option<String>,
    pub(super) identity: Option<String>,
    /// To ask the same source something.
    pub(super) options: Option<ConnectOptions>,
    pub(super) received: Option<LogPosition>,
    /// Of the last event that came.
    pub(super) timestamp: u32,
    pub(super) bytes: u64,
    pub(super) syncs: Histogram,
    /// With new tags: up to there replicas can have the log, and what the tags are.
    pub(super) tagged: Option<(LogPosition, Measured)>,
}

impl Monitor {
    pub fn connected(&self, options: &ConnectOptions, identity: &str) {
        let mut watched = self.lock();
        watched.link = Link::Connected;
        watched.since = Some(Instant::now());
        watched.address = Some(options.address());
        watched.identity = Some(identity.to_owned());
        watched.options = Some(options.clone());
    }

    /// Before the first connection: whom the mirror will ask.
    pub fn expects(&self, options: &ConnectOptions) {
        self.lock().options.get_or_insert_with(|| options.clone());
    }

    /// For who asks by SQL; none before anybody is known to be asked.
    pub fn receiving(&self) -> Option<Receiving> {
        let watched = self.lock();
        let options = watched.options.as_ref()?;
        let is_attached = watched.link == Link::Connected;
        Some(Receiving { is_attached, error: watched.link.why(), ..Receiving::from(options) })
    }

    pub fn lost(&self, why: &str) {
        let mut watched = self.lock();
        if !matches!(watched.link, Link::Lost(_)) {
            watched.since = Some(Instant::now());
        }
        watched.link = Link::Lost(why.to_owned());
    }

    /// How the source is reached, and who it is.
    pub(crate) fn source(&self) -> (Link, Option<(ConnectOptions, String)>) {
        let watched = self.lock();
        (watched.link.clone(), watched.options.clone().zip(watched.identity.clone()))
    }

    /// So much has come; `timestamp`: the last event's, 0 where none has one.
    pub fn received(&self, position: Option<&LogPosition>, bytes: u64, timestamp: u32) {
        let mut watched = self.lock();
        if let Some(position) = position {
            watched.received = Some(position.clone());
        }
        watched.bytes = bytes;
        if timestamp > 0 {
            watched.timestamp = timestamp;
        }
    }

    pub fn synced(&self, time: Duration) {
        self.lock().syncs.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Tags were made up to there.
    pub fn tagged(&self, to: LogPosition, measured: &Measured) {
        self.lock().tagged = Some((to, measured.clone()));
    }

    pub(super) fn watched(&self) -> Watched {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
