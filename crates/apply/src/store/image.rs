//! Row images as the store keeps them: the number of their table map, the columns that are there, the image.
//!
//! An insert under binlog_row_image=MINIMAL lacks the columns that take their defaults, which no event names: they stay
//! missing here.

use binlog::image::length;
use binlog::table_map::columns;
use binlog::{Bitmap, ColumnKind, TableMap};
use fjall::Slice;

/// Set in the number of the table map when a bitmap of the columns stands in front of the image.
const PARTIAL: u32 = 1 << 31;
/// Numbers of table maps stay below.
pub const VERSION_MAX: u32 = PARTIAL - 1;

/// One row as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow<'a> {
    pub version: u32,
    /// `None`: all columns.
    bitmap: Option<&'a [u8]>,
    pub image: &'a [u8],
}

/// Appends a row to `out`.
pub fn encode(version: u32, present: &Bitmap, image: &[u8], out: &mut Vec<u8>) {
    if present.is_full() {
        out.extend_from_slice(&version.to_le_bytes());
    } else {
        out.extend_from_slice(&(version | PARTIAL).to_le_bytes());
        let bytes = present.width().div_ceil(8);
        out.extend((0..bytes).map(|at| present.as_bytes().get(at).copied().unwrap_or(0)));
    }
    out.extend_from_slice(image);
}

impl<'a> StoredRow<'a> {
    /// `width` tells the number of columns of a table map.
    pub fn decode(value: &'a [u8], width: impl Fn(u32) -> Option<usize>) -> Option<Self> {
        let (number, rest) = value.split_first_chunk::<4>()?;
        let number = u32::from_le_bytes(*number);
        let version = number & !PARTIAL;
        if number & PARTIAL == 0 {
            return Some(Self { version, bitmap: None, image: rest });
        }
        let (bitmap, image) = rest.split_at_checked(width(version)?.div_ceil(8))?;
        Some(Self { version, bitmap: Some(bitmap), image })
    }

    /// The columns that are there.
    pub fn present(&self, width: usize) -> Bitmap {
        match self.bitmap {
            Some(bits) => Bitmap::new(bits, width),
            None => Bitmap::full(width),
        }
    }
}

/// Where each column of an older table map is in a newer one, by name where both have names; `None`: it is gone. An
/// error when that is not known, or values would have to be converted.
fn places(old: &TableMap, new: &TableMap) -> Result<Vec<Option<usize>>, String> {
    let named = |map: &TableMap| map.columns.iter().all(|column| column.name.is_some());
    let by_name = named(old) && named(new);
    if !by_name && new.columns.len() < old.columns.len() {
        return Err("columns are gone since it was stored, and the table map does not say which".to_owned());
    }
    let place = |(at, column): (usize, &binlog::Column)| {
        let place = if by_name { new.columns.iter().position(|other| other.name == column.name) } else { Some(at) };
        let fits = place.and_then(|place| new.columns.get(place)).is_none_or(|other| {
            let metas = |column: &binlog::Column| (column.kind, column.meta);
            other.kind == column.kind
                && length(other) == length(column)
                && (is_text(column) || metas(other) == metas(column))
        });
        fits.then_some(place).ok_or_else(|| "a column has another type since it was stored".to_owned())
    };
    old.columns.iter().enumerate().map(place).collect()
}

/// The longest value of a string does not change what a value looks like.
fn is_text(column: &binlog::Column) -> bool {
    matches!(column.real_kind(), ColumnKind::VARCHAR | ColumnKind::VAR_STRING | ColumnKind::STRING)
}

/// The stored row, which has the shape of `old`, with the columns of `after` in place of its own. Columns that have come
/// since hold their default, which is not known here: they stay missing.
pub fn merge(
    map: &TableMap,
    old: &TableMap,
    stored: &StoredRow<'_>,
    after_columns: &Bitmap,
    after: &[u8],
) -> Result<(Bitmap, Vec<u8>), String> {
    let width = map.columns.len();
    let mut values: Vec<Option<Option<&[u8]>>> = vec![None; width];
    let stored_columns = stored.present(old.columns.len());
    let places = places(old, map)?;
    for column in columns(old, &stored_columns, stored.image) {
        let column = column.map_err(|error| error.to_string())?;
        let place = places.get(column.column).copied().flatten();
        if let Some(slot) = place.and_then(|place| values.get_mut(place)) {
            *slot = Some(column.value.map(|_| column.raw));
        }
    }
    for column in columns(map, after_columns, after) {
        let column = column.map_err(|error| error.to_string())?;
        if let Some(slot) = values.get_mut(column.column) {
            *slot = Some(column.value.map(|_| column.raw));
        }
    }
    let present = Bitmap::from_fn(width, |column| values.get(column).is_some_and(Option::is_some));
    let present = if present.is_full() { Bitmap::full(width) } else { present };
    let mut image = vec![0u8; present.count().div_ceil(8)];
    // Bits beyond the last column are set, as servers write them.
    if let Some(last) = image.last_mut().filter(|_| present.count() % 8 != 0) {
        *last = 0xff << (present.count() % 8);
    }
    for (ordinal, value) in values.iter().flatten().enumerate() {
        match value {
            Some(raw) => image.extend_from_slice(raw),
            None => {
                if let Some(byte) = image.get_mut(ordinal / 8) {
                    *byte |= 1 << (ordinal % 8);
                }
            }
        }
    }
    Ok((present, image))
}

/// A row that only its image identifies, with how often it is there.
pub fn encode_counted(count: u64, row: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(row);
}

pub fn split_count(value: &Slice) -> Option<(u64, &[u8])> {
    let (count, row) = value.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*count), row))
}
