//! MariaDB's GTIDs: the last one of each replication domain says all that came before it.
//!
//! Holds positions, not the binary log's full state (which has an entry for each server of a domain).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::gtid::GtidError;

/// `domain-server-sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gtid {
    pub domain: u32,
    pub server: u32,
    pub seq: u64,
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.seq)
    }
}

impl From<Gtid> for super::gtid::Gtid {
    fn from(Gtid { domain, server, seq }: Gtid) -> Self {
        Self::MariaDb { domain, server, seq }
    }
}

impl FromStr for Gtid {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_at(text, 0)
    }
}

fn parse_at(text: &str, offset: usize) -> Result<Gtid, GtidError> {
    let form = || GtidError::new(offset, "expected DOMAIN-SERVER-SEQUENCE");
    let mut parts = text.split('-');
    let (Some(domain), Some(server), Some(seq), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(form());
    };
    if ![domain, server, seq].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())) {
        return Err(form());
    }
    let range = |_| GtidError::new(offset, "a number that is out of range");
    Ok(Gtid {
        domain: domain.parse().map_err(range)?,
        server: server.parse().map_err(range)?,
        seq: seq.parse().map_err(range)?,
    })
}

/// The last GTID of each domain, as `@@gtid_slave_pos` holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidPos {
    domains: BTreeMap<u32, (u32, u64)>,
}

impl GtidPos {
    /// Makes `gtid` the last one of its domain, also when its sequence number is lower: the server allows
    /// that outside of `gtid_strict_mode`, and the order of commits counts.
    pub fn update(&mut self, gtid: Gtid) {
        self.domains.insert(gtid.domain, (gtid.server, gtid.seq));
    }

    /// Takes the higher sequence number of each domain.
    pub fn merge(&mut self, other: &Self) {
        for gtid in other.iter() {
            if !self.contains(gtid) {
                self.update(gtid);
            }
        }
    }

    pub fn get(&self, domain: u32) -> Option<Gtid> {
        self.domains.get(&domain).map(|&(server, seq)| Gtid { domain, server, seq })
    }

    /// Whether the domain has come at least as far. Exact only for sources in `gtid_strict_mode`, where
    /// sequence numbers of a domain never go back.
    pub fn contains(&self, gtid: Gtid) -> bool {
        self.domains.get(&gtid.domain).is_some_and(|&(_, seq)| seq >= gtid.seq)
    }

    pub fn contains_pos(&self, other: &Self) -> bool {
        other.iter().all(|gtid| self.contains(gtid))
    }

    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// In the order of the domains.
    pub fn iter(&self) -> impl Iterator<Item = Gtid> + '_ {
        self.domains.iter().map(|(&domain, &(server, seq))| Gtid { domain, server, seq })
    }
}

impl fmt::Display for GtidPos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, gtid) in self.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            gtid.fmt(f)?;
        }
        Ok(())
    }
}

/// Spaces and newlines around the parts are allowed; a domain may be named once, as in the server's variables.
impl FromStr for GtidPos {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut position = Self::default();
        if text.trim().is_empty() {
            return Ok(position);
        }
        let mut offset = 0;
        for part in text.split(',') {
            let gtid = parse_at(part.trim(), offset)?;
            if position.get(gtid.domain).is_some() {
                return Err(GtidError::new(offset, "a domain that was named before"));
            }
            position.update(gtid);
            offset += part.len() + 1;
        }
        Ok(position)
    }
}
