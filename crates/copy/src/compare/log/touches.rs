//! Which rows the source's log changes between two places. Reads the log as a replica does, and keeps no rows.
//!
//! Whatever is not understood counts as changing everything: then a row is looked at again, and nothing is reported of it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use binlog::{
    ColumnKind, Event, FormatDescription, Header, Kind, LogPosition, MAGIC, Query, RowsEvent, TableMap,
    TransactionPayload, rotate, table_map, value,
};
use engine::sql::{Class, DdlKind, SqlMode, classify};
use wire::{ConnectOptions, Connection, DUMP_NON_BLOCK, DUMP_SEND_ANNOTATE_ROWS, DumpRequest, source};

use crate::compare::tables::definition::TableName;
use crate::compare::tables::plan::Key;
use crate::compare::tables::plan::{ChunkKey, KeyColumn, KeyKind};

/// What may have changed.
#[derive(Debug, Default)]
pub struct Touches {
    /// Something that is not understood.
    everything: bool,
    /// Tables of which nobody says which rows.
    whole: BTreeSet<TableName>,
    keys: BTreeMap<TableName, BTreeSet<Key>>,
    /// Events that can change something.
    changes: u64,
}

impl Touches {
    /// Whether a row of a table may have changed. `keys`: the row's key as either server has it; none: any row.
    pub fn touches<'a>(&self, table: &TableName, key: &ChunkKey, mut keys: impl Iterator<Item = &'a Key>) -> bool {
        let folded = table.folded();
        self.touches_table(&folded)
            || self.keys.get(&folded).is_some_and(|touched| keys.any(|at| touched.contains(&loose(key, at))))
    }

    /// Whether anything of a table may have changed of which the keys are not known.
    fn touches_table(&self, folded: &TableName) -> bool {
        self.everything || self.whole.contains(folded)
    }

    /// Whether any row of it may have changed.
    pub fn touches_any(&self, table: &TableName) -> bool {
        let folded = table.folded();
        self.touches_table(&folded) || self.keys.contains_key(&folded)
    }

    /// Nothing was changed at all.
    pub fn is_empty(&self) -> bool {
        !self.everything && self.changes == 0
    }
}

/// A form in which keys that a server may take for equal are mostly equal. More equal ones only cost another look. What the log has of a row is what a server has
/// stored, so the bytes themselves are always among the keys; this takes the difference between how the log and a SELECT give them: `CHAR` and `BINARY` without
/// the end that was filled up, numbers with zeros in front.
fn loose(key: &ChunkKey, at: &Key) -> Key {
    let one = |(column, value): (&KeyColumn, &Vec<u8>)| loose_value(&column.kind, value);
    key.columns.iter().zip(at).map(one).collect()
}

fn loose_value(kind: &KeyKind, value: &[u8]) -> Vec<u8> {
    match kind {
        KeyKind::Number | KeyKind::Quoted => value.to_vec(),
        KeyKind::Text(_) | KeyKind::Bytes => {
            let end = value.iter().rposition(|byte| !matches!(byte, 0 | b' ')).map_or(0, |last| last + 1);
            value.get(..end).unwrap_or_default().to_ascii_lowercase()
        }
    }
}

/// The tables of interest, by their names in small letters.
#[derive(Debug, Default)]
pub struct Interest<'a> {
    tables: BTreeMap<TableName, InterestingTable<'a>>,
}

#[derive(Debug)]
struct InterestingTable<'a> {
    /// `None`: its keys do not matter.
    key: Option<&'a ChunkKey>,
    width: usize,
    /// Tables in which rows change with rows of this one.
    children: Vec<TableName>,
}

impl<'a> Interest<'a> {
    pub fn add(&mut self, table: &TableName, key: Option<&'a ChunkKey>, width: usize, parents: &[TableName]) {
        let folded = table.folded();
        for parent in parents {
            let entry = self.tables.entry(parent.folded());
            let entry = entry.or_insert(InterestingTable { key: None, width: 0, children: Vec::new() });
            entry.children.push(folded.clone());
        }
        let entry = self.tables.entry(folded).or_insert(InterestingTable { key: None, width: 0, children: Vec::new() });
        (entry.key, entry.width) = (key, width);
    }
}

/// Whether the log changes anything from `start` to `end`: a log that is rotated, or has only what is not applied, ends behind all that there is to apply.
///
/// # Errors
/// The log cannot be read.
pub fn has_changes(options: &ConnectOptions, server_id: u32, start: &LogPosition, end: &LogPosition) -> Result<bool> {
    Ok(!read(options, server_id, start, end, &Interest::default())?.is_empty())
}

