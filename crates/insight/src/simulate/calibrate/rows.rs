//! Rows that are changed for a measurement: which ones, and their events.
//!
//! The table is a window that moves on: rows at its beginning are deleted, new ones inserted behind its end, those in between updated.
//! So each transaction changes rows of its own, and the table stays as large as it is.

use binlog::encode::{self, FormatSpec, Head, RowsSpec, StatusVarsBuilder, TableMapSpec};
use binlog::{Bitmap, Checksum, Column, ColumnKind, Flavour, KeyPart, MAGIC, MySqlGtid, RowsEvent, RowsKind};

use super::calibration::{ROWS, SCHEMA};

/// The largest row that is measured, in bytes: larger ones do not stay in their page.
const IMAGE_BYTES_MAX: usize = 4000;
/// Of an image, beside its text: a bitmap, two numbers, the text's length.
const IMAGE_BYTES_FIXED: usize = 11;
/// Rows at both ends of the window that no update touches: they are deleted next, or were inserted last.
const MARGIN: u32 = ROWS / 10;

/// What rows are like, as a log has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Of a row's image, in bytes.
    pub image_bytes: usize,
    /// Share of inserts and deletes among the changes; the rest updates rows.
    pub moved: f64,
}

impl Shape {
    /// Of so many changes of each kind, which have so many bytes in rows events.
    pub fn new(inserts: u64, updates: u64, deletes: u64, bytes: u64) -> Self {
        let rows = (inserts + updates + deletes).max(1) as f64;
        let images = (inserts + 2 * updates + deletes).max(1) as f64;
        // Most rows have an event of their own, with a header and what is in front of its rows.
        const EVENT_BYTES: f64 = 35.0;
        let image_bytes = ((bytes as f64 - EVENT_BYTES * rows) / images).max(0.0) as usize;
        Self {
            image_bytes: image_bytes.clamp(IMAGE_BYTES_FIXED, IMAGE_BYTES_MAX),
            moved: (inserts + deletes) as f64 / rows,
        }
    }

    fn text_bytes(self) -> usize {
        self.image_bytes - IMAGE_BYTES_FIXED
    }

    /// The definition of a table, but for its name.
    pub fn columns() -> String {
        format!("(id INT PRIMARY KEY, k INT NOT NULL, c VARBINARY({IMAGE_BYTES_MAX}) NOT NULL, KEY (k)) ENGINE=InnoDB")
    }

    /// As a value of the column `c`, in SQL.
    pub fn text_sql(self) -> String {
        format!("REPEAT('c', {})", self.text_bytes())
    }
}

/// Changes of one session's rows: those whose numbers leave `first` when divided by `step`.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    shape: Shape,
    first: u32,
    step: u32,
    /// Rows of the window.
    window: u32,
    /// Pairs of a deleted and an inserted row so far.
    moved: u32,
    /// Changes so far.
    changes: u32,
    due: f64,
    deleted: bool,
}

/// Which rows a transaction changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Each its own.
    Own,
    /// Ten that all change.
    Ten,
}

impl Stream {
    pub fn new(shape: Shape, first: u32, step: u32) -> Self {
        Self { shape, first, step, window: ROWS / step, moved: 0, changes: 0, due: 0.0, deleted: false }
    }

    fn id(&self, place: u32) -> u32 {
        self.first + self.step * place
    }

    /// The next change, as (kind, images); those that move rows come in pairs.
    fn change(&mut self, choice: Choice, images: &mut Vec<u8>) -> RowsKind {
        self.changes += 1;
        self.due += self.shape.moved;
        let margin = MARGIN / self.step;
        if choice == Choice::Own && (self.deleted || self.due >= 2.0) {
            if self.deleted {
                (self.deleted, self.due) = (false, self.due - 2.0);
                self.image(self.id(self.moved + self.window), images);
                self.moved += 1;
                return RowsKind::Write;
            }
            self.deleted = true;
            self.image(self.id(self.moved), images);
            return RowsKind::Delete;
        }
        let among = (self.window - 2 * margin).max(1);
        let place = match choice {
            // A number that has no factor in common with the window's visits all of it.
            Choice::Own => self.changes.wrapping_mul(7919) % among,
            Choice::Ten => self.changes % 10,
        };
        let id = self.id(self.moved + margin + place);
        self.image(id, images);
        self.image(id, images);
        RowsKind::Update
    }

