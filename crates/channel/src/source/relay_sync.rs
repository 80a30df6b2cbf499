//! When received events may be applied, and when they are made durable. Appends nothing, and never looks into events.

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use relay::{RelayWriter, SegmentSync};

use crate::flow::measures::Measures;

/// `async`: a sync begins after so long, or after so many bytes.
const EVERY: Duration = Duration::from_millis(200);
const BYTES: usize = 16 << 20;

/// `--relay-sync`: when what is received is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelaySync {
    Always,
    Async,
    Never,
}

impl RelaySync {
    pub const ALL: [Self; 3] = [Self::Always, Self::Async, Self::Never];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Async => "async",
            Self::Never => "never",
        }
    }

    /// For `--help`.
    pub fn about(self) -> &'static str {
        match self {
            Self::Always => "Before they are applied",
            Self::Async => "They are applied at once, and durable a moment later",
            Self::Never => "When a relay log file is full",
        }
    }
}

impl FromStr for RelaySync {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // `beside`: its name before 0.2.
        let text = if text == "beside" { "async" } else { text };
        Self::ALL.into_iter().find(|how| how.as_str() == text).ok_or_else(|| format!("{text}: always, async or never"))
    }
}

/// Publishes, and hands syncs to a thread.
pub struct Publisher {
    how: RelaySync,
    to_disk: Sender<SegmentSync>,
    measures: Arc<Measures>,
    /// Published since the last sync began.
    bytes: usize,
    last: Instant,
}

impl Publisher {
    /// Another thread has to run what the queue returns.
    pub fn new(how: RelaySync, measures: Arc<Measures>) -> (Self, Receiver<SegmentSync>) {
        let (to_disk, syncs) = bounded(1);
        (Self { how, to_disk, measures, bytes: 0, last: Instant::now() }, syncs)
    }

    /// So many bytes were appended: lets readers have them, now or when they are durable.
    pub fn publish(&mut self, writer: &mut RelayWriter, bytes: usize) -> relay::Result<()> {
        if self.how == RelaySync::Always {
            let since = Instant::now();
            writer.sync()?;
            self.measures.synced(since.elapsed());
            self.measures.durable(self.measures.received_so_far());
            return Ok(());
        }
        writer.publish()?;
        self.bytes += bytes;
        self.sync_when_due(writer)
    }

    /// Begins a sync of what is published, when it is due.
    pub fn sync_when_due(&mut self, writer: &mut RelayWriter) -> relay::Result<()> {
        let due = self.bytes > 0 && (self.bytes >= BYTES || self.last.elapsed() >= EVERY);
        if self.how == RelaySync::Async
            && due
            && let Some(syncing) = writer.begin_sync()?
        {
            // If no thread takes it, it is begun again.
            if self.to_disk.send(syncing).is_ok() {
                (self.bytes, self.last) = (0, Instant::now());
            }
        }
        Ok(())
    }
}
