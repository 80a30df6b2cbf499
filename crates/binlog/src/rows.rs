//! Rows events: versions 1 and 2, partial JSON updates, MariaDB's compressed ones.
//!
//! Layout: table_id u48, flags u16, (version 2: length u16 of extra data, itself counted, and the extra data), width,
//! bitmap of the columns in the before image (in the only image of an insert), (updates: bitmap of the after image),
//! rows. Compressed events compress the rows only.

use std::ops::Range;

use bytes::Bytes;

use crate::compressed;
use crate::corruption::{Corruption, CorruptionKind};
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::frame::MAX_EVENT_LEN;
use crate::image::{Bitmap, RowLayout, lsb_bit};
use crate::kind::Kind;
use crate::reader::Reader;
use crate::table_map::{TableMap, read_table_id};

/// What a rows event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowsKind {
    /// Inserts: after images.
    Write,
    /// Updates: before and after images.
    Update,
    /// Deletes: before images.
    Delete,
}

impl RowsKind {
    /// Of an event of this kind.
    pub fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::WRITE_ROWS_V1 | Kind::WRITE_ROWS | Kind::WRITE_ROWS_COMPRESSED_V1 | Kind::WRITE_ROWS_COMPRESSED => {
                Self::Write
            }
            Kind::UPDATE_ROWS_V1
            | Kind::UPDATE_ROWS
            | Kind::PARTIAL_UPDATE_ROWS
            | Kind::UPDATE_ROWS_COMPRESSED_V1
            | Kind::UPDATE_ROWS_COMPRESSED => Self::Update,
            Kind::DELETE_ROWS_V1
            | Kind::DELETE_ROWS
            | Kind::DELETE_ROWS_COMPRESSED_V1
            | Kind::DELETE_ROWS_COMPRESSED => Self::Delete,
            _ => return None,
        })
    }
}

/// A rows event. Its rows are undecoded: [`RowsEvent::images`] walks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsEvent {
    /// What it does.
    pub kind: RowsKind,
    /// 1, or 2 with `extra`.
    pub version: u8,
    /// Names the table map.
    pub table_id: u64,
    /// Flags, see the constants.
    pub flags: u16,
    /// Extra data of version 2, without its length.
    pub extra: Bytes,
    /// Columns of the table.
    pub width: usize,
    /// Columns in before images; empty for inserts.
    pub before_columns: Bitmap,
    /// Columns in after images; empty for deletes.
    pub after_columns: Bitmap,
    /// The rows, decompressed.
    pub rows: Bytes,
    /// After images start with value options, and may have JSON diffs in place of documents.
    pub partial_json: bool,
}

/// The images of one row: ranges in [`RowsEvent::rows`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowImages {
    /// Before image.
    pub before: Option<Range<usize>>,
    /// After image, without the value options in front of it.
    pub after: Option<Range<usize>>,
    /// In partial JSON events: value options and the bitmap of the JSON columns that are diffs.
    pub options: Option<Range<usize>>,
}

impl RowImages {
    /// The whole row, as it could be put in another event of the same kind and columns.
    pub fn range(&self) -> Range<usize> {
        let start = [&self.before, &self.options, &self.after].into_iter().flatten().map(|range| range.start).min();
        let end = [&self.before, &self.after].into_iter().flatten().map(|range| range.end).max();
        start.unwrap_or(0)..end.unwrap_or(0)
    }
}

impl RowsEvent {
    /// The last rows event of a statement.
    pub const STMT_END: u16 = 1;
    /// `foreign_key_checks=0`.
    pub const NO_FOREIGN_KEY_CHECKS: u16 = 2;
    /// `unique_checks=0`.
    pub const RELAXED_UNIQUE_CHECKS: u16 = 4;
    /// Rows have all columns.
    pub const COMPLETE_ROWS: u16 = 8;
    /// `USE_SQL_FOREIGN_KEY_F`, MySQL 9.6 and later: what cascades is in the log, child rows before their parent's.
    pub const SQL_FOREIGN_KEYS: u16 = 16;
    /// MariaDB: `check_constraint_checks=0`.
    pub const NO_CHECK_CONSTRAINT_CHECKS: u16 = 128;

