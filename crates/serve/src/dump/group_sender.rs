//! Sends groups to one replica. Each group is recorded before it is sent; for MySQL, a statement with the group's other GTIDs follows.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use binlog::gtids::GtidSet;
use binlog::{Checksum, Flavour, FormatDescription, Header};
use serde::{Deserialize, Serialize};
use wire::server::{Peer, PeerError};

use super::context::DumpError;
use crate::group::{Domains, FirstTransaction, FormedGroup, GroupBuilder, GroupLog, Limits, Replica, others, settle};
use crate::mirror::disk::files::FolderError;

/// So much of the log that waits makes it worth to form groups again.
const BEHIND_BYTES: u64 = 1 << 20;
/// So long transactions are held at most while more comes.
const HELD_MAX: Duration = Duration::from_secs(1);
/// Groups after which their GTIDs are settled, if the replica does not catch up before.
const SETTLED_EVERY: usize = 64;

/// What is known of the log behind its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogGrowth {
    /// More is on its way.
    Expected,
    Unknown,
}

/// See the module.
#[derive(Debug)]
pub struct GroupSender {
    flavour: Flavour,
    /// `None`: no groups are formed, but for the one that a replica may have a part of.
    limits: Option<Limits>,
    first: FirstTransaction,
    domains: Domains,
    log: GroupLog,
    /// MySQL: GTIDs that the replica has and does not say.
    unsettled: GtidSet,
    groups: usize,
    builder: Option<GroupBuilder>,
    replica: Replica,
    /// Set by who watches it: the replica is behind in applying, whatever it was sent.
    applier_is_behind: Arc<AtomicBool>,
    /// Since when something is held back, and since when there are GTIDs to settle.
    held_since: Option<Instant>,
    unsettled_since: Option<Instant>,
    /// What the replica has added up.
    position: u64,
    /// As the last event that was sent says it.
    log_pos: u32,
    timestamp: u32,
    checksum: Checksum,
    server_id: u32,
    sent: Arc<GroupCounter>,
}

/// Counts the groups that a replica was sent.
#[derive(Debug, Default)]
pub struct GroupCounter {
    groups: AtomicU64,
    transactions: AtomicU64,
}

/// Groups that a replica was sent since it attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounts {
    pub groups: u64,
    /// Transactions in these groups.
    pub transactions: u64,
}

impl GroupCounter {
    /// The counts so far.
    pub fn counts(&self) -> GroupCounts {
        let (groups, transactions) = (self.groups.load(Ordering::Relaxed), self.transactions.load(Ordering::Relaxed));
        GroupCounts { groups, transactions }
    }

    fn add(&self, formed: &[FormedGroup]) {
        let transactions: usize = formed.iter().map(|group| group.gtids.len()).sum();
        self.groups.fetch_add(formed.len() as u64, Ordering::Relaxed);
        self.transactions.fetch_add(transactions as u64, Ordering::Relaxed);
    }
}

impl GroupSender {
    /// A MySQL replica, and the GTIDs that it has and does not say.
    pub(crate) fn of_mysql(limits: Option<Limits>, log: GroupLog, unsettled: GtidSet) -> Self {
        Self { unsettled, ..Self::new(Flavour::MySql, limits, (FirstTransaction::Any, Domains::One), log) }
    }

    pub(crate) fn of_mariadb(limits: Option<Limits>, log: GroupLog, domains: Domains) -> Self {
        Self::new(Flavour::MariaDb, limits, (log.first(), domains), log)
    }

    fn new(
        flavour: Flavour,
        limits: Option<Limits>,
        (first, domains): (FirstTransaction, Domains),
        log: GroupLog,
    ) -> Self {
        Self {
            flavour,
            limits,
            first,
            domains,
            log,
            unsettled: GtidSet::default(),
            groups: 0,
            builder: None,
            replica: if limits.is_some() { Replica::Behind } else { Replica::CaughtUp },
            applier_is_behind: Arc::default(),
            held_since: None,
            unsettled_since: None,
            position: 0,
            log_pos: 0,
            timestamp: 0,
            checksum: Checksum::Off,
            server_id: 0,
            sent: Arc::default(),
        }
    }

    /// Groups are formed while this is set, too.
    #[must_use]
    pub(crate) fn watched(self, applier_is_behind: &Arc<AtomicBool>) -> Self {
        Self { applier_is_behind: Arc::clone(applier_is_behind), ..self }
    }