/// Reads the log from `start` to `end`.
pub fn read(
    options: &ConnectOptions,
    server_id: u32,
    start: &LogPosition,
    end: &LogPosition,
    interest: &Interest<'_>,
) -> Result<Touches> {
    let mut reader = LogReader { interest, maps: BTreeMap::new(), touches: Touches::default() };
    if start >= end {
        return Ok(reader.touches);
    }
    // The command for a dump has four bytes for the place.
    if u32::try_from(start.offset).is_err() {
        reader.touches.everything = true;
        return Ok(reader.touches);
    }
    let mut connection = Connection::connect(options).context("reading the source's log")?;
    let mut checksum = source::checksum(&mut connection);
    let is_mariadb = connection.server().is_mariadb();
    // Without annotations the offsets would not be the file's.
    let flags = if is_mariadb { DUMP_NON_BLOCK | DUMP_SEND_ANNOTATE_ROWS } else { DUMP_NON_BLOCK };
    let request = DumpRequest::FilePosition { file: start.file.to_string(), position: start.offset, server_id, flags };
    let mut stream = connection.binlog_dump(&request).context("reading the source's log (needs REPLICATION SLAVE)")?;
    let mut place = start.clone();
    let mut format: Option<FormatDescription> = None;
    loop {
        let packet = match stream.next() {
            Ok(packet) => packet,
            Err(wire::Error::DumpEnded) => break,
            Err(error) => return Err(error).context("reading the source's log (needs REPLICATION SLAVE)"),
        };
        let header = Header::parse(&packet.bytes).context("the source sent less than an event's header")?;
        match header.kind {
            Kind::HEARTBEAT | Kind::HEARTBEAT_V2 => continue,
            Kind::FORMAT_DESCRIPTION => {
                let (_, found) = FormatDescription::decode(&packet.bytes).context("the source's log")?;
                checksum = found.checksum;
                format = Some(found);
                continue;
            }
            Kind::ROTATE if header.log_pos == 0 || header.timestamp == 0 => {
                let event = Event::parse(packet.bytes, checksum).context("a ROTATE event")?;
                let file = rotate::Rotate::decode_any(&event).context("a ROTATE event")?.file;
                if *file != *place.file {
                    place = LogPosition::new(file.as_str(), MAGIC.len() as u64);
                }
                continue;
            }
            _ => {}
        }
        let Some(format) = &format else { bail!("the source sent an event before the description of its format") };
        // What begins at the end, or behind it, is not asked for.
        if place >= *end {
            break;
        }
        let event = Event::parse(packet.bytes, checksum).context("the source's log")?;
        place.offset = u64::from(header.log_pos).max(place.offset);
        reader.event(&event, format);
        if reader.touches.everything {
            break;
        }
    }
    Ok(reader.touches)
}

struct LogReader<'a> {
    interest: &'a Interest<'a>,
    /// Of tables of interest.
    maps: BTreeMap<u64, TableMap>,
    touches: Touches,
}

