//! Decides when received bytes are synced, and publishes the durable end. It syncs at once if the source waits or no more comes; while more comes, it syncs in the background, by time
//! and bytes.

use std::time::Instant;

use engine::failure::Failure;
use wire::BinlogStream;

use super::Mirror;
use super::sync_pace::{PIECE_BYTES, STREAM_BYTES};
use crate::inventory::MirrorPhase;
use crate::mirror::disk::files::of_folder;

/// Bytes that may wait for the disk while more comes: in memory, too.
const UNSYNCED_MAX: u64 = 16 << 20;
/// Bytes that may wait for the disk while the source waits.
const WAITED_FOR_MAX: u64 = 1 << 20;

impl Mirror<'_> {
    /// Makes all that was taken durable, and says so.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        let began = (self.folder.unsynced() > 0).then(Instant::now);
        self.folder.sync().map_err(|error| of_folder(&error))?;
        if let Some(began) = began {
            self.pace.ends(began.elapsed());
            self.monitor.synced(began.elapsed());
        }
        self.pace.begun_at = self.bytes;
        self.syncing.append(&mut self.newest);
        self.publish_durable();
        Ok(())
    }

    /// Acknowledges what is durable, if the source waits. False: the mirror has to attach anew before it can acknowledge, and it can do so now.
    pub(super) fn acknowledge(&mut self, stream: &mut BinlogStream) -> Result<bool, Failure> {
        let Some(acks) = &mut self.acks else { return Ok(true) };
        let durable = self.folder.durable();
        acks.acknowledge(stream, durable.as_ref())?;
        Ok(!acks.can_attach(durable.as_ref()) && !acks.plugin_has_come())
    }

    /// Between two events: all is durable before the next one is waited for, unless it is on its way.
    pub(super) fn before_next(&mut self, stream: &mut BinlogStream) -> Result<(), Failure> {
        let is_waited_for = self.acks.as_ref().is_some_and(|acks| acks.is_waited_for());
        if is_waited_for || self.folder.unsynced() == 0 {
            let is_much = self.folder.unsynced() >= WAITED_FOR_MAX;
            return match stream.next_is_buffered() {
                false => self.rest(),
                true if is_much => self.sync_and_say(),
                true => Ok(()),
            };
        }
        loop {
            if self.folder.unsynced() >= UNSYNCED_MAX {
                return self.sync_and_say();
            }
            if stream.next_is_buffered() {
                // Not a look at the clock for each event.
                let is_much = self.bytes.saturating_sub(self.looked_at) >= PIECE_BYTES;
                return if is_much { self.sync_when_due() } else { Ok(()) };
            }
            let patience = self.pace.patience(self.folder.unsynced());
            // An error is the next read's.
            if !stream.comes_within(patience) || !stream.take_in().unwrap_or(false) {
                return self.rest();
            }
            self.sync_when_due()?;
        }
    }

    /// Beside the reading: what is durable by now is said, and the next sync begins if it is time.
    fn sync_when_due(&mut self) -> Result<(), Failure> {
        self.looked_at = self.bytes;
        self.streams(self.bytes.saturating_sub(self.pace.paused_at) > STREAM_BYTES);
        if let Some(synced) = self.folder.end_sync().map_err(|error| of_folder(&error))? {
            self.pace.ends(synced.time);
            self.monitor.synced(synced.time);
            self.publish_durable();
            self.say_received();
            self.keep_files()?;
        }
        if self.syncing.is_empty() && self.pace.is_due(self.bytes) {
            self.folder.begin_sync().map_err(|error| of_folder(&error))?;
            self.pace.begun_at = self.bytes;
            self.syncing = std::mem::take(&mut self.newest);
        }
        Ok(())
    }

    /// Nothing more has come.
    pub(super) fn pauses(&mut self) {
        self.pace.stretch = self.bytes.saturating_sub(self.pace.paused_at);
        (self.pace.paused_at, self.pace.paused) = (self.bytes, Instant::now());
        self.streams(false);
    }

    fn streams(&mut self, is_streaming: bool) {
        if self.pace.is_streaming != is_streaming {
            self.pace.is_streaming = is_streaming;
            if is_streaming { self.inventory.begin_streaming() } else { self.inventory.end_streaming() }
        }
    }

    fn rest(&mut self) -> Result<(), Failure> {
        self.sync_and_say()?;
        self.pauses();
        Ok(())
    }

    fn sync_and_say(&mut self) -> Result<(), Failure> {
        self.sync()?;
        self.say_received();
        self.keep_files()
    }

    fn keep_files(&mut self) -> Result<(), Failure> {
        self.write_urgent_needs()?;
        self.purge_when_due()
    }

    /// Up to the durable end there are those events in memory that were synced last.
    fn publish_durable(&mut self) {
        let events = std::mem::take(&mut self.syncing);
        let Some(end) = self.folder.durable() else { return };
        self.inventory.durable_with(&end, &events);
        if self.settled_at.take_if(|settled| end >= *settled).is_some() {
            self.inventory.stand(MirrorPhase::Settled);
        }
    }
}
