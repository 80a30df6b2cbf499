//! All connections: their number, accounts and streams; and which replica has attached a second time.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use wire::server::Closer;

use crate::dump::{GroupCounter, GroupCounts, Progress};
use crate::queries::{ReplicaLine, SessionLine, Sessions};

/// Of one address, before they have logged in: hundreds of replicas behind one address come again at the same moment after a restart.
const LOGINS_MAX_OF_ADDRESS: usize = 256;
/// Of all addresses.
const LOGINS_MAX: usize = 1024;
/// Of a name that a replica gives itself.
const NAME_BYTES_MAX: usize = 64;
/// Refused logins are said once in so long.
const QUIET: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(crate) struct Registry {
    connections_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_number: u32,
    entries: BTreeMap<u32, Entry>,
    refused: u64,
    refused_said: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    from: SocketAddr,
    since: Instant,
    /// Empty before the login.
    user: String,
    closer: Closer,
    replica: Option<ReplicaLine>,
    dump: Option<Dump>,
}

/// A stream under way.
#[derive(Debug, Clone)]
pub(crate) struct Dump {
    who: Identity,
    server_id: u32,
    since: Instant,
    replies: ReplyMode,
    pub(crate) is_replaced: Arc<AtomicBool>,
    pub(crate) sent: Arc<SentPosition>,
    /// Where its groups are counted, if it is sent some.
    groups: Option<Arc<GroupCounter>>,
}

/// How far a stream was sent.
#[derive(Debug, Default)]
pub(crate) struct SentPosition(Mutex<Option<(Arc<str>, u64, u32)>>);

impl Progress for SentPosition {
    fn sent(&self, file: &Arc<str>, offset: u64, timestamp: u32) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::clone(file), offset, timestamp));
    }
}

/// A replica that is being sent the log.
#[derive(Debug, Clone)]
pub struct AttachedReplica {
    pub number: u32,
    pub user: String,
    pub from: String,
    pub server_id: u32,
    pub uuid: Option<String>,
    pub host: Option<String>,
    /// How long its stream has been under way.
    pub seconds: f64,
    pub sent: Option<LogPosition>,
    /// The timestamp of the last event that was sent.
    pub timestamp: u32,
    pub groups: Option<GroupCounts>,
}

/// Whether a replica is a semi-synchronous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    Replies,
    Nothing,
}

/// What identifies a replica when it attaches again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Another heddle: its mirror's UUID.
    Mirror(String),
    Uuid(String),
    ServerId(u32),
    /// It says nothing: a tool.
    Nobody,
}

impl Identity {
    /// The replica's name in stored files.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            // It is what the client says.
            Self::Mirror(uuid) | Self::Uuid(uuid) => Some(uuid.clone()).filter(|uuid| uuid.len() <= NAME_BYTES_MAX),
            Self::ServerId(number) => Some(format!("server_id {number}")),
            Self::Nobody => None,
        }
    }
}

impl Registry {
    pub(crate) fn new(connections_max: usize) -> Self {
        Self { connections_max, state: Mutex::default() }
    }

    /// A new connection; none when there are too many.
    pub(crate) fn enter(&self, from: SocketAddr, closer: Closer) -> Option<u32> {
        let mut state = self.state();
        let logging_in = |address: Option<IpAddr>| {
            let of = state.entries.values().filter(|entry| entry.user.is_empty());
            of.filter(|entry| address.is_none_or(|address| entry.from.ip() == address)).count()
        };
        if state.entries.len() >= self.connections_max
            || logging_in(None) >= LOGINS_MAX
            || logging_in(Some(from.ip())) >= LOGINS_MAX_OF_ADDRESS
        {
            return None;
        }
        state.last_number = state.last_number.wrapping_add(1).max(1);
        let number = state.last_number;
        let entry = Entry { from, since: Instant::now(), user: String::new(), closer, replica: None, dump: None };
        state.entries.insert(number, entry);
        Some(number)
    }

