//! Rows events of one statement, and which of them the servers may take as one. Pure.
//!
//! A server opens the tables of a statement at its first rows event, with the flags of that event, and keeps them open until the last one (`Rows_log_event::do_apply_event`,
//! sql/log_event.cc). MariaDB opens the tables of foreign keys for the first event's kind only; and there a statement has one time.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use binlog::{Flavour, HEADER_LEN, Header, Kind};
use bytes::Bytes;

/// Tables of one statement.
const TABLES_MAX: usize = 100;

/// An event without its checksum, and the number of its table.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub number: u64,
    pub event: Bytes,
}

impl Part {
    fn body(&self) -> &[u8] {
        self.event.get(HEADER_LEN..).unwrap_or_default()
    }

    fn header(&self) -> Option<Header> {
        Header::parse(&self.event)
    }

    /// Of a table map, behind its number and flags: schema and table, each with its length before and a zero behind.
    fn table(&self) -> &[u8] {
        let names = self.body().get(8..).unwrap_or_default();
        let schema = names.first().map_or(0, |length| usize::from(*length) + 2);
        let table = names.get(schema).map_or(0, |length| usize::from(*length) + 2);
        names.get(..schema + table).unwrap_or_default()
    }
}

/// A table, by its schema's and its own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TableKey(u64);

impl TableKey {
    /// Two names of one key only make the two tables one.
    pub fn of(name: &[u8]) -> Self {
        Self(BuildHasherDefault::<DefaultHasher>::default().hash_one(name))
    }
}

/// The rows events of one statement, and its table maps.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub maps: Vec<Part>,
    pub rows: Vec<Part>,
    flags: u16,
}

impl Statement {
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty() && self.rows.is_empty()
    }

    pub fn tables(&self) -> impl Iterator<Item = TableKey> {
        self.maps.iter().map(|map| TableKey::of(map.table()))
    }

    pub fn bytes(&self) -> usize {
        self.maps.iter().chain(&self.rows).map(|part| part.event.len()).sum()
    }

    /// `None`: the log is not as servers write it.
    pub fn map(&mut self, map: Part) -> Option<()> {
        self.rows.is_empty().then(|| self.maps.push(map))
    }

    /// As [`Statement::map`].
    pub fn rows(&mut self, rows: Part, flags: u16) -> Option<()> {
        let is_known = self.maps.iter().any(|map| map.number == rows.number);
        let is_alike = self.rows.is_empty() || self.flags == flags;
        self.flags = flags;
        (is_known && is_alike).then(|| self.rows.push(rows))
    }

    /// Whether the other one's rows can follow as rows of this statement.
    pub fn takes(&self, other: &Self, flavour: Flavour) -> bool {
        self.flags == other.flags
            && self.maps.len() + other.maps.len() <= TABLES_MAX
            && other.maps.iter().all(|map| self.is_alike(map))
            && (flavour == Flavour::MySql || self.opens_for(other))
    }

    /// No other table has its number, and no other number its table.
    fn is_alike(&self, map: &Part) -> bool {
        self.maps
            .iter()
            .all(|own| if own.number == map.number { own.body() == map.body() } else { own.table() != map.table() })
    }

    /// MariaDB: the tables are open for what the other one does.
    fn opens_for(&self, other: &Self) -> bool {
        let Some(first) = self.rows.first().and_then(Part::header) else { return false };
        other.rows.iter().all(|rows| {
            rows.header().is_some_and(|header| {
                header.timestamp == first.timestamp && (header.kind == first.kind || inserts(header.kind))
            })
        })
    }

    pub fn append(&mut self, other: Self) {
        for map in other.maps {
            if self.maps.iter().all(|own| own.number != map.number) {
                self.maps.push(map);
            }
        }
        self.rows.extend(other.rows);
    }
}

fn inserts(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::WRITE_ROWS | Kind::WRITE_ROWS_V1 | Kind::WRITE_ROWS_COMPRESSED | Kind::WRITE_ROWS_COMPRESSED_V1
    )
}
