//! What statements are answered from: the source, this server, the connections, and the variables of this connection.

use std::collections::BTreeMap;
use std::net::IpAddr;

use engine::survey::Definitions;

use crate::inventory::{Inventory, SourceFacts};
use crate::mirror::ReceiverStatus;

/// A session may hold so much in its variables.
const VARIABLE_BYTES_MAX: usize = 1 << 20;

/// What one connection has set.
#[derive(Debug, Default)]
pub struct Variables {
    /// `@name`, in lower case.
    user: BTreeMap<String, Option<String>>,
    /// Of the session, in lower case.
    session: BTreeMap<String, Option<String>>,
}

impl Variables {
    /// A user variable; none when it is not set, or NULL.
    pub fn user(&self, name: &str) -> Option<String> {
        self.user.get(name).cloned().flatten()
    }

    /// Whether a session variable was switched on.
    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.session.get(name), Some(Some(value)) if value == "1" || value.eq_ignore_ascii_case("on"))
    }

    /// A session variable that was set to a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.session.get(name).and_then(|value| value.as_deref()).and_then(|value| value.parse().ok())
    }

    /// Forgets all variables, as in a new connection.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// A variable that was set in this session.
    pub(super) fn session(&self, name: &str) -> Option<&Option<String>> {
        self.session.get(name)
    }

    pub(super) fn set_user(&mut self, name: String, value: Option<String>) {
        self.user.insert(name, value);
    }

    pub(super) fn set_session(&mut self, name: String, value: Option<String>) {
        self.session.insert(name, value);
    }

    pub(super) fn are_too_large(&self) -> bool {
        self.bytes() > VARIABLE_BYTES_MAX
    }

    fn bytes(&self) -> usize {
        let of = |map: &BTreeMap<String, Option<String>>| -> usize {
            map.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, String::len) + 64).sum()
        };
        of(&self.user) + of(&self.session)
    }
}

/// What a statement is answered from.
#[derive(Debug, Clone, Copy)]
pub struct World<'a> {
    pub inventory: &'a Inventory,
    pub source: &'a SourceFacts,
    /// The mirror's connection. `None`: no source is known yet.
    pub receiving: Option<&'a ReceiverStatus>,
    /// The source's tables; none: nobody keeps them.
    pub schema: Option<&'a Definitions>,
    /// This server's own values.
    pub own: &'a ServerValues,
    /// The connection that asks.
    pub who: Client<'a>,
    pub sessions: &'a dyn Sessions,
}

/// The connection that asks.
#[derive(Debug, Clone, Copy)]
pub struct Client<'a> {
    pub number: u32,
    pub user: &'a str,
    pub from: IpAddr,
}

/// The other connections.
pub trait Sessions: std::fmt::Debug + Sync {
    fn list(&self) -> Vec<SessionLine>;
    /// Ends a connection of the same account; whether there is one of that number.
    fn kill(&self, number: u32, user: &str) -> bool;
}

/// One connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionLine {
    pub number: u32,
    pub user: String,
    pub from: String,
    pub seconds: u64,
    pub replica: Option<ReplicaLine>,
    /// It is a semi-synchronous replica.
    pub is_semi_sync: bool,
}

/// A replica's registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicaLine {
    pub server_id: u32,
    pub host: String,
    pub port: u16,
    pub uuid: String,
}

/// Values of this server itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerValues {
    pub hostname: String,
    pub port: u16,
    /// Replicas that are behind are sent groups.
    pub groups: bool,
    /// Start time, in seconds since 1970.
    pub started: u64,
}
