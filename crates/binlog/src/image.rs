//! Row images: where each column's bytes are, without copying or allocating.
//!
//! An image is a null bitmap over the columns that are present, and the values of those that are not NULL. The length of
//! a value follows from the table map alone; [`RowLayout`] has it ready.

use smallvec::SmallVec;

use crate::column::{Column, ColumnKind};
use crate::corruption::{Corruption, CorruptionKind};

/// Which columns an image has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    /// As many bytes as there are, without memory of their own for up to 128 columns.
    bits: SmallVec<[u8; 16]>,
    width: usize,
    count: usize,
}

impl Bitmap {
    /// `bits` has a bit for each of `width` columns, the first in the lowest bit of the first byte. Missing bytes count
    /// as zeros, further bits are ignored.
    #[inline]
    pub fn new(bits: &[u8], width: usize) -> Bitmap {
        let whole: usize = bits.iter().take(width / 8).map(|byte| byte.count_ones() as usize).sum();
        let last = bits.get(width / 8).copied().unwrap_or(0) & ((1u16 << (width % 8)) - 1) as u8;
        Bitmap { bits: SmallVec::from_slice(bits), width, count: whole + last.count_ones() as usize }
    }

    /// All of `width` columns. Bits beyond the last column are set, as servers write them.
    pub fn full(width: usize) -> Bitmap {
        Bitmap { bits: SmallVec::from_elem(0xff, width.div_ceil(8)), width, count: width }
    }

    /// Those columns of `width` for which `present` says so.
    pub fn from_fn(width: usize, present: impl Fn(usize) -> bool) -> Bitmap {
        let mut bits: SmallVec<[u8; 16]> = SmallVec::from_elem(0, width.div_ceil(8));
        for index in (0..width).filter(|index| present(*index)) {
            if let Some(byte) = bits.get_mut(index / 8) {
                *byte |= 1 << (index % 8);
            }
        }
        Bitmap::new(&bits, width)
    }

    /// Whether column `index` is present.
    pub fn get(&self, index: usize) -> bool {
        index < self.width && lsb_bit(&self.bits, index)
    }

    /// Columns of the table.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Columns that are present.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether every column is present.
    pub fn is_full(&self) -> bool {
        self.count == self.width
    }

    /// The bits as logged.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bits
    }

    /// Indexes of the columns that are present.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.width).filter(|index| self.get(*index))
    }
}

/// How long a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many bytes.
    Fixed(u16),
    /// A little-endian length of so many bytes (1 to 4), then the data.
    Prefix(u8),
    /// No format is known for this type code.
    Unknown(u8),
}

/// The lengths of a table's columns, and which are JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLayout {
    lengths: Vec<Length>,
    json_columns: usize,
}

impl RowLayout {
    /// For these columns.
    pub fn new(columns: &[Column]) -> RowLayout {
        RowLayout {
            lengths: columns.iter().map(length).collect(),
            json_columns: columns.iter().filter(|column| column.kind == ColumnKind::JSON).count(),
        }
    }

    /// Columns of the table.
    pub fn width(&self) -> usize {
        self.lengths.len()
    }

    /// JSON columns of the table.
    pub fn json_columns(&self) -> usize {
        self.json_columns
    }

    /// How long values of column `index` are.
    pub fn length(&self, index: usize) -> Option<Length> {
        self.lengths.get(index).copied()
    }

