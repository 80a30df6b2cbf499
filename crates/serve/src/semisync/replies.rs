//! The replies of one replica: which events need one, and what it replies.
//!
//! As on a server, only ends of transactions need a reply, and of events that are sent together only the last one: a reply covers everything before it. A mirror whose replies count has to
//! reply at the end of whatever is sent together. Sending waits for no reply.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use binlog::boundary::{Boundary, Step};
use binlog::{Flavour, FormatDescription, LogPosition};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::server::{Peer, PeerError};

use super::acks::{Acks, MemberStream};
use crate::inventory::wake::Wake;
use crate::inventory::{EventHead, Extent, Inventory, LogFile};

/// A replica's wish to send replies.
#[derive(Debug, Clone)]
pub(crate) struct ReplyRequest<'a> {
    pub(crate) acks: &'a Acks,
    /// The UUID, if the replica is a mirror.
    pub(crate) mirror: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Replies<'a> {
    boundary: Boundary,
    wake: Arc<Wake>,
    /// Its replies count.
    attached: Option<MemberStream<'a>>,
}

impl<'a> Replies<'a> {
    /// The stream begins at this place.
    pub(crate) fn begin(
        peer: &mut Peer,
        replying: &ReplyRequest<'a>,
        inventory: &Inventory,
        at: LogPosition,
    ) -> io::Result<Self> {
        let wake = inventory.wakes().add()?;
        let is_mariadb = inventory.source().is_some_and(|source| source.is_mariadb());
        peer.begin_semi_sync(if is_mariadb { Flavour::MariaDb } else { Flavour::MySql });
        let attached = replying.mirror.as_deref().and_then(|mirror| replying.acks.attach(mirror, at));
        Ok(Self { boundary: Boundary::default(), wake, attached })
    }

    /// Whether the event, which ends `behind` of the `end` that is here now, has to be replied to.
    pub(crate) fn asks(&mut self, peeked: &EventHead<'_>, format: &FormatDescription, behind: u64, end: u64) -> bool {
        let step = self.boundary.raw(&peeked.header, peeked.body(format.checksum), format);
        behind >= end && (self.attached.is_some() || matches!(step, Step::Ends { .. } | Step::EndsNothing))
    }

    /// Takes in the replies that have come.
    pub(crate) fn take(&mut self, peer: &mut Peer) -> Result<(), PeerError> {
        while let Some(reply) = peer.reply()? {
            if let Some(attached) = &self.attached {
                attached.has(LogPosition::new(reply.file.as_str(), reply.position));
            }
        }
        Ok(())
    }

    /// Waits like [`Inventory::wait_sendable`], and also ends when a reply comes.
    pub(crate) fn wait_sendable(
        &self,
        peer: &Peer,
        inventory: &Inventory,
        file: &LogFile,
        offset: u64,
        at_most: Duration,
    ) -> Extent {
        self.wake.clear();
        let extent = inventory.sendable(file);
        if extent.end > offset || !extent.grows || extent.is_closed {
            return extent;
        }
        let mut both = [PollFd::new(peer, PollFlags::IN), PollFd::new(&*self.wake, PollFlags::IN)];
        let _ = poll(&mut both, Timespec::try_from(at_most).ok().as_ref());
        inventory.sendable(file)
    }
}