impl LogReader<'_> {
    fn event(&mut self, event: &Event, format: &FormatDescription) {
        match event.kind() {
            Kind::TABLE_MAP => self.table_map(event, format),
            kind if kind.is_rows() => {
                self.touches.changes += 1;
                if self.rows(event, format).is_none() {
                    self.touches.everything = true;
                }
            }
            Kind::QUERY | Kind::QUERY_COMPRESSED => match Query::decode(event, format) {
                Ok(query) => self.statement(&query),
                Err(_) => self.touches.everything = true,
            },
            Kind::TRANSACTION_PAYLOAD => {
                self.touches.changes += 1;
                if self.payload(event, format).is_none() {
                    self.touches.everything = true;
                }
            }
            // They say nothing of rows.
            Kind::XID
            | Kind::GTID
            | Kind::ANONYMOUS_GTID
            | Kind::GTID_TAGGED
            | Kind::MARIADB_GTID
            | Kind::PREVIOUS_GTIDS
            | Kind::MARIADB_GTID_LIST
            | Kind::BINLOG_CHECKPOINT
            | Kind::ANNOTATE_ROWS
            | Kind::ROWS_QUERY
            | Kind::ROTATE
            | Kind::STOP
            | Kind::INTVAR
            | Kind::RAND
            | Kind::USER_VAR => {}
            // XA PREPARE too: its rows are visible when the branch ends, of which the log says only its name.
            _ => {
                self.touches.changes += 1;
                self.touches.everything = true;
            }
        }
    }

    fn table_map(&mut self, event: &Event, format: &FormatDescription) {
        let Ok(map) = TableMap::decode(event, format) else {
            self.touches.everything = true;
            return;
        };
        let name = TableName::new(map.schema.as_str(), map.table.as_str()).folded();
        if self.interest.tables.contains_key(&name) {
            self.maps.insert(map.table_id, map);
        } else {
            self.maps.remove(&map.table_id);
        }
    }

    /// `None`: it could not be read.
    fn payload(&mut self, event: &Event, format: &FormatDescription) -> Option<()> {
        let payload = TransactionPayload::decode(event, format).ok()?;
        for inner in payload.events(binlog::MAX_EVENT_LEN as u64).ok()? {
            self.event(&inner.ok()?, format);
        }
        Some(())
    }

    fn rows(&mut self, event: &Event, format: &FormatDescription) -> Option<()> {
        let id = RowsEvent::peek_table_id(event, format).ok()?;
        let Some(map) = self.maps.get(&id) else { return Some(()) };
        let name = TableName::new(map.schema.as_str(), map.table.as_str()).folded();
        let table = self.interest.tables.get(&name)?;
        self.touches.whole.extend(table.children.iter().cloned());
        let Some(key) = table.key.filter(|_| map.columns.len() >= table.width) else {
            self.touches.whole.insert(name);
            return Some(());
        };
        let rows = RowsEvent::decode(event, format).ok()?;
        let touched = self.touches.keys.entry(name.clone()).or_default();
        for images in rows.images(map) {
            let images = images.ok()?;
            let both = [(&images.before, &rows.before_columns), (&images.after, &rows.after_columns)];
            for (number, (range, present)) in both.into_iter().enumerate() {
                let Some(range) = range else { continue };
                let image = rows.rows.get(range.clone())?;
                match key_of(key, map, table_map::columns(map, present, image)) {
                    Some(at) => {
                        touched.insert(at);
                    }
                    // An after image with what has changed alone: the key has not.
                    None if number == 1 && images.before.is_some() => {}
                    None => {
                        self.touches.whole.insert(name.clone());
                    }
                }
            }
        }
        Some(())
    }

    fn statement(&mut self, query: &Query) {
        let schema = String::from_utf8_lossy(&query.schema);
        let statement = classify(&query.sql, &schema, SqlMode::of(&query.vars));
        match statement.class {
            Class::Begin
            | Class::Commit
            | Class::Rollback
            | Class::Savepoint
            | Class::RollbackTo
            | Class::Release
            | Class::XaStart { .. }
            | Class::XaEnd
            | Class::SetStatement => {}
            Class::Ddl {
                kind:
                    DdlKind::View
                    | DdlKind::Trigger
                    | DdlKind::Routine
                    | DdlKind::Event
                    | DdlKind::CreateDatabase
                    | DdlKind::AlterDatabase
                    | DdlKind::Account
                    | DdlKind::Analyze
                    | DdlKind::Optimize
                    | DdlKind::Repair
                    | DdlKind::Flush,
            } => self.touches.changes += 1,
            Class::Ddl { .. } if statement.is_of_its_tables() => {
                self.touches.changes += 1;
                for table in &statement.tables {
                    let name = TableName::new(table.schema.as_str(), table.name.as_str()).folded();
                    let children = self.interest.tables.get(&name).map(|table| table.children.clone());
                    self.touches.whole.extend(children.unwrap_or_default());
                    self.touches.whole.insert(name);
                }
            }
            _ => {
                self.touches.changes += 1;
                self.touches.everything = true;
            }
        }
    }
}

/// The key of an image, in its loose form. `None`: a part of it is not there, or is not understood.
fn key_of<'a>(
    key: &ChunkKey,
    map: &TableMap,
    columns: impl Iterator<Item = Result<binlog::ColumnValue<'a>, binlog::Corruption>>,
) -> Option<Key> {
    let mut found: Vec<Option<Vec<u8>>> = vec![None; key.columns.len()];
    for value in columns {
        let value = value.ok()?;
        for (column, at) in key.columns.iter().zip(&mut found).filter(|(column, _)| column.ordinal == value.column) {
            let of = map.columns.get(value.column)?;
            *at = Some(logged(column, of, value.value?)?);
        }
    }
    found.into_iter().collect()
}

fn logged(column: &KeyColumn, of: &binlog::Column, raw: &[u8]) -> Option<Vec<u8>> {
    match column.kind {
        // Of the servers' old formats the length of a fraction is not known.
        KeyKind::Quoted
            if matches!(of.real_kind(), ColumnKind::TIME | ColumnKind::DATETIME | ColumnKind::TIMESTAMP) =>
        {
            None
        }
        KeyKind::Number | KeyKind::Quoted => Some(value::display(of, raw, column.unsigned).into_bytes()),
        KeyKind::Text(_) | KeyKind::Bytes => Some(loose_value(&column.kind, raw)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_a_server_may_take_for_one() {
        let text = KeyKind::Text("latin1".to_owned());
        let check = |kind: &KeyKind, value: &[u8], expected: &[u8]| assert_eq!(loose_value(kind, value), expected);
        check(&text, b"Ab  ", b"ab");
        check(&text, b"", b"");
        check(&KeyKind::Bytes, b"\x01\x00\x00", b"\x01");
        check(&KeyKind::Number, b"10", b"10");
        check(&KeyKind::Quoted, b"2024-01-01 00:00:00", b"2024-01-01 00:00:00");
    }

    #[test]
    fn what_changes_a_parent_may_change_its_children() {
        let (child, parent) = (TableName::new("d", "Child"), TableName::new("d", "parent"));
        let mut interest = Interest::default();
        interest.add(&child, None, 3, std::slice::from_ref(&parent));
        let found = interest.tables.get(&parent).unwrap();
        assert_eq!(found.children, [child.folded()]);
        assert!(interest.tables.contains_key(&child.folded()));
    }
}