    /// The values in `image`, which may have more bytes after it; [`Columns::consumed`] then says where it ends.
    pub fn columns<'a>(&'a self, present: &'a Bitmap, image: &'a [u8]) -> Columns<'a> {
        let null_len = present.count().div_ceil(8);
        let (nulls, rest, failed) = match image.split_at_checked(null_len) {
            Some((nulls, rest)) => (nulls, rest, None),
            None => {
                let (want, have) = (null_len as u64, image.len() as u64);
                (image, &[][..], Some(CorruptionKind::Truncated { field: "null bitmap", want, have }))
            }
        };
        Columns { layout: self, present, nulls, image_len: image.len(), rest, column: 0, ordinal: 0, failed }
    }

    /// Appends `image`, which has the columns `present`, as one that has the columns `wanted` only.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in `image`; a wanted column that is not present is one, too. `out` then has a part of it.
    pub fn select(&self, present: &Bitmap, image: &[u8], wanted: &Bitmap, out: &mut Vec<u8>) -> Result<(), Corruption> {
        let nulls = out.len();
        out.resize(nulls + wanted.count().div_ceil(8), 0);
        let mut found = 0;
        let mut columns = self.columns(present, image);
        while found < wanted.count() {
            let Some(column) = columns.next() else {
                let what = CorruptionKind::Width { rows: found as u64, table: wanted.count() as u64 };
                return Err(Corruption::new(columns.consumed() as u64, what));
            };
            let column = column?;
            if !wanted.get(column.column) {
                continue;
            }
            match (column.value, out.get_mut(nulls + found / 8)) {
                (None, Some(byte)) => *byte |= 1 << (found % 8),
                _ => out.extend_from_slice(column.raw),
            }
            found += 1;
        }
        Ok(())
    }

    /// Length in bytes of the image that `bytes` starts with.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in `bytes`.
    pub fn image_len(&self, present: &Bitmap, bytes: &[u8]) -> Result<usize, Corruption> {
        let mut columns = self.columns(present, bytes);
        if present.is_full() && present.width() == self.lengths.len() && columns.failed.is_none() {
            return full_image_len(&self.lengths, columns.nulls, bytes);
        }
        for value in columns.by_ref() {
            value?;
        }
        Ok(columns.consumed())
    }
}

/// The common case, in a loop without the iterator's bookkeeping.
fn full_image_len(lengths: &[Length], nulls: &[u8], bytes: &[u8]) -> Result<usize, Corruption> {
    let mut at = nulls.len();
    for (octet, (eight, mask)) in lengths.chunks(8).zip(nulls).enumerate() {
        for (bit, length) in eight.iter().enumerate() {
            if mask >> bit & 1 != 0 {
                continue;
            }
            at += match length {
                Length::Fixed(len) => usize::from(*len),
                Length::Prefix(prefix) => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let Some((_, len)) = read_prefix(rest, *prefix) else {
                        return Err(truncated(at, usize::from(*prefix), rest.len()));
                    };
                    usize::from(*prefix) + len
                }
                Length::Unknown(kind) => {
                    let column = (octet * 8 + bit) as u32;
                    return Err(Corruption::new(at as u64, CorruptionKind::ColumnType { column, kind: *kind }));
                }
            };
        }
    }
    if at > bytes.len() { Err(truncated(bytes.len(), at - bytes.len(), 0)) } else { Ok(at) }
}

fn truncated(at: usize, want: usize, have: usize) -> Corruption {
    Corruption::new(
        at as u64,
        CorruptionKind::Truncated { field: "column value", want: want as u64, have: have as u64 },
    )
}

/// One column of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnValue<'a> {
    /// Index in the table.
    pub column: usize,
    /// `None` for NULL; else the value without its length prefix.
    pub value: Option<&'a [u8]>,
    /// The value as it is in the image, with its length prefix; empty for NULL.
    pub raw: &'a [u8],
}

/// Iterator over the columns of an image.
#[derive(Debug, Clone)]
pub struct Columns<'a> {
    layout: &'a RowLayout,
    present: &'a Bitmap,
    nulls: &'a [u8],
    image_len: usize,
    rest: &'a [u8],
    column: usize,
    ordinal: usize,
    failed: Option<CorruptionKind>,
}

impl Columns<'_> {
    /// Bytes read so far: the image's length once the iterator has ended without an error.
    pub fn consumed(&self) -> usize {
        self.image_len - self.rest.len()
    }

    fn fail(&mut self, what: CorruptionKind) -> Corruption {
        self.column = usize::MAX;
        Corruption::new(self.consumed() as u64, what)
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = Result<ColumnValue<'a>, Corruption>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(what) = self.failed.take() {
            return Some(Err(self.fail(what)));
        }
        if !self.present.is_full() {
            while self.column < self.present.width() && !self.present.get(self.column) {
                self.column += 1;
            }
        }
        if self.column >= self.present.width() {
            return None;
        }
        let column = self.column;
        let Some(length) = self.layout.lengths.get(column) else {
            let what =
                CorruptionKind::Width { rows: self.present.width() as u64, table: self.layout.lengths.len() as u64 };
            return Some(Err(self.fail(what)));
        };
        let ordinal = self.ordinal;
        self.ordinal += 1;
        self.column += 1;
        if lsb_bit(self.nulls, ordinal) {
            return Some(Ok(ColumnValue { column, value: None, raw: &[] }));
        }
        let (prefix, len) = match *length {
            Length::Fixed(len) => (0, usize::from(len)),
            Length::Prefix(prefix) => match read_prefix(self.rest, prefix) {
                Some(found) => found,
                None => {
                    let (want, have) = (prefix.into(), self.rest.len() as u64);
                    return Some(Err(self.fail(CorruptionKind::Truncated { field: "value length", want, have })));
                }
            },
            Length::Unknown(kind) => {
                return Some(Err(self.fail(CorruptionKind::ColumnType { column: column as u32, kind })));
            }
        };
        let split = prefix.checked_add(len).and_then(|total| self.rest.split_at_checked(total));
        let Some((raw, rest)) = split else {
            let (want, have) = ((prefix + len) as u64, self.rest.len() as u64);
            return Some(Err(self.fail(CorruptionKind::Truncated { field: "column value", want, have })));
        };
        self.rest = rest;
        Some(Ok(ColumnValue { column, value: raw.get(prefix..), raw }))
    }
}

