//! Groups between reading and sending: each is noted before it is sent, and what a MySQL replica is to add to its GTIDs follows.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use binlog::gtids::GtidSet;
use binlog::{Checksum, Flavour, FormatDescription, Header};
use wire::server::{Peer, PeerError};

use super::context::DumpError;
use crate::group::{First, Formed, Gather, Limits, Replica, Told, others, settle};
use crate::mirror::files::FolderError;

/// So much of the log that waits makes it worth to form groups again.
const BEHIND_BYTES: u64 = 1 << 20;
/// Groups after which their GTIDs are settled, if the replica does not catch up before.
const SETTLED_EVERY: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Grouped {
    flavour: Flavour,
    /// `None`: no groups are formed, but for the one that a replica may have a part of.
    limits: Option<Limits>,
    first: First,
    told: Told,
    /// MySQL: GTIDs that the replica has and does not say.
    unsettled: GtidSet,
    groups: usize,
    gather: Option<Gather>,
    replica: Replica,
    /// What the replica has added up.
    position: u64,
    /// As the last event that was sent says it.
    log_pos: u32,
    timestamp: u32,
    checksum: Checksum,
    server_id: u32,
    sent: Arc<GroupsSent>,
}

/// What a replica was sent in groups, counted for who looks.
#[derive(Debug, Default)]
pub struct GroupsSent {
    groups: AtomicU64,
    transactions: AtomicU64,
}

impl GroupsSent {
    /// Groups, and the transactions in them.
    pub fn counts(&self) -> (u64, u64) {
        (self.groups.load(Ordering::Relaxed), self.transactions.load(Ordering::Relaxed))
    }

    fn add(&self, formed: &[Formed]) {
        let transactions: usize = formed.iter().map(|group| group.gtids.len()).sum();
        self.groups.fetch_add(formed.len() as u64, Ordering::Relaxed);
        self.transactions.fetch_add(transactions as u64, Ordering::Relaxed);
    }
}

impl Grouped {
    /// A MySQL replica, and the GTIDs that it has and does not say.
    pub(crate) fn of_mysql(limits: Option<Limits>, told: Told, unsettled: GtidSet) -> Self {
        Self { unsettled, ..Self::new(Flavour::MySql, limits, First::Any, told) }
    }

    pub(crate) fn of_mariadb(limits: Option<Limits>, told: Told) -> Self {
        Self::new(Flavour::MariaDb, limits, told.first(), told)
    }

    fn new(flavour: Flavour, limits: Option<Limits>, first: First, told: Told) -> Self {
        Self {
            flavour,
            limits,
            first,
            told,
            unsettled: GtidSet::default(),
            groups: 0,
            gather: None,
            replica: if limits.is_some() { Replica::Behind } else { Replica::CaughtUp },
            position: 0,
            log_pos: 0,
            timestamp: 0,
            checksum: Checksum::Off,
            server_id: 0,
            sent: Arc::default(),
        }
    }

    /// What is counted; `None`: no groups are formed.
    pub(crate) fn sent(&self) -> Option<Arc<GroupsSent>> {
        self.limits.is_some().then(|| Arc::clone(&self.sent))
    }

    /// A file begins, or the stream in the middle of one, behind its format description. What was held must have been sent. What the replica does not say of earlier groups is sent at once: the
    /// end of all that is here may be far away.
    pub(super) fn begin_file(
        &mut self,
        peer: &mut Peer,
        format: &FormatDescription,
        offset: u64,
        server_id: u32,
    ) -> Result<(), DumpError> {
        (self.position, self.checksum, self.server_id) = (offset, format.checksum, server_id);
        self.log_pos = u32::try_from(offset).unwrap_or(0);
        match &mut self.gather {
            Some(gather) => gather.begin_file(format.clone())?,
            None => {
                let first = std::mem::replace(&mut self.first, First::Any);
                let limits = self.limits.unwrap_or(Limits { transactions: 1, bytes: 0 });
                self.gather = Some(Gather::new(self.flavour, format.clone(), limits, first));
            }
        }
        self.settle(peer)
    }

    /// So many bytes of the log can be sent.
    pub(super) fn has_waiting(&mut self, bytes: u64) {
        if self.limits.is_some() && bytes >= BEHIND_BYTES {
            self.replica = Replica::Behind;
        }
    }

    /// The next event.
    pub(super) fn event(&mut self, peer: &mut Peer, event: &[u8]) -> Result<(), DumpError> {
        let Some(gather) = &mut self.gather else { return Ok(()) };
        gather.event(event, self.replica)?;
        self.send(peer)
    }

    /// The next event is sent by itself.
    pub(super) fn large(&mut self, peer: &mut Peer, header: &Header) -> Result<(), DumpError> {
        let Some(gather) = &mut self.gather else { return Ok(()) };
        gather.large(header)?;
        self.send(peer)?;
        self.position += u64::from(header.event_len);
        self.log_pos = header.log_pos;
        Ok(())
    }

    /// The end of what is here: nothing is held back.
    pub(super) fn caught_up(&mut self, peer: &mut Peer) -> Result<(), DumpError> {
        self.flush(peer)?;
        self.replica = Replica::CaughtUp;
        self.settle(peer)
    }

    /// What is held is sent.
    pub(super) fn flush(&mut self, peer: &mut Peer) -> Result<(), DumpError> {
        let Some(gather) = &mut self.gather else { return Ok(()) };
        gather.flush()?;
        self.send(peer)
    }

    /// What an event made up for this place says of it: never before what the replica has added up.
    pub(super) fn shown(&mut self, offset: u64) -> u64 {
        let shown = offset.max(self.position);
        if self.flavour == Flavour::MySql {
            self.position = shown;
        }
        shown
    }

    fn send(&mut self, peer: &mut Peer) -> Result<(), DumpError> {
        let Some(gather) = &mut self.gather else { return Ok(()) };
        let (ready, formed) = gather.ready();
        if !formed.is_empty() {
            self.told.note(formed).map_err(not_noted)?;
            self.groups += formed.len();
            self.sent.add(formed);
            if self.flavour == Flavour::MySql {
                self.unsettled.add_set(&others(formed));
            }
            formed.clear();
        }
        let mut rest = ready.as_slice();
        while let Some(header) = Header::parse(rest) {
            let Some((event, behind)) = rest.split_at_checked(header.event_len as usize) else { break };
            peer.event(event)?;
            rest = behind;
            self.position += event.len() as u64;
            (self.log_pos, self.timestamp) = (header.log_pos, header.timestamp);
        }
        ready.clear();
        if self.groups >= SETTLED_EVERY { self.settle(peer) } else { Ok(()) }
    }

    /// MySQL: the other GTIDs of the groups that were sent, unless a transaction was sent in part.
    fn settle(&mut self, peer: &mut Peer) -> Result<(), DumpError> {
        let is_possible = self.gather.as_ref().is_some_and(Gather::has_sent_whole);
        if self.unsettled.is_empty() || !is_possible {
            return Ok(());
        }
        let event = settle(&self.unsettled, self.server_id, self.timestamp, self.log_pos, self.checksum);
        peer.event(&event)?;
        self.position += event.len() as u64;
        (self.unsettled, self.groups) = (GtidSet::default(), 0);
        Ok(())
    }
}

/// The replica loses its connection, and comes again.
fn not_noted(error: FolderError) -> DumpError {
    tracing::error!("a replica's stream ends: the groups that it is sent can not be noted: {error}");
    DumpError::Gone(PeerError::Gone { during: "noting a group", source: io::Error::other(error) })
}
