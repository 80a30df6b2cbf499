//! Progress recorded as one more row beside the rows that it is about: no statement of its own.
//!
//! Such a row is not compared with the lease. It need not be: this process took its connection's number over after the lease, and a successor
//! ends the connection before it reads what is committed (`session/lease.rs`). At another node of a cluster it could not: there progress is recorded by statements.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use binlog::encode::{FormatSpec, Head, TableMapSpec, table_map};
use binlog::{Bitmap, Checksum, Column, ColumnKind, Event, Flavour, RowsKind, TableMap};
use bytes::Bytes;
use engine::compact::{Batch, Images};
use engine::failure::Failure;
use engine::progress::Mark;
use wire::{Connection, Row};

use super::tables::SCHEMA;
use crate::Range;
use crate::mysql::server::errors::{FENCE_COLUMN, failed};

/// `VARCHAR(64)` in utf8mb4: its length in bytes, which takes two bytes in a row.
const CHANNEL_BYTES: u16 = 256;
/// `VARCHAR(512)` in characters.
const FILE_CHARACTERS: usize = 512;
/// Columns of `heddle.progress` up to the last that a row changes, as [`crate::mysql::progress::statements::create`] makes them: name, type, and what a table
/// map says of it.
const PROGRESS: [(&str, &str, ColumnKind, u16); 8] = [
    ("channel", "varchar(64)", ColumnKind::VARCHAR, CHANNEL_BYTES),
    (FENCE_COLUMN, "bigint", ColumnKind::LONGLONG, 0),
    ("seq", "bigint", ColumnKind::LONGLONG, 0),
    // Its length in bytes depends on the character set.
    ("source_file", "varchar(512)", ColumnKind::VARCHAR, 0),
    ("source_position", "bigint", ColumnKind::LONGLONG, 0),
    ("gtids", "longtext", ColumnKind::BLOB, 4),
    ("commit_time_us", "bigint", ColumnKind::LONGLONG, 0),
    ("applied_at", "timestamp(6)", ColumnKind::TIMESTAMP2, 6),
];
/// The first that changes.
const SEQ: usize = 2;
const FILE: usize = 3;
/// Of text columns: ASCII is the same bytes in these, which it is not in all (`ucs2`, `swe7`).
const CHARACTER_SETS: [&str; 7] = ["utf8mb4", "utf8mb3", "utf8", "latin1", "latin2", "ascii", "cp1250"];

/// A table of our own, and which of its columns are in rows before and after.
#[derive(Debug)]
struct OwnTable {
    map: Arc<TableMap>,
    before: Bitmap,
    after: Bitmap,
}

impl OwnTable {
    fn new(name: &str, columns: &[Column], before: Bitmap, after: Bitmap) -> Self {
        let spec = TableMapSpec {
            table_id: 1,
            flags: 1,
            schema: SCHEMA.name(),
            table: name,
            columns,
            primary_key: None,
            metadata: false,
        };
        let bytes = table_map(&Head::new(0, 1, Checksum::Off), &spec);
        let format = FormatSpec::new("", Flavour::MySql, Checksum::Off).describe();
        let map = Event::parse(Bytes::from(bytes), Checksum::Off).and_then(|event| TableMap::decode(&event, &format));
        #[expect(clippy::panic, reason = "our own table")]
        let Ok(map) = map else { panic!("{SCHEMA}.{name} is a table that can be described") };
        Self { map: Arc::new(map), before, after }
    }

    /// One row, for the statement whose rows have these flags and this time.
    fn batch<'a>(&'a self, kind: RowsKind, row: Images<'a>, like: &Batch<'_>) -> Batch<'a> {
        Batch {
            map: &self.map,
            table: None,
            kind,
            before_columns: &self.before,
            after_columns: &self.after,
            lookup_columns: None,
            flags: like.flags,
            partial_json: false,
            timestamp: like.timestamp,
            session: None,
            rows: vec![row],
        }
    }
}