/// The prefix's own length and the length that it says.
fn read_prefix(bytes: &[u8], prefix: u8) -> Option<(usize, usize)> {
    let len = match prefix {
        1 => usize::from(*bytes.first()?),
        2 => usize::from(u16::from_le_bytes(*bytes.first_chunk()?)),
        _ => {
            let mut wide = [0u8; 4];
            for (to, from) in wide.iter_mut().zip(bytes.get(..usize::from(prefix))?) {
                *to = *from;
            }
            u32::from_le_bytes(wide) as usize
        }
    };
    Some((usize::from(prefix), len))
}

/// How long values of `column` are. Source: the documented storage formats of the types.
pub fn length(column: &Column) -> Length {
    let meta = column.meta;
    match column.real_kind() {
        ColumnKind::NULL => Length::Fixed(0),
        ColumnKind::TINY | ColumnKind::YEAR => Length::Fixed(1),
        ColumnKind::SHORT => Length::Fixed(2),
        ColumnKind::INT24 | ColumnKind::DATE | ColumnKind::NEWDATE | ColumnKind::TIME => Length::Fixed(3),
        ColumnKind::LONG | ColumnKind::FLOAT | ColumnKind::TIMESTAMP => Length::Fixed(4),
        ColumnKind::LONGLONG | ColumnKind::DOUBLE | ColumnKind::DATETIME => Length::Fixed(8),
        ColumnKind::TIMESTAMP2 if meta <= 6 => Length::Fixed(4 + meta.div_ceil(2)),
        ColumnKind::DATETIME2 if meta <= 6 => Length::Fixed(5 + meta.div_ceil(2)),
        ColumnKind::TIME2 if meta <= 6 => Length::Fixed(3 + meta.div_ceil(2)),
        ColumnKind::BIT => Length::Fixed((meta >> 8) + u16::from(meta & 0xff != 0)),
        ColumnKind::NEWDECIMAL => match decimal_len(meta >> 8, meta & 0xff) {
            Some(len) => Length::Fixed(len),
            None => Length::Unknown(column.kind.0),
        },
        ColumnKind::ENUM | ColumnKind::SET => Length::Fixed(meta & 0xff),
        ColumnKind::STRING | ColumnKind::VAR_STRING => Length::Prefix(if column.max_len() < 256 { 1 } else { 2 }),
        ColumnKind::VARCHAR | ColumnKind::VARCHAR_COMPRESSED => Length::Prefix(if meta < 256 { 1 } else { 2 }),
        ColumnKind::TINY_BLOB => Length::Prefix(1),
        ColumnKind::BLOB
        | ColumnKind::BLOB_COMPRESSED
        | ColumnKind::MEDIUM_BLOB
        | ColumnKind::LONG_BLOB
        | ColumnKind::JSON
        | ColumnKind::GEOMETRY
        | ColumnKind::VECTOR
            if (1..=4).contains(&meta) =>
        {
            Length::Prefix(meta as u8)
        }
        other => Length::Unknown(other.0),
    }
}

/// Bytes of a packed decimal: nine digits in four bytes, the rest as they need.
pub(crate) fn decimal_len(precision: u16, scale: u16) -> Option<u16> {
    const DIGITS_TO_BYTES: [u16; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let whole = precision.checked_sub(scale)?;
    let bytes = |digits: u16| DIGITS_TO_BYTES.get(usize::from(digits % 9)).map(|rest| digits / 9 * 4 + rest);
    Some(bytes(whole)? + bytes(scale)?)
}

/// Bit `index` counted from the lowest of the first byte.
pub(crate) fn lsb_bit(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 != 0)
}