    /// What is counted; `None`: no groups are formed.
    pub(crate) fn sent(&self) -> Option<Arc<GroupCounter>> {
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
        match &mut self.builder {
            Some(builder) => builder.begin_file(format.clone())?,
            None => {
                let first = std::mem::replace(&mut self.first, FirstTransaction::Any);
                let limits = self.limits.unwrap_or(Limits { transactions: 1, bytes: 0 });
                self.builder = Some(GroupBuilder::new(self.flavour, format.clone(), limits, first).with(self.domains));
            }
        }
        self.settle(peer)
    }

    /// Tells it how many bytes of the log can be sent.
    pub(super) fn has_waiting(&mut self, bytes: u64) {
        if self.limits.is_some() && bytes >= BEHIND_BYTES {
            self.replica = Replica::Behind;
        }
    }

    /// The next event.
    pub(super) fn event(&mut self, peer: &mut Peer, event: &[u8]) -> Result<(), DumpError> {
        let Some(builder) = &mut self.builder else { return Ok(()) };
        builder.event(event, self.replica)?;
        let holds = builder.holds();
        self.send(peer)?;
        if holds {
            self.held_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// The next event is sent by itself.
    pub(super) fn large(&mut self, peer: &mut Peer, header: &Header) -> Result<(), DumpError> {
        let Some(builder) = &mut self.builder else { return Ok(()) };
        builder.large(header)?;
        self.send(peer)?;
        self.position += u64::from(header.event_len);
        self.log_pos = header.log_pos;
        Ok(())
    }

    /// The end of what is here. More comes at once (the mirror is getting what its source has had), or the replica has to apply much: groups go on, and what is held waits for them, for
    /// as long as is returned. `None`: nothing is held back any more.
    pub(super) fn at_end(&mut self, peer: &mut Peer, growth: LogGrowth) -> Result<Option<Duration>, DumpError> {
        let goes_on = growth == LogGrowth::Expected || self.applier_is_behind.load(Ordering::Relaxed);
        if self.limits.is_none() || !goes_on {
            self.caught_up(peer)?;
            return Ok(None);
        }
        self.replica = Replica::Behind;
        let left = |since: Option<Instant>| since.map(|since| HELD_MAX.saturating_sub(since.elapsed()));
        if left(self.held_since).is_some_and(|left| left.is_zero()) {
            self.flush(peer)?;
        }
        if left(self.unsettled_since).is_some_and(|left| left.is_zero()) {
            self.settle(peer)?;
            // Inside of a transaction it is not possible: later.
            self.unsettled_since = self.unsettled_since.map(|_| Instant::now());
        }
        Ok([left(self.held_since), left(self.unsettled_since)].into_iter().flatten().min())
    }

    /// The end of what is here: nothing is held back.
    fn caught_up(&mut self, peer: &mut Peer) -> Result<(), DumpError> {
        self.flush(peer)?;
        self.replica = Replica::CaughtUp;
        self.settle(peer)
    }

    /// What is held is sent.
    pub(super) fn flush(&mut self, peer: &mut Peer) -> Result<(), DumpError> {
        let Some(builder) = &mut self.builder else { return Ok(()) };
        builder.flush()?;
        self.held_since = None;
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
        let Some(builder) = &mut self.builder else { return Ok(()) };
        let (ready, formed) = builder.ready();
        if !ready.is_empty() {
            // What is held now was held only since.
            self.held_since = None;
        }
        if !formed.is_empty() {
            self.log.note(formed).map_err(not_noted)?;
            self.groups += formed.len();
            self.sent.add(formed);
            if self.flavour == Flavour::MySql {
                self.unsettled.add_set(&others(formed));
                self.unsettled_since.get_or_insert_with(Instant::now);
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
        let is_possible = self.builder.as_ref().is_some_and(GroupBuilder::has_sent_whole);
        if self.unsettled.is_empty() || !is_possible {
            return Ok(());
        }
        let event = settle(&self.unsettled, self.server_id, self.timestamp, self.log_pos, self.checksum);
        peer.event(&event)?;
        self.position += event.len() as u64;
        (self.unsettled, self.groups, self.unsettled_since) = (GtidSet::default(), 0, None);
        Ok(())
    }
}

/// The replica loses its connection, and comes again.
fn not_noted(error: FolderError) -> DumpError {
    tracing::error!("a replica's stream ends: its groups cannot be recorded: {error}");
    DumpError::Gone(PeerError::Gone { during: "noting a group", source: io::Error::other(error) })
}
