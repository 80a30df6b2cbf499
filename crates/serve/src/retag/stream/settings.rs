//! The settings of the thread, and the flag that stops it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::retag::Options;
use engine::survey::Definitions;

pub(super) const POLL: Duration = Duration::from_millis(50);

/// The origin of table definitions.
#[derive(Debug, Clone)]
pub enum Schema {
    /// The server that the mirror follows is asked.
    OfSource,
    /// As somebody says that they are now.
    Given(Definitions),
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub options: Options,
    /// `None`: only the tables that the log itself makes are known.
    pub schema: Option<Schema>,
}

#[derive(Debug, Default)]
pub(super) struct StreamState {
    pub stop: AtomicBool,
}

impl StreamState {
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
