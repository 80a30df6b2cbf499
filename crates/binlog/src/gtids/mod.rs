//! Global transaction identifiers of both servers, and what a channel has of them.
//!
//! Text, sets and positions only; never asks a server and never decides what to do with a gap.

mod gtid;
mod interval;
pub mod mariadb;
pub mod mysql;

use std::fmt;
use std::str::FromStr;

pub use gtid::{Gtid, GtidError, Uuid};
pub use interval::Intervals;
pub use mariadb::GtidPos;
pub use mysql::{GtidSet, Tag};

impl FromStr for Gtid {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.contains(':') {
            let gtid: mariadb::Gtid = text.parse()?;
            return Ok(gtid.into());
        }
        let set: GtidSet = text.parse()?;
        set.only().ok_or(GtidError::new(0, "more than one transaction"))
    }
}

/// Which transactions a channel has: nothing known, a MySQL set, or a MariaDB position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GtidState {
    #[default]
    None,
    MySql(GtidSet),
    MariaDb(GtidPos),
}

/// A MySQL identifier met a MariaDB state, or the other way round: a channel has one kind of source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("GTID {0} is of the other server's kind than the channel's GTIDs so far")]
pub struct MixedGtids(pub Gtid);

impl GtidState {
    /// Notes that a transaction is done. The first one decides which kind the state is of.
    pub fn add(&mut self, gtid: &Gtid) -> Result<(), MixedGtids> {
        if matches!(self, Self::None) {
            *self = match gtid {
                Gtid::MySql { .. } => Self::MySql(GtidSet::default()),
                Gtid::MariaDb { .. } => Self::MariaDb(GtidPos::default()),
            };
        }
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql { uuid, tag, gno }) => {
                set.add(uuid, tag.as_deref().unwrap_or_default(), *gno);
                Ok(())
            }
            (Self::MariaDb(position), &Gtid::MariaDb { domain, server, seq }) => {
                position.update(mariadb::Gtid { domain, server, seq });
                Ok(())
            }
            _ => Err(MixedGtids(gtid.clone())),
        }
    }

    /// Whether the transaction is in here. For MariaDB: whether its domain has come as far.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        match (self, gtid) {
            (Self::MySql(set), Gtid::MySql { uuid, tag, gno }) => {
                set.contains(uuid, tag.as_deref().unwrap_or_default(), *gno)
            }
            (Self::MariaDb(position), &Gtid::MariaDb { domain, server, seq }) => {
                position.contains(mariadb::Gtid { domain, server, seq })
            }
            _ => false,
        }
    }

    /// Whether everything of `other` is in here. Nothing is in everything.
    pub fn contains_state(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::MySql(a), Self::MySql(b)) => a.contains_set(b),
            (Self::MariaDb(a), Self::MariaDb(b)) => a.contains_pos(b),
            (_, other) => other.is_empty(),
        }
    }

    /// How many transactions came since `before`: of MariaDB by their numbers, each domain for itself. `None`: the two are not of one kind.
    pub fn count_since(&self, before: &Self) -> Option<u64> {
        match (before, self) {
            (Self::MySql(before), Self::MySql(after)) => {
                let mut new = after.clone();
                new.subtract(before);
                Some(new.count())
            }
            (Self::MariaDb(before), Self::MariaDb(after)) => {
                let last = |domain| before.get(domain).map_or(0, |gtid| gtid.seq);
                Some(after.iter().map(|gtid| gtid.seq.saturating_sub(last(gtid.domain))).sum())
            }
            _ => None,
        }
    }

    /// With what came later: all of MySQL's; MariaDB's last of each domain that is in `later`, whatever its number.
    pub fn then(&self, later: &Self) -> Self {
        match (self, later) {
            (Self::MySql(before), Self::MySql(later)) => {
                let mut all = before.clone();
                all.add_set(later);
                Self::MySql(all)
            }
            (Self::MariaDb(before), Self::MariaDb(later)) => {
                let mut all = before.clone();
                later.iter().for_each(|gtid| all.update(gtid));
                Self::MariaDb(all)
            }
            (before, Self::None) => before.clone(),
            (_, later) => later.clone(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::MySql(set) => set.is_empty(),
            Self::MariaDb(position) => position.is_empty(),
        }
    }
}

impl fmt::Display for GtidState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::MySql(set) => set.fmt(f),
            Self::MariaDb(position) => position.fmt(f),
        }
    }
}

/// Tells the two forms apart: only MySQL's has colons. Blank text is [`GtidState::None`].
impl FromStr for GtidState {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            Ok(Self::None)
        } else if text.contains(':') {
            text.parse().map(Self::MySql)
        } else {
            text.parse().map(Self::MariaDb)
        }
    }
}

#[cfg(test)]
mod tests;
