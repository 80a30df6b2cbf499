//! Decides whether a transaction can be in a group: it has rows of transactional tables only, and no event that a group cannot have. Pure.

use binlog::{
    Checksum, Event, Flavour, FormatDescription, Header, Kind, MariaDbGtid, MySqlGtid, RowsEvent, TransactionPayload,
    query,
};
use bytes::Bytes;

use super::statement::{Part, Statement, TableKey};

/// The number of a table map that closes a statement without naming a table.
const NO_TABLE: u64 = 0x00ff_ffff;
/// In table maps and rows events of all logs since MySQL 5.1.4: a table's number has six bytes.
const LONG_NUMBERS: u8 = 8;

/// The event with which a transaction begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Opener {
    MySql(MySqlGtid),
    MariaDb(MariaDbGtid),
}

/// One transaction of a group.
#[derive(Debug)]
pub(super) struct Member {
    /// The transaction's bytes in the log.
    pub raw: Bytes,
    pub opener: Opener,
    pub header: Header,
    /// MySQL: the event BEGIN.
    pub begin: Option<Bytes>,
    pub statements: Vec<Statement>,
    pub end: Bytes,
    /// The position of the next transaction, as this one's events name it.
    pub position: u32,
}

/// What stands at the beginning of these bytes, one event or more.
pub(super) fn opener(raw: &Bytes, format: &FormatDescription) -> Option<(Header, Opener)> {
    let event = first(raw, format.checksum)?;
    let opener = match event.kind() {
        Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => Opener::MySql(MySqlGtid::decode(&event, format).ok()?),
        Kind::MARIADB_GTID => Opener::MariaDb(MariaDbGtid::decode(&event, format).ok()?),
        _ => return None,
    };
    Some((*event.header(), opener))
}

fn first(raw: &Bytes, checksum: Checksum) -> Option<Event> {
    let length = Header::parse(raw)?.event_len as usize;
    (length <= raw.len()).then(|| Event::parse(raw.slice(..length), checksum).ok()).flatten()
}

impl Member {
    /// `None`: it is sent as it is. That also holds for what is damaged: the replica shall see it.
    pub fn of(raw: Bytes, format: &FormatDescription, flavour: Flavour, bytes_max: usize) -> Option<Self> {
        if format.post_header_len(Kind::TABLE_MAP) != LONG_NUMBERS {
            return None;
        }
        let (header, opener) = opener(&raw, format)?;
        if !suits(&opener) {
            return None;
        }
        let mut reading =
            Reading { format, flavour, begin: None, statements: Vec::new(), open: Statement::default(), end: None };
        let mut rest = raw.slice(header.event_len as usize..);
        let mut position = 0;
        while !rest.is_empty() {
            let event = first(&rest, format.checksum)?;
            rest = rest.slice(event.bytes().len()..);
            reading.event(&event, bytes_max)?;
            position = event.header().log_pos;
        }
        let Reading { begin, statements, open, end, .. } = reading;
        let has_begin = begin.is_some() == (flavour == Flavour::MySql);
        (open.is_empty() && has_begin).then_some(())?;
        Some(Self { raw, opener, header, begin, statements, end: end?, position })
    }

    pub fn tables(&self) -> impl Iterator<Item = TableKey> {
        self.statements.iter().flat_map(Statement::tables)
    }

    /// Of the session that wrote the rows: MySQL computes values from some of it.
    pub fn session<'a>(&'a self, format: &FormatDescription) -> Option<&'a [u8]> {
        let body = self.begin.as_ref()?.get(binlog::HEADER_LEN..)?;
        query::peek(body, Kind::QUERY, format).map(|(vars, _)| vars)
    }
}

fn suits(opener: &Opener) -> bool {
    match opener {
        Opener::MySql(gtid) => !gtid.anonymous,
        Opener::MariaDb(gtid) => {
            const NEVER: u8 = MariaDbGtid::FL_STANDALONE
                | MariaDbGtid::FL_DDL
                | MariaDbGtid::FL_PREPARED_XA
                | MariaDbGtid::FL_COMPLETED_XA;
            let is_altering = MariaDbGtid::FL_EXTRA_START_ALTER
                | MariaDbGtid::FL_EXTRA_COMMIT_ALTER
                | MariaDbGtid::FL_EXTRA_ROLLBACK_ALTER;
            gtid.flags & NEVER == 0
                && gtid.flags & MariaDbGtid::FL_TRANSACTIONAL != 0
                && gtid.flags_extra & is_altering == 0
        }
    }
}

struct Reading<'a> {
    format: &'a FormatDescription,
    flavour: Flavour,
    begin: Option<Bytes>,
    statements: Vec<Statement>,
    open: Statement,
    end: Option<Bytes>,
}

impl Reading<'_> {
    /// `None`: not in a group.
    fn event(&mut self, event: &Event, bytes_max: usize) -> Option<()> {
        if self.end.is_some() {
            return None;
        }
        match event.kind() {
            // What an operator reads; it has no effect.
            Kind::ROWS_QUERY | Kind::ANNOTATE_ROWS => {}
            Kind::QUERY if self.flavour == Flavour::MySql && self.begin.is_none() && self.is_begin(event) => {
                self.begin = Some(event.without_checksum());
            }
            Kind::TABLE_MAP => self.open.map(Part { number: number(event)?, event: event.without_checksum() })?,
            kind if kind.is_rows() => {
                let (number, flags) = (number(event)?, flags(event)?);
                if number == NO_TABLE {
                    return None;
                }
                self.open.rows(Part { number, event: event.without_checksum() }, flags & !RowsEvent::STMT_END)?;
                if flags & RowsEvent::STMT_END != 0 {
                    self.statements.push(std::mem::take(&mut self.open));
                }
            }
            Kind::XID if self.open.is_empty() => self.end = Some(event.without_checksum()),
            Kind::TRANSACTION_PAYLOAD => {
                let payload = TransactionPayload::decode(event, self.format).ok()?;
                if payload.uncompressed_len > bytes_max as u64 {
                    return None;
                }
                for inner in payload.events(bytes_max as u64).ok()? {
                    let inner = inner.ok().filter(|inner| inner.kind() != Kind::TRANSACTION_PAYLOAD)?;
                    self.event(&inner, bytes_max)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn is_begin(&self, event: &Event) -> bool {
        query::peek(event.body(), Kind::QUERY, self.format).is_some_and(|(_, sql)| sql == b"BEGIN")
    }
}

/// The table's, in table maps and rows events.
fn number(event: &Event) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes.get_mut(..6)?.copy_from_slice(event.body().get(..6)?);
    Some(u64::from_le_bytes(bytes))
}

/// Of a rows event.
fn flags(event: &Event) -> Option<u16> {
    event.body().get(6..8)?.try_into().ok().map(u16::from_le_bytes)
}