    pub(crate) fn logged_in(&self, number: u32, user: &str) {
        if let Some(entry) = self.state().entries.get_mut(&number) {
            user.clone_into(&mut entry.user);
        }
    }

    pub(crate) fn leave(&self, number: u32) {
        self.state().entries.remove(&number);
    }

    pub(crate) fn register(&self, number: u32, replica: ReplicaLine) {
        if let Some(entry) = self.state().entries.get_mut(&number) {
            entry.replica = Some(replica);
        }
    }

    /// A stream begins; an older one of the same replica is told to end.
    pub(crate) fn begin_dump(
        &self,
        number: u32,
        who: Identity,
        server_id: u32,
        replies: ReplyMode,
        groups: Option<Arc<GroupCounter>>,
    ) -> Dump {
        let since = Instant::now();
        let dump = Dump { who, server_id, since, replies, is_replaced: Arc::default(), sent: Arc::default(), groups };
        let mut state = self.state();
        for (_, entry) in state.entries.iter().filter(|(other, _)| **other != number) {
            if let Some(older) = &entry.dump
                && older.who == dump.who
                && older.who != Identity::Nobody
            {
                older.is_replaced.store(true, Ordering::Relaxed);
            }
        }
        if let Some(entry) = state.entries.get_mut(&number) {
            entry.dump = Some(dump.clone());
        }
        dump
    }

    /// Connections at the moment.
    pub(crate) fn count(&self) -> usize {
        self.state().entries.len()
    }

    /// The replicas that are being sent the log.
    pub(crate) fn attached(&self) -> Vec<AttachedReplica> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let of = |(number, entry): (&u32, &Entry)| {
            let dump = entry.dump.as_ref()?;
            let sent = dump.sent.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let uuid = match &dump.who {
                Identity::Mirror(uuid) | Identity::Uuid(uuid) => Some(uuid.clone()),
                Identity::ServerId(_) | Identity::Nobody => None,
            };
            Some(AttachedReplica {
                number: *number,
                user: entry.user.clone(),
                from: entry.from.to_string(),
                server_id: dump.server_id,
                uuid,
                host: entry.replica.as_ref().and_then(|replica| some(&replica.host)),
                seconds: dump.since.elapsed().as_secs_f64(),
                timestamp: sent.as_ref().map_or(0, |(_, _, timestamp)| *timestamp),
                sent: sent.map(|(file, offset, _)| LogPosition::new(file, offset)),
                groups: dump.groups.as_ref().map(|sent| sent.counts()),
            })
        };
        self.state().entries.iter().filter_map(of).collect()
    }

    /// The number of refused logins to log, if it is time to do so.
    pub(crate) fn refused(&self) -> Option<u64> {
        let mut state = self.state();
        state.refused += 1;
        if state.refused_said.is_some_and(|said| said.elapsed() < QUIET) {
            return None;
        }
        state.refused_said = Some(Instant::now());
        Some(std::mem::take(&mut state.refused))
    }

    pub(crate) fn close_all(&self) {
        for entry in self.state().entries.values() {
            entry.closer.close();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions for Registry {
    fn list(&self) -> Vec<SessionLine> {
        let state = self.state();
        let of = |(number, entry): (&u32, &Entry)| SessionLine {
            number: *number,
            user: if entry.user.is_empty() { "unauthenticated user".to_owned() } else { entry.user.clone() },
            from: entry.from.to_string(),
            seconds: entry.since.elapsed().as_secs(),
            replica: entry.replica.clone(),
            is_semi_sync: entry.dump.as_ref().is_some_and(|dump| dump.replies == ReplyMode::Replies),
        };
        state.entries.iter().map(of).collect()
    }

    fn kill(&self, number: u32, user: &str) -> bool {
        let state = self.state();
        let entry = state.entries.get(&number).filter(|entry| entry.user == user);
        if let Some(entry) = entry {
            entry.closer.close();
        }
        entry.is_some()
    }
}
