//! Reads the log that a channel has still to apply, while somebody looks at one that is behind: in a thread of its own, every now and then. Nothing waits
//! for it, and nobody is told if it fails but the log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use binlog::LogPosition;
use wire::ConnectOptions;

use crate::view::frame::Frame;
use crate::view::log_lookahead::{ApplierOptions, LogLookahead};
use crate::view::verdict::KEEPS_UP_S;
use insight::inspect::schema;
use insight::log_part::{LogPart, survey};

/// A channel is behind for so long before it is worth a look.
const BEHIND_FOR: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_secs(600);
/// After one that failed.
const RETRY: Duration = Duration::from_secs(60);
/// Of reading.
const TIME: Duration = Duration::from_secs(3);

/// Where the log is, and how it is applied.
#[derive(Clone)]
pub struct LogSource {
    pub source: ConnectOptions,
    /// No other replica's, and not the channel's own: the source ends the older connection of two that have one.
    pub server_id: u32,
    pub applies: ApplierOptions,
}

#[derive(Default)]
struct State {
    behind_since: Option<Instant>,
    next: Option<Instant>,
    is_looking: bool,
    found: Option<LogLookahead>,
}

pub struct LogSampler {
    source: LogSource,
    state: Mutex<State>,
}

impl LogSampler {
    pub fn new(source: LogSource) -> Arc<Self> {
        Arc::new(Self { source, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn found(&self) -> Option<LogLookahead> {
        self.state().found.clone()
    }

    /// Looks, if it is time to. `position`: what comes next for the target, if somebody looks.
    pub fn consider(self: &Arc<Self>, frame: &Frame, position: Option<&LogPosition>) {
        let now = Instant::now();
        let mut state = self.state();
        let is_behind = frame.head.lag_s.is_some_and(|lag| lag >= KEEPS_UP_S);
        let since = if is_behind { *state.behind_since.get_or_insert(now) } else { now };
        if !is_behind {
            state.behind_since = None;
        }
        let is_due = now - since >= BEHIND_FOR && state.next.is_none_or(|next| now >= next);
        let (true, false, Some(position)) = (is_due, state.is_looking, position) else { return };
        state.is_looking = true;
        drop(state);
        let (log_sampler, position) = (Arc::clone(self), position.clone());
        let look = move || {
            let found = log_sampler.look(&position);
            let mut state = log_sampler.state();
            state.is_looking = false;
            state.next = Some(Instant::now() + if found.is_ok() { AGAIN } else { RETRY });
            match found {
                Ok(found) => state.found = Some(found),
                Err(error) => tracing::debug!("the log ahead, for the dashboard: {error:#}"),
            }
        };
        if let Err(error) = std::thread::Builder::new().name("ahead".to_owned()).spawn(look) {
            tracing::debug!("the log ahead, for the dashboard: {error}");
        }
    }

    fn look(&self, position: &LogPosition) -> Result<LogLookahead> {
        let LogSource { source, server_id, applies } = &self.source;
        let definitions = schema::read_server(source)?;
        let part = LogPart {
            file: Some(position.file.to_string()),
            offset: Some(position.offset),
            server_id: *server_id,
            time: TIME,
        };
        let (report, trace) = survey(source, definitions, part)?;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        Ok(LogLookahead { at_ms, ..LogLookahead::new(&report, &trace, *applies, &source.address()) })
    }
}