/// The rows that one connection records progress with.
#[derive(Debug)]
pub struct ProgressRows {
    ranges: OwnTable,
    progress: Option<Arc<ProgressTable>>,
    /// Nothing is recorded as a row.
    by_statements: bool,
    /// The channel as a key, and the row after.
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Who records it.
#[derive(Clone, Copy, Debug)]
pub struct Recorder<'a> {
    pub channel: &'a str,
    pub worker: usize,
    pub epoch: u64,
}

impl ProgressRows {
    pub fn new(progress: Option<Arc<ProgressTable>>) -> Self {
        let number = Column::new(ColumnKind::LONGLONG, 0, false);
        let channel = Column::new(ColumnKind::VARCHAR, CHANNEL_BYTES, false);
        let worker = Column::new(ColumnKind::SHORT, 0, false);
        let columns = [channel, number.clone(), number.clone(), number, worker];
        let all = || Bitmap::full(columns.len());
        let ranges = OwnTable::new("islands", &columns, all(), all());
        Self { ranges, progress, by_statements: false, before: Vec::new(), after: Vec::new() }
    }

    /// None: all progress is recorded by statements.
    pub fn by_statements() -> Self {
        Self { by_statements: true, ..Self::new(None) }
    }

    /// The row that says that the range is committed. `None`: it has to be a statement.
    pub fn row(&mut self, by: Recorder<'_>, range: Range<'_>, like: &Batch<'_>) -> Option<Batch<'_>> {
        if self.by_statements {
            return None;
        }
        let Self { ranges, progress, before, after, .. } = self;
        before.clear();
        after.clear();
        if range.is_committed_range() {
            put_committed_range(by, range, after);
            return Some(ranges.batch(RowsKind::Write, Images { before, after }, like));
        }
        let progress = progress.as_ref()?;
        put_key(by.channel, before);
        progress.put(range.mark, SystemTime::now(), after)?;
        Some(progress.table.batch(RowsKind::Update, Images { before, after }, like))
    }
}

/// In an image's null bitmap, for so many columns of which none is NULL. Bits beyond are set, as servers write them.
fn no_nulls(columns: usize) -> u8 {
    0xff_u8.checked_shl(columns as u32).unwrap_or(0)
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn put_key(channel: &str, out: &mut Vec<u8>) {
    out.push(no_nulls(1));
    put_text(channel, out);
}

fn put_committed_range(by: Recorder<'_>, range: Range<'_>, out: &mut Vec<u8>) {
    out.push(no_nulls(5));
    put_text(by.channel, out);
    for number in [range.first, range.mark.seq, by.epoch] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&(by.worker as u16).to_le_bytes());
}

/// `heddle.progress`, if it is laid out as this version makes it.
#[derive(Debug)]
pub struct ProgressTable {
    table: OwnTable,
    /// How far the target's clock is ahead of ours, in µs.
    ahead_us: i64,
}

impl ProgressTable {
    /// `None`: it is laid out otherwise, and is changed by statements only.
    pub fn read(connection: &mut Connection) -> Result<Option<Self>, Failure> {
        let columns = connection
            .rows(format!(
                "SELECT COLUMN_NAME,COLUMN_TYPE,CHARACTER_OCTET_LENGTH,CHARACTER_SET_NAME,\
                 CAST(UNIX_TIMESTAMP(SYSDATE(6))*1000000 AS UNSIGNED) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='{SCHEMA}' AND TABLE_NAME='progress' ORDER BY ORDINAL_POSITION"
            ))
            .map_err(failed)?;
        let Some(file_bytes) = file_bytes(&columns)? else {
            tracing::debug!("{SCHEMA}.progress is not as this version makes it: it is changed by statements only");
            return Ok(None);
        };
        let target_us = columns.first().map_or(Ok(0), |row| row.required::<i64>(4)).map_err(failed)?;
        Ok(Some(Self { table: table(file_bytes), ahead_us: target_us.saturating_sub_unsigned(us(SystemTime::now())) }))
    }

