//! Binary logs that no server writes, or hardly one: small ones that become large, and large events. Nothing in them is damaged.
//!
//! For tests of memory. Their only table has a number and a blob.

use anyhow::Result;
use binlog::encode::{self, FormatSpec, Head, RowsSpec, TableMapSpec};
use binlog::{Bitmap, Checksum, Column, ColumnKind, Flavour, Kind, MySqlGtid, RowsKind};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const TABLE_ID: u64 = 7;
/// Servers write 1 in a table map; in rows it ends a statement.
const FLAGS: u16 = 1;

/// A log file that grows.
pub struct LogFile {
    out: BufWriter<File>,
    offset: u64,
    transactions: u64,
    flavour: Flavour,
}

impl LogFile {
    /// With its beginning.
    pub fn create(path: &Path, flavour: Flavour) -> Result<Self> {
        let mut log = Self { out: BufWriter::new(File::create(path)?), offset: 0, transactions: 0, flavour };
        log.write(&binlog::MAGIC)?;
        let version = if flavour == Flavour::MySql { "8.0.36" } else { "10.11.6-MariaDB-log" };
        let spec = FormatSpec::new(version, flavour, Checksum::Off);
        log.event(|head| encode::format_description(head, &spec))?;
        Ok(log)
    }

    pub fn finish(mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    pub fn event(&mut self, make: impl FnOnce(&Head) -> Vec<u8>) -> Result<()> {
        let event = make(&Head::new(1_700_000_000, 1, Checksum::Off).at(self.offset));
        self.write(&event)
    }

    /// GTID and BEGIN, these events, and the commit.
    pub fn transaction(&mut self, changes: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.begin()?;
        self.event(begin)?;
        changes(self)?;
        let number = self.transactions;
        self.event(|head| encode::xid(head, number))
    }

    fn begin(&mut self) -> Result<()> {
        self.transactions += 1;
        let gno = self.transactions;
        if self.flavour == Flavour::MySql {
            let gtid = MySqlGtid { uuid: [3; 16], gno, ..MySqlGtid::default() };
            self.event(|head| encode::mysql_gtid(head, &gtid))?;
        }
        Ok(())
    }

    /// A transaction as MySQL compresses it, of these events and what a transaction has beside.
    pub fn payload(&mut self, events: impl IntoIterator<Item = Vec<u8>>) -> Result<()> {
        self.begin()?;
        let head = Head::new(1_700_000_000, 1, Checksum::Off);
        let mut packed = zstd::Encoder::new(Vec::new(), 1)?;
        let mut bytes = 0;
        let all = [begin(&head)].into_iter().chain(events).chain([encode::xid(&head, self.transactions)]);
        for event in all {
            bytes += event.len() as u64;
            packed.write_all(&event)?;
        }
        let packed = packed.finish()?;
        let mut body = Vec::new();
        for (field, value) in [(2, 0), (3, bytes), (1, packed.len() as u64)] {
            let mut number = Vec::new();
            encode::write_lenenc(&mut number, value);
            encode::write_lenenc(&mut body, field);
            encode::write_lenenc_bytes(&mut body, &number);
        }
        encode::write_lenenc(&mut body, 0);
        body.extend(packed);
        self.event(|head| encode::event(Kind::TRANSACTION_PAYLOAD, head, &body))
    }
}

fn begin(head: &Head) -> Vec<u8> {
    encode::query(head, 1, 0, 0, "d", &[], b"BEGIN")
}

fn columns() -> [Column; 2] {
    [Column::new(ColumnKind::LONG, 0, false), Column::new(ColumnKind::BLOB, 4, true)]
}

pub fn table_map(head: &Head) -> Vec<u8> {
    table_map_of(head, TABLE_ID, "t7", &columns())
}

/// Of another table.
pub fn table_map_of(head: &Head, table_id: u64, table: &str, columns: &[Column]) -> Vec<u8> {
    let spec = TableMapSpec { table_id, flags: FLAGS, schema: "d", table, columns, primary_key: None, metadata: false };
    encode::table_map(head, &spec)
}

/// One row, whose blob has so many bytes.
pub fn row(id: i32, bytes: usize) -> Vec<u8> {
    let mut row = vec![0xfc];
    row.extend(id.to_le_bytes());
    row.extend((bytes as u32).to_le_bytes());
    row.resize(row.len() + bytes, b'x');
    row
}

pub fn insert(head: &Head, rows: &[u8]) -> Vec<u8> {
    insert_into(head, TABLE_ID, 2, rows)
}

/// Into a table of so many columns.
pub fn insert_into(head: &Head, table_id: u64, columns: usize, rows: &[u8]) -> Vec<u8> {
    let spec = RowsSpec {
        kind: RowsKind::Write,
        table_id,
        flags: FLAGS,
        version: 1,
        extra: &[],
        before_columns: &Bitmap::full(columns),
        after_columns: &Bitmap::full(columns),
        partial_json: false,
    };
    encode::rows(head, &spec, rows)
}

/// The same as MariaDB compresses it.
pub fn insert_compressed(head: &Head, rows: &[u8]) -> Result<Vec<u8>> {
    let mut body: Vec<u8> = TABLE_ID.to_le_bytes().into_iter().take(6).collect();
    body.extend(FLAGS.to_le_bytes());
    body.extend([2, 0xff]);
    body.extend(compressed(rows)?);
    Ok(encode::event(Kind::WRITE_ROWS_COMPRESSED_V1, head, &body))
}

/// A statement as MariaDB compresses it.
pub fn query_compressed(head: &Head, sql: &[u8]) -> Result<Vec<u8>> {
    let mut body = vec![0; 13];
    if let Some(schema_len) = body.get_mut(8) {
        *schema_len = 1;
    }
    body.extend(b"d\0");
    body.extend(compressed(sql)?);
    Ok(encode::event(Kind::QUERY_COMPRESSED, head, &body))
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = vec![0x84];
    out.extend((bytes.len() as u32).to_be_bytes());
    let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
