//! When what was received may be applied, and when it is made durable.
//!
//! It appends nothing and never looks into events.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use relay::{RelayWriter, Syncing};

/// Beside what is applied, a sync begins after so long, or after so many bytes.
const EVERY: Duration = Duration::from_millis(200);
const BYTES: usize = 16 << 20;

/// `--relay-sync`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RelaySync {
    /// What is received is on the disk before it is applied
    Always,
    /// It is applied at once, and on the disk a moment later
    Beside,
    /// When a file of the relay log is full; else as the system likes
    Never,
}

/// Publishes, and hands syncs to a thread.
pub struct Publisher {
    how: RelaySync,
    to_disk: Sender<Syncing>,
    /// Published since the last sync began.
    bytes: usize,
    last: Instant,
}

impl Publisher {
    /// What comes out of the channel is for another thread to run.
    pub fn new(how: RelaySync) -> (Self, Receiver<Syncing>) {
        let (to_disk, syncs) = bounded(1);
        (Self { how, to_disk, bytes: 0, last: Instant::now() }, syncs)
    }

    /// So many bytes were appended: readers may have them, now or when they are durable.
    pub fn publish(&mut self, writer: &mut RelayWriter, bytes: usize) -> relay::Result<()> {
        if self.how == RelaySync::Always {
            return writer.sync().map(|_| ());
        }
        writer.publish()?;
        self.bytes += bytes;
        self.sync_when_due(writer)
    }

    /// Has what is published made durable, when it is time.
    pub fn sync_when_due(&mut self, writer: &mut RelayWriter) -> relay::Result<()> {
        let due = self.bytes > 0 && (self.bytes >= BYTES || self.last.elapsed() >= EVERY);
        if self.how == RelaySync::Beside
            && due
            && let Some(syncing) = writer.begin_sync()?
        {
            // One that nobody takes is begun again.
            if self.to_disk.send(syncing).is_ok() {
                (self.bytes, self.last) = (0, Instant::now());
            }
        }
        Ok(())
    }
}