    /// The columns that change. `None`: they have text that the table's character set may write otherwise.
    fn put(&self, mark: &Mark, now: SystemTime, out: &mut Vec<u8>) -> Option<()> {
        let (file, offset) = mark.position.as_ref().map_or(("", 0), |position| (&*position.file, position.offset));
        let gtids = mark.gtids.to_string();
        if !file.is_ascii() || file.len() > FILE_CHARACTERS || !gtids.is_ascii() {
            return None;
        }
        let applied_us = us(now).checked_add_signed(self.ahead_us)?;
        out.push(no_nulls(PROGRESS.len() - SEQ));
        out.extend_from_slice(&mark.seq.to_le_bytes());
        put_text(file, out);
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&u32::try_from(gtids.len()).ok()?.to_le_bytes());
        out.extend_from_slice(gtids.as_bytes());
        out.extend_from_slice(&mark.commit_time_us.to_le_bytes());
        // TIMESTAMP2: seconds, and as many bytes of a fraction as its digits take, the highest byte first.
        out.extend_from_slice(&u32::try_from(applied_us / 1_000_000).ok()?.to_be_bytes());
        out.extend(((applied_us % 1_000_000) as u32).to_be_bytes().into_iter().skip(1));
        Some(())
    }
}

/// Since the epoch.
fn us(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// How long the column `source_file` is at most, in bytes. `None`: the table is not as this version makes it.
fn file_bytes(columns: &[Row]) -> Result<Option<u16>, Failure> {
    for (row, (name, kind, ..)) in columns.iter().zip(PROGRESS) {
        // Older servers say how wide a number is shown.
        let is_kind = |text: &str| text == kind || (kind == "bigint" && text.starts_with(kind));
        let text = |at: usize| row.text(at).map_err(failed);
        let is_known = text(3)?.is_none_or(|set| CHARACTER_SETS.contains(&set));
        if text(0)? != Some(name) || !text(1)?.is_some_and(is_kind) || !is_known {
            return Ok(None);
        }
    }
    if columns.len() < PROGRESS.len() {
        return Ok(None);
    }
    columns.get(FILE).map_or(Ok(None), |row| row.parse(2)).map_err(failed)
}

fn table(file_bytes: u16) -> OwnTable {
    let mut columns = PROGRESS.map(|(_, _, kind, meta)| Column::new(kind, meta, false));
    if let Some(file) = columns.get_mut(FILE) {
        file.meta = file_bytes;
    }
    let width = PROGRESS.len();
    OwnTable::new("progress", &columns, Bitmap::from_fn(width, |at| at == 0), Bitmap::from_fn(width, |at| at >= SEQ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use binlog::LogPosition;
    use binlog::table_map::columns;
    use binlog::value::display;

    use super::*;

    fn check(table: &OwnTable, present: &Bitmap, image: &[u8], wanted: &[&str]) {
        let values: Vec<_> = columns(&table.map, present, image).map(Result::unwrap).collect();
        let texts: Vec<String> = values
            .iter()
            .map(|value| display(&table.map.columns[value.column], value.value.expect("not NULL"), true))
            .collect();
        assert_eq!(texts, wanted);
        assert_eq!(values.iter().map(|value| value.raw.len()).sum::<usize>() + 1, image.len());
    }

    #[test]
    fn progress_as_a_row() {
        let progress = ProgressTable { table: table(2048), ahead_us: -500_000 };
        let position = Some(LogPosition::new("binlog.000007", 4711));
        let mark = Mark { seq: 300, position, gtids: "0-1-5".parse().unwrap(), commit_time_us: 12 };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        put_key("shop", &mut before);
        progress.put(&mark, UNIX_EPOCH + Duration::from_micros(1_600_000_000_750_001), &mut after).unwrap();
        check(&progress.table, &progress.table.before, &before, &["shop"]);
        let applied = "2020-09-13 12:26:40.250001";
        check(
            &progress.table,
            &progress.table.after,
            &after,
            &["300", "binlog.000007", "4711", "0-1-5", "12", applied],
        );
    }

    #[test]
    fn text_that_may_be_written_otherwise_is_no_row() {
        let progress = ProgressTable { table: table(512), ahead_us: 0 };
        let mark = Mark { position: Some(LogPosition::new("börse.000001", 4)), ..Mark::default() };
        assert!(progress.put(&mark, UNIX_EPOCH, &mut Vec::new()).is_none());
        assert!(progress.put(&Mark::default(), UNIX_EPOCH, &mut Vec::new()).is_some());
    }
}