    /// Two images of one row are never the same: a row that stays as it is costs next to nothing.
    fn image(&self, id: u32, out: &mut Vec<u8>) {
        let length = self.shape.text_bytes();
        // No column is NULL; the bits behind the last one are set.
        out.push(0xf8);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&(id / 3).to_le_bytes());
        out.extend_from_slice(&(length as u16).to_le_bytes());
        let text = format!("{:08x}{:x}", self.changes, out.len());
        out.extend(text.bytes().chain(std::iter::repeat(b'c')).take(length));
    }

    /// The rows events of one transaction, each with its table map, as statements of one row each log them.
    /// `version`: of rows events; MariaDB knows 1.
    pub fn events(&mut self, table: &str, rows: u32, choice: Choice, version: u8, head: Head) -> Vec<u8> {
        let columns = [
            Column::new(ColumnKind::LONG, 0, false),
            Column::new(ColumnKind::LONG, 0, false),
            Column::new(ColumnKind::VARCHAR, IMAGE_BYTES_MAX as u16, false),
        ];
        let key = [KeyPart { column: 0, prefix: 0 }];
        let map = TableMapSpec {
            table_id: 1,
            flags: 1,
            schema: SCHEMA,
            table,
            columns: &columns,
            primary_key: Some(&key),
            metadata: false,
        };
        let all = Bitmap::full(columns.len());
        let mut out = Vec::new();
        for _ in 0..rows {
            let mut images = Vec::new();
            let kind = self.change(choice, &mut images);
            out.extend(encode::table_map(&at(&head, out.len()), &map));
            let spec = RowsSpec {
                kind,
                table_id: 1,
                flags: RowsEvent::STMT_END,
                version,
                extra: &[],
                before_columns: &all,
                after_columns: &all,
                partial_json: false,
            };
            out.extend(encode::rows(&at(&head, out.len()), &spec, &images));
        }
        out
    }

    /// A MySQL log of so many transactions. `timestamp`: seconds since 1970.
    pub fn log(&mut self, table: &str, transactions: u32, rows_each: u32, choice: Choice, timestamp: u32) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let head = Head { timestamp, server_id: LOG_SERVER, flags: 0, offset: Some(0), checksum: Checksum::Crc32 };
        let format = FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Crc32);
        out.extend(encode::format_description(&at(&head, out.len()), &format));
        let vars = StatusVarsBuilder::new().flags2(0).charset(UTF8MB4, UTF8MB4, UTF8MB4).finish();
        for number in 1..=transactions {
            let gtid = MySqlGtid {
                uuid: *b"heddlecalibrates",
                gno: number.into(),
                last_committed: i64::from(number) - 1,
                sequence_number: number.into(),
                immediate_commit_timestamp_us: Some(u64::from(timestamp) * 1_000_000),
                ..MySqlGtid::default()
            };
            out.extend(encode::mysql_gtid(&at(&head, out.len()), &gtid));
            let begin = at(&head, out.len()).with_flags(binlog::Header::FLAG_SUPPRESS_USE);
            out.extend(encode::query(&begin, 1, 0, 0, SCHEMA, &vars, b"BEGIN"));
            let rows = self.events(table, rows_each, choice, 2, at(&head, out.len()));
            out.extend(rows);
            out.extend(encode::xid(&at(&head, out.len()), number.into()));
        }
        out.extend(encode::stop(&at(&head, out.len())));
        out
    }
}

/// `utf8mb4_general_ci`
const UTF8MB4: u16 = 45;
/// The server that is said to have written the log.
const LOG_SERVER: u32 = 4_000_000_007;

/// The head of an event behind so many bytes more.
fn at(head: &Head, bytes: usize) -> Head {
    Head { offset: head.offset.map(|offset| offset + bytes as u64), ..*head }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::survey::{Cut, Cutter, Definitions, Depth, scan};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    #[test]
    fn a_log_has_what_was_asked_for() {
        for (moved, choice) in [(0.0, Choice::Own), (0.5, Choice::Own), (1.0, Choice::Own), (0.0, Choice::Ten)] {
            let mut stream = Stream::new(Shape { image_bytes: 100, moved }, 0, 1);
            let log = stream.log("t", 300, 20, choice, 1_700_000_000);
            let mut cutter = Cutter::new(Arc::new(Definitions::default()));
            cutter.buffer().extend_from_slice(&log);
            let mut pieces = Vec::new();
            while let Cut::Piece(piece) = cutter.next() {
                pieces.push(piece);
            }
            let (last, None) = cutter.finish() else { panic!("a whole file") };
            let scanned: Vec<_> = pieces.iter().chain(&last).map(|piece| scan(piece, Depth::Traffic)).collect();
            assert!(scanned.iter().all(|scanned| scanned.problems.is_empty()));
            let records = || scanned.iter().flat_map(|scanned| &scanned.records);
            assert_eq!(records().count(), 300);
            let of = |count: fn(&engine::survey::Record) -> u64| records().map(count).sum::<u64>();
            let (rows, moves) = (of(engine::survey::Record::rows), of(|record| record.inserts + record.deletes));
            assert_eq!(rows, 6000);
            assert!((moves as f64 / rows as f64 - moved).abs() < 0.01, "{moves} of {rows}");
        }
    }

    #[test]
    fn rows_are_there_when_they_are_changed() {
        let mut stream = Stream::new(Shape { image_bytes: 64, moved: 0.4 }, 3, 16);
        let mut there: BTreeSet<u32> = (0..ROWS).collect();
        for _ in 0..50_000 {
            let mut images = Vec::new();
            let kind = stream.change(Choice::Own, &mut images);
            let id = u32::from_le_bytes(images[1..5].try_into().unwrap());
            assert_eq!(id % 16, 3);
            match kind {
                RowsKind::Write => assert!(there.insert(id)),
                RowsKind::Delete => assert!(there.remove(&id)),
                RowsKind::Update => assert!(there.contains(&id) && images[..64] != images[64..]),
            }
        }
    }

    #[test]
    fn the_shape_of_a_log() {
        assert_eq!(Shape::new(0, 10, 0, 10 * (35 + 400)), Shape { image_bytes: 200, moved: 0.0 });
        assert_eq!(Shape::new(5, 0, 5, 10 * (35 + 50)), Shape { image_bytes: 50, moved: 1.0 });
        assert_eq!(Shape::new(0, 0, 0, 0).image_bytes, IMAGE_BYTES_FIXED);
        assert_eq!(Shape::new(1, 0, 0, 1 << 30).image_bytes, IMAGE_BYTES_MAX);
    }
}
