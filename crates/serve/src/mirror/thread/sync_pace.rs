//! When the next sync of a mirror begins, and how long the mirror waits for more bytes. It writes nothing.

use std::time::{Duration, Instant};

/// Bytes after which a sync begins.
const BATCH_BYTES: u64 = 4 << 20;
/// A sync begins so many times its own length after the one before: that is the part of the time in which the disk is busy with it.
const PAUSE_TIMES: u32 = 4;
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(200);
/// A source that has much to send writes more than so many bytes at a time (MySQL: 16 KiB). Behind fewer nothing more is expected.
pub(super) const PIECE_BYTES: u64 = 8 << 10;
/// Pieces follow each other within this time, a sync in between. Behind a single one nothing more is expected: it is a large transaction.
const PIECES_WITHIN: Duration = Duration::from_millis(20);
/// More bytes than this without a pause: the source had them for a while.
pub(super) const STREAM_BYTES: u64 = 1 << 20;
/// So long the next piece may take.
const PIECE_WITHIN: Duration = Duration::from_millis(1);

/// The times of the syncs, and of the stream's pauses.
#[derive(Debug)]
pub(super) struct Pace {
    /// When the last one ended, and how long it took.
    pub(super) ended: Instant,
    pub(super) took: Duration,
    /// The number of received bytes when the last sync began.
    pub(super) begun_at: u64,
    /// The number of received bytes when the stream paused last; when that was; and the bytes since the pause before.
    pub(super) paused_at: u64,
    pub(super) paused: Instant,
    pub(super) stretch: u64,
    /// More than [`STREAM_BYTES`] have come since.
    pub(super) is_streaming: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            ended: Instant::now(),
            took: Duration::ZERO,
            begun_at: 0,
            paused_at: 0,
            paused: Instant::now(),
            stretch: 0,
            is_streaming: false,
        }
    }
}

impl Pace {
    pub(super) fn ends(&mut self, took: Duration) {
        (self.ended, self.took) = (Instant::now(), took);
    }

    /// How long to wait for the next piece, with `unsynced` bytes that are not durable.
    pub(super) fn patience(&self, unsynced: u64) -> Duration {
        let follow_each_other = self.stretch >= PIECE_BYTES && self.paused.elapsed() < PIECES_WITHIN;
        if unsynced >= PIECE_BYTES && follow_each_other { PIECE_WITHIN } else { Duration::ZERO }
    }

    pub(super) fn is_due(&self, came: u64) -> bool {
        let pause = (self.took * PAUSE_TIMES).clamp(PAUSE_MIN, PAUSE_MAX);
        came.saturating_sub(self.begun_at) >= BATCH_BYTES || self.ended.elapsed() >= pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_takes_long_is_synced_less_often() {
        let ago = |milliseconds| Instant::now().checked_sub(Duration::from_millis(milliseconds)).unwrap();
        let pace = |took, since| Pace {
            ended: ago(since),
            took: Duration::from_millis(took),
            begun_at: 100,
            ..Pace::default()
        };
        assert!(pace(0, 3).is_due(200) && !pace(0, 0).is_due(200));
        assert!(pace(10, 41).is_due(200) && !pace(10, 20).is_due(200));
        assert!(pace(900, 201).is_due(200) && !pace(900, 150).is_due(200));
        assert!(pace(900, 0).is_due(100 + BATCH_BYTES));
    }

    #[test]
    fn only_behind_pieces_that_follow_each_other_more_is_waited_for() {
        let pace = |stretch| Pace { stretch, ..Pace::default() };
        assert_eq!(pace(16 << 10).patience(16 << 10), PIECE_WITHIN);
        assert_eq!(pace(16 << 10).patience(500), Duration::ZERO);
        assert_eq!(pace(500).patience(16 << 10), Duration::ZERO);
        let paused = Instant::now().checked_sub(PIECES_WITHIN).unwrap();
        assert_eq!(Pace { paused, ..pace(16 << 10) }.patience(16 << 10), Duration::ZERO);
    }
}
