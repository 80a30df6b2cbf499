//! Reads a store that no channel has open: checksums of its tables, and a table as tab-separated text.

use std::io::Write;
use std::path::Path;

use binlog::table_map::columns;
use binlog::{Column, TableMap, value};
use engine::failure::{Failure, FailureKind};
use engine::sql::ObjectName;
use sha2::{Digest, Sha256};

use super::files::{Files, failure};
use super::identity::Identity;
use super::image::{StoredRow, split_count};
use super::keys;
use super::records;
use super::tables::{Record, Tables};

/// A table's content in two numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSum {
    /// `schema.table`
    pub table: String,
    pub rows: u64,
    /// Sum over all rows, so that their order does not count; nor do table maps, metadata and identity.
    pub checksum: u128,
}

/// The checksums of all tables, sorted by name.
pub fn checksum(path: &Path) -> Result<Vec<TableSum>, Failure> {
    let store = Reader::open(path)?;
    let mut sums = Vec::new();
    for name in store.tables.names() {
        let mut sum = TableSum { table: name.to_string(), rows: 0, checksum: 0 };
        store.rows(&name, &mut |map, row, count| {
            let hash = row_hash(&name, map, row)?;
            sum.rows += count;
            sum.checksum = sum.checksum.wrapping_add(hash.wrapping_mul(u128::from(count)));
            Ok(())
        })?;
        sums.push(sum);
    }
    Ok(sums)
}

/// Writes the rows of `schema.table`: a line of column names, then a line for each row. NULL is `\N`, a value that was never
/// logged because it is the column's default is `\D`.
pub fn dump(path: &Path, table: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let store = Reader::open(path)?;
    let name = store.tables.names().into_iter().find(|name| name.to_string() == table);
    let name = name.ok_or_else(|| refused(format!("the store {} has no table {table:?}", path.display())))?;
    let failed = |error: std::io::Error| {
        let kind = if binlog::errno::is_passing(&error) { FailureKind::Exhausted } else { FailureKind::Refused };
        Failure::new(kind, format!("writing the rows of {table}: {error}"))
    };
    // A table that was renamed and had no rows since is not known by its name: its rows say what it looks like.
    let mut named = false;
    let mut write_names = |map: &TableMap, out: &mut dyn Write| {
        let names: Vec<String> = map.columns.iter().enumerate().map(|(at, column)| column_name(at, column)).collect();
        if std::mem::replace(&mut named, true) { Ok(()) } else { writeln!(out, "{}", names.join("\t")).map_err(failed) }
    };
    if let Some(map) = store.tables.last_map(&name) {
        write_names(map, out)?;
    }
    let mut line = String::new();
    store.rows(&name, &mut |map, row, count| {
        write_names(map, out)?;
        line.clear();
        for_each_value(map, row, &mut |at, value| {
            if at > 0 {
                line.push('\t');
            }
            match (value, map.columns.get(at)) {
                (Value::Absent, _) => line.push_str("\\D"),
                (Value::Null, _) | (_, None) => line.push_str("\\N"),
                (Value::Bytes(raw), Some(column)) => push_escaped(&mut line, &value::display(column, raw, false)),
            }
        })
        .map_err(|why| refused(format!("a row of {table}: {why}")))?;
        line.push('\n');
        (0..count).try_for_each(|_| out.write_all(line.as_bytes()).map_err(failed))
    })?;
    out.flush().map_err(failed)
}

fn column_name(at: usize, column: &Column) -> String {
    column.name.clone().unwrap_or_else(|| format!("@{}", at + 1))
}

fn push_escaped(line: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\\' => line.push_str("\\\\"),
            other => line.push(other),
        }
    }
}

fn refused(message: String) -> Failure {
    Failure::new(FailureKind::Refused, message)
}

struct Reader {
    files: Files,
    tables: Tables,
}

/// What to do with a row that is there so many times.
type Visit<'a> = &'a mut dyn FnMut(&TableMap, &StoredRow<'_>, u64) -> Result<(), Failure>;

impl Reader {
    fn open(path: &Path) -> Result<Self, Failure> {
        let files = Files::open(path)?;
        records::finish_staged(&files)?;
        let tables = records::load_tables(&files)?;
        Ok(Self { files, tables })
    }

    fn rows(&self, name: &ObjectName, visit: Visit<'_>) -> Result<(), Failure> {
        let Some(Record { number, identity }) = self.tables.get(name) else { return Ok(()) };
        let broken = || refused(format!("a row of {name} in the store {} is damaged", self.files.path.display()));
        for entry in self.files.data.prefix(keys::rows(*number)) {
            let value = entry.value().map_err(|error| failure(&self.files.path, &error))?;
            let (count, row) = match identity {
                Identity::Bag { .. } => split_count(&value).ok_or_else(broken)?,
                Identity::Undecided { .. } | Identity::Key { .. } | Identity::Single => (1, &*value),
            };
            let stored = StoredRow::decode(row, |version| self.tables.width(version)).ok_or_else(broken)?;
            let map = self.tables.version(stored.version).ok_or_else(broken)?;
            visit(map, &stored, count)?;
        }
        Ok(())
    }
}

enum Value<'a> {
    /// Not in the image.
    Absent,
    Null,
    Bytes(&'a [u8]),
}

/// All columns of a row, in order.
fn for_each_value(map: &TableMap, row: &StoredRow<'_>, visit: &mut dyn FnMut(usize, Value<'_>)) -> Result<(), String> {
    let width = map.columns.len();
    let present = row.present(width);
    let mut next = 0;
    for column in columns(map, &present, row.image) {
        let column = column.map_err(|error| error.to_string())?;
        (next..column.column).for_each(|at| visit(at, Value::Absent));
        visit(column.column, column.value.map_or(Value::Null, Value::Bytes));
        next = column.column + 1;
    }
    (next..width).for_each(|at| visit(at, Value::Absent));
    Ok(())
}

/// Of the table's name and the values as text. Only what every table map says of a column goes into the text: numbers are
/// signed, ENUM and SET are numbers, strings are their bytes.
fn row_hash(name: &ObjectName, map: &TableMap, row: &StoredRow<'_>) -> Result<u128, Failure> {
    let mut hasher = Sha256::new();
    let mut put = |tag: u8, bytes: &[u8]| {
        hasher.update([tag]);
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    put(b't', name.to_string().as_bytes());
    for_each_value(map, row, &mut |at, value| match (value, map.columns.get(at)) {
        (Value::Absent, _) => put(b'd', &[]),
        (Value::Null, _) | (_, None) => put(b'n', &[]),
        (Value::Bytes(raw), Some(column)) => {
            let plain = Column::new(column.kind, column.meta, column.nullable);
            match column.real_kind() {
                kind if is_bytes(kind) => put(b'v', raw),
                _ => put(b'v', value::display(&plain, raw, false).as_bytes()),
            }
        }
    })
    .map_err(|why| refused(format!("a row of {name}: {why}")))?;
    let digest = hasher.finalize();
    Ok(digest.first_chunk::<16>().map_or(0, |head| u128::from_le_bytes(*head)))
}

fn is_bytes(kind: binlog::ColumnKind) -> bool {
    use binlog::ColumnKind as K;
    matches!(
        kind,
        K::STRING
            | K::VARCHAR
            | K::VAR_STRING
            | K::TINY_BLOB
            | K::BLOB
            | K::MEDIUM_BLOB
            | K::LONG_BLOB
            | K::VARCHAR_COMPRESSED
            | K::BLOB_COMPRESSED
            | K::GEOMETRY
            | K::BIT
    )
}