    /// Decodes every kind for which [`Kind::is_rows`] holds.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, format: &FormatDescription) -> Result<RowsEvent, Corruption> {
        Self::decode_within(event, format, MAX_EVENT_LEN as u64)
    }

    /// The same of rows of at most so many bytes, if they are compressed.
    ///
    /// # Errors
    /// As [`RowsEvent::decode`], and [`CorruptionKind::TooLarge`].
    pub fn decode_within(event: &Event, format: &FormatDescription, limit_bytes: u64) -> Result<RowsEvent, Corruption> {
        use RowsKind::{Delete, Update, Write};
        let (kind, version, compressed) = match event.kind() {
            Kind::WRITE_ROWS_V1 => (Write, 1, false),
            Kind::UPDATE_ROWS_V1 => (Update, 1, false),
            Kind::DELETE_ROWS_V1 => (Delete, 1, false),
            Kind::WRITE_ROWS => (Write, 2, false),
            Kind::UPDATE_ROWS | Kind::PARTIAL_UPDATE_ROWS => (Update, 2, false),
            Kind::DELETE_ROWS => (Delete, 2, false),
            Kind::WRITE_ROWS_COMPRESSED_V1 => (Write, 1, true),
            Kind::UPDATE_ROWS_COMPRESSED_V1 => (Update, 1, true),
            Kind::DELETE_ROWS_COMPRESSED_V1 => (Delete, 1, true),
            Kind::WRITE_ROWS_COMPRESSED => (Write, 2, true),
            Kind::UPDATE_ROWS_COMPRESSED => (Update, 2, true),
            Kind::DELETE_ROWS_COMPRESSED => (Delete, 2, true),
            _ => return Err(event.wrong_kind("rows")),
        };
        let mut r = event.reader();
        let table_id = read_table_id(&mut r, format.post_header_len(event.kind()))?;
        let flags = r.u16("rows flags")?;
        let mut extra = Bytes::new();
        if version == 2 {
            let len = r.u16("extra data length")?;
            let Some(len) = len.checked_sub(2) else {
                return Err(r.invalid("extra data length", len.into()));
            };
            extra = event.share(r.bytes(len.into(), "extra data")?);
        }
        let width = r.lenenc("column count")?;
        // Both bitmaps must follow, an eighth of a byte for each column.
        let width = match usize::try_from(width) {
            Ok(width) if width.div_ceil(8) <= r.remaining() => width,
            _ => {
                return Err(r.err(CorruptionKind::Truncated {
                    field: "column bitmap",
                    want: width.div_ceil(8),
                    have: r.remaining() as u64,
                }));
            }
        };
        let first = Bitmap::new(r.bytes(width.div_ceil(8), "column bitmap")?, width);
        let none = || Bitmap::new(&[], width);
        let (before_columns, after_columns) = match kind {
            Write => (none(), first),
            Delete => (first, none()),
            Update => {
                let second = r.bytes(width.div_ceil(8), "column bitmap")?;
                (first, Bitmap::new(second, width))
            }
        };
        let base = r.offset();
        let mut rows = event.share(r.rest());
        if compressed {
            rows = compressed::inflate(&rows, "rows", limit_bytes).map_err(|corrupt| corrupt.at(base))?;
        }
        let partial_json = event.kind() == Kind::PARTIAL_UPDATE_ROWS;
        Ok(RowsEvent {
            kind,
            version,
            table_id,
            flags,
            extra,
            width,
            before_columns,
            after_columns,
            rows,
            partial_json,
        })
    }

    /// The table id alone, for finding the table map before decoding.
    ///
    /// # Errors
    /// [`Corruption`] when the event is not a rows event or too short.
    pub fn peek_table_id(event: &Event, format: &FormatDescription) -> Result<u64, Corruption> {
        if !event.kind().is_rows() {
            return Err(event.wrong_kind("rows"));
        }
        read_table_id(&mut event.reader(), format.post_header_len(event.kind()))
    }

    /// Walks the rows. After an error the iterator ends.
    pub fn images<'a>(&'a self, table: &'a TableMap) -> Images<'a> {
        self.images_with(table.layout())
    }

    /// [`RowsEvent::images`] with the layout alone.
    pub fn images_with<'a>(&'a self, layout: &'a RowLayout) -> Images<'a> {
        Images { event: self, layout, at: 0, done: false }
    }
}

