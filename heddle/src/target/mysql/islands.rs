//! Islands noted as a row of the same `BINLOG` statement as the rows that they are about: no statement of their own.
//!
//! Such a row is not compared with the lease. It need not be: the connection it comes over was taken over with its number
//! by this process, after the lease, or is ended by its successor before that reads what is committed (`session`).

use std::sync::Arc;

use binlog::encode::{FormatSpec, Head, TableMapSpec, table_map};
use binlog::image::Bitmap;
use binlog::{Checksum, Column, ColumnKind, Event, Flavour, RowsKind, TableMap};
use bytes::Bytes;
use engine::Seq;
use engine::compact::{Batch, Images};

use super::failures::FENCE_COLUMN;
use super::progress::SCHEMA;

/// `VARCHAR(64)` in utf8mb4: its length in bytes, which takes two bytes in a row.
const CHANNEL_BYTES: u16 = 256;
const COLUMNS: usize = 5;

/// The table `heddle.islands` as [`super::progress::create`] makes it.
#[derive(Debug)]
pub struct IslandsTable {
    map: Arc<TableMap>,
    all: Bitmap,
    row: Vec<u8>,
}

impl IslandsTable {
    pub fn new() -> Self {
        let number = Column::new(ColumnKind::LONGLONG, 0, false);
        let channel = Column::new(ColumnKind::VARCHAR, CHANNEL_BYTES, false);
        let worker = Column::new(ColumnKind::SHORT, 0, false);
        let columns = [channel, number.clone(), number.clone(), number, worker];
        let spec = TableMapSpec {
            table_id: 1,
            flags: 1,
            schema: SCHEMA,
            table: "islands",
            columns: &columns,
            primary_key: None,
            metadata: false,
        };
        let bytes = table_map(&Head::new(0, 1, Checksum::Off), &spec);
        let format = FormatSpec::new("", Flavour::MySql, Checksum::Off).describe();
        let map = Event::parse(Bytes::from(bytes), Checksum::Off).and_then(|event| TableMap::decode(&event, &format));
        let Ok(map) = map else { panic!("{SCHEMA}.islands ({FENCE_COLUMN}, …) is a table that can be described") };
        Self { map: Arc::new(map), all: Bitmap::full(COLUMNS), row: Vec::new() }
    }

    /// The row for `first..=last` by this worker, for the statement whose rows have these flags and this time.
    pub fn note(
        &mut self,
        (channel, worker): (&str, u16),
        (first, last): (Seq, Seq),
        epoch: u64,
        like: &Batch<'_>,
    ) -> Batch<'_> {
        self.row.clear();
        // No column is NULL.
        self.row.push(0xe0);
        self.row.extend_from_slice(&(channel.len() as u16).to_le_bytes());
        self.row.extend_from_slice(channel.as_bytes());
        for number in [first, last, epoch] {
            self.row.extend_from_slice(&number.to_le_bytes());
        }
        self.row.extend_from_slice(&worker.to_le_bytes());
        Batch {
            map: &self.map,
            table: None,
            kind: RowsKind::Write,
            before_columns: &self.all,
            after_columns: &self.all,
            lookup_columns: None,
            flags: like.flags,
            partial_json: false,
            timestamp: like.timestamp,
            rows: vec![Images { before: &[], after: &self.row }],
        }
    }
}
