//! When the source of a mirror is told what is durable, between two events. What it is told is `semisync`'s.

use engine::failure::Failure;
use wire::BinlogStream;

use super::{Mirror, UNSYNCED_MAX};
use crate::semisync::acknowledging::{self, Acknowledging};

impl Mirror<'_> {
    /// Tells the source what is durable, if it waits. False: it can not be told before it is attached to anew, which it can be now.
    pub(super) fn acknowledge(&mut self, stream: &mut BinlogStream) -> Result<bool, Failure> {
        let Some(acks) = &mut self.acks else { return Ok(true) };
        let durable = self.folder.durable();
        acks.tell(stream, durable.as_ref())?;
        Ok(!acks.can_attach(durable.as_ref()) && !acks.plugin_has_come())
    }

    /// Bytes that may wait for the disk while more comes.
    pub(super) fn unsynced_max(&self) -> u64 {
        let is_waited_for = self.acks.as_ref().is_some_and(Acknowledging::is_waited_for);
        if is_waited_for { acknowledging::UNSYNCED_MAX } else { UNSYNCED_MAX }
    }
}