/// Iterator over the rows of an event; offsets in errors count from the start of the rows.
#[derive(Debug, Clone)]
pub struct Images<'a> {
    event: &'a RowsEvent,
    layout: &'a RowLayout,
    at: usize,
    done: bool,
}

impl Images<'_> {
    fn image(&self, present: &Bitmap, at: usize) -> Result<Range<usize>, Corruption> {
        let bytes = self.event.rows.get(at..).unwrap_or_default();
        let len = self.layout.image_len(present, bytes).map_err(|corrupt| corrupt.at(at as u64))?;
        Ok(at..at + len)
    }

    fn row(&mut self) -> Result<RowImages, Corruption> {
        let event = self.event;
        if event.width != self.layout.width() {
            let what = CorruptionKind::Width { rows: event.width as u64, table: self.layout.width() as u64 };
            return Err(Corruption::new(self.at as u64, what));
        }
        let start = self.at;
        let mut at = start;
        let mut images = RowImages { before: None, after: None, options: None };
        if event.kind != RowsKind::Write {
            let range = self.image(&event.before_columns, at)?;
            at = range.end;
            images.before = Some(range);
        }
        if event.kind != RowsKind::Delete {
            if event.partial_json {
                let options = self.options(at)?;
                at = options.end;
                images.options = Some(options);
            }
            let range = self.image(&event.after_columns, at)?;
            at = range.end;
            images.after = Some(range);
        }
        if at == start {
            // A row without columns: an insert into a table whose every column is left out. The event holds one.
            let left = event.rows.len() - at;
            if left > 0 {
                return Err(Corruption::new(
                    at as u64,
                    CorruptionKind::Invalid { field: "bytes in a row without columns", value: left as u64 },
                ));
            }
            self.done = true;
        }
        self.at = at;
        Ok(images)
    }

    fn options(&self, at: usize) -> Result<Range<usize>, Corruption> {
        let mut r = Reader::new(self.event.rows.get(at..).unwrap_or_default(), at as u64);
        let options = r.lenenc("value options")?;
        if options > 1 {
            return Err(r.invalid("value options", options));
        }
        if options & 1 != 0 {
            r.bytes(self.layout.json_columns().div_ceil(8), "partial JSON bitmap")?;
        }
        Ok(at..at + r.position())
    }
}

impl Iterator for Images<'_> {
    type Item = Result<RowImages, Corruption>;

    fn next(&mut self) -> Option<Self::Item> {
        let empty_row = self.event.rows.is_empty() && !self.done && self.at == 0 && self.has_no_columns();
        if self.done || (self.at >= self.event.rows.len() && !empty_row) {
            return None;
        }
        let row = self.row();
        if row.is_err() {
            self.done = true;
        }
        Some(row)
    }
}

impl Images<'_> {
    fn has_no_columns(&self) -> bool {
        self.event.before_columns.count() == 0 && self.event.after_columns.count() == 0
    }
}

/// Which JSON columns of a row are diffs: `options` is [`RowImages::options`]'s bytes, the index counts the table's JSON
/// columns.
pub fn is_json_diff(options: &[u8], json_index: usize) -> bool {
    options.first() == Some(&1) && options.get(1..).is_some_and(|bits| lsb_bit(bits, json_index))
}
