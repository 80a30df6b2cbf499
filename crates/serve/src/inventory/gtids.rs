//! The GTIDs up to a position in a log: MySQL's set, or MariaDB's state with the last number of each server in each domain. Pure.

use std::collections::BTreeMap;
use std::fmt;

use binlog::gtids::GtidSet;
use binlog::{Event, FormatDescription, Kind, MariaDbGtid, MariaDbGtidList, MySqlGtid};

/// A GTID of MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainGtid {
    pub domain: u32,
    pub server: u32,
    pub number: u64,
}

impl fmt::Display for DomainGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.number)
    }
}

impl DomainGtid {
    /// The GTID of a GTID event.
    pub fn of(gtid: &MariaDbGtid) -> Self {
        Self { domain: gtid.domain_id, server: gtid.server_id, number: gtid.seq_no }
    }

    /// Reads `0-1-100,1-2-5`.
    pub fn parse_list(text: &str) -> Option<Vec<Self>> {
        let one = |text: &str| {
            let mut parts = text.trim().split('-');
            let gtid = Self {
                domain: parts.next()?.parse().ok()?,
                server: parts.next()?.parse().ok()?,
                number: parts.next()?.parse().ok()?,
            };
            parts.next().is_none().then_some(gtid)
        };
        if text.is_empty() {
            return Some(Vec::new());
        }
        text.split(',').map(one).collect()
    }
}

/// MariaDB's binlog state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BinlogState {
    /// The servers of each domain with their last numbers; the one that logged last is the last.
    domains: BTreeMap<u32, Vec<(u32, u64)>>,
}

impl BinlogState {
    /// The number of domains.
    pub fn domains(&self) -> usize {
        self.domains.len()
    }

    /// The next GTID of the log.
    pub fn update(&mut self, gtid: DomainGtid) {
        let servers = self.domains.entry(gtid.domain).or_default();
        servers.retain(|(server, _)| *server != gtid.server);
        servers.push((gtid.server, gtid.number));
    }

    /// The last number of a server in a domain.
    pub fn number(&self, domain: u32, server: u32) -> Option<u64> {
        let servers = self.domains.get(&domain)?;
        servers.iter().find(|(known, _)| *known == server).map(|(_, number)| *number)
    }

    /// The last GTID of a domain.
    pub fn last(&self, domain: u32) -> Option<DomainGtid> {
        let (server, number) = *self.domains.get(&domain)?.last()?;
        Some(DomainGtid { domain, server, number })
    }

    /// All, by domain; the last of each domain behind its others.
    pub fn iter(&self) -> impl Iterator<Item = DomainGtid> + '_ {
        self.domains.iter().flat_map(|(domain, servers)| {
            servers.iter().map(|(server, number)| DomainGtid { domain: *domain, server: *server, number: *number })
        })
    }

    /// The text of `gtid_binlog_state`.
    pub fn state_text(&self) -> String {
        joined(self.iter())
    }

    /// The text of `gtid_binlog_pos`: the last GTID of each domain.
    pub fn position_text(&self) -> String {
        joined(self.domains.keys().filter_map(|domain| self.last(*domain)))
    }
}

fn joined(gtids: impl Iterator<Item = DomainGtid>) -> String {
    gtids.map(|gtid| gtid.to_string()).collect::<Vec<_>>().join(",")
}

/// What a log has had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Gtids {
    /// It says nothing of GTIDs.
    #[default]
    None,
    MySql(GtidSet),
    MariaDb(BinlogState),
}

impl Gtids {
    /// The GTIDs of the list at the beginning of a file.
    pub fn of_list(event: &Event, format: &FormatDescription) -> Result<Self, String> {
        if event.kind() == Kind::PREVIOUS_GTIDS {
            return GtidSet::from_binary(event.body()).map(Self::MySql).map_err(|error| error.to_string());
        }
        let list = MariaDbGtidList::decode(event, format).map_err(|error| error.to_string())?;
        let mut state = BinlogState::default();
        for entry in list.entries {
            state.update(DomainGtid { domain: entry.domain_id, server: entry.server_id, number: entry.seq_no });
        }
        Ok(Self::MariaDb(state))
    }

    pub fn add_mysql(&mut self, gtid: &MySqlGtid) {
        if gtid.anonymous || gtid.gno == 0 {
            return;
        }
        if !matches!(self, Self::MySql(_)) {
            *self = Self::MySql(GtidSet::default());
        }
        if let Self::MySql(set) = self {
            set.add(&gtid.uuid, &gtid.tag, gtid.gno);
        }
    }

    pub fn add_mariadb(&mut self, gtid: DomainGtid) {
        if !matches!(self, Self::MariaDb(_)) {
            *self = Self::MariaDb(BinlogState::default());
        }
        if let Self::MariaDb(state) = self {
            state.update(gtid);
        }
    }

    /// The text of `gtid_executed` or `gtid_binlog_state`.
    pub fn text(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::MySql(set) => set.to_string(),
            Self::MariaDb(state) => state.state_text(),
        }
    }

    /// MySQL's set; empty for anything else.
    pub fn into_mysql(self) -> GtidSet {
        match self {
            Self::MySql(set) => set,
            Self::None | Self::MariaDb(_) => GtidSet::default(),
        }
    }

    /// MariaDB's state; empty for anything else.
    pub fn into_mariadb(self) -> BinlogState {
        match self {
            Self::MariaDb(state) => state,
            Self::None | Self::MySql(_) => BinlogState::default(),
        }
    }
}
