//! What tells the rows of a table apart, and how that becomes a key of the store.
//!
//! The primary key where it is known, as the bytes that the source holds: two rows of a table never have the same, and
//! every before image has exactly those of the row that it means. Else the row as a whole. Which of the two is decided
//! when a table is first seen, and stays.

use binlog::image::{self, Length};
use binlog::{Bitmap, Column, ColumnKind, TableMap};
use engine::keys::numbered;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

use super::keys;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// No row was seen yet. `declared`: the primary key that CREATE TABLE named.
    Undecided { declared: Option<DeclaredKey> },
    /// A primary key, in its order.
    Key { parts: Vec<Part>, declared: Option<Vec<Shape>> },
    /// The whole row, with a count.
    Bag { columns: Vec<Shape> },
    /// A sequence of MariaDB: one row, which every change replaces.
    Single,
}

/// A primary key as a statement declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredKey {
    pub columns: Vec<usize>,
    /// Columns of the table.
    pub width: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub column: usize,
    pub shape: Shape,
    /// An unsigned number: only for the order of the keys.
    pub unsigned: bool,
}

/// The form of a column's values: rows written under equal shapes have comparable bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    kind: u8,
    /// Of the table map; 0 where it does not change what a value looks like.
    meta: u16,
    /// Bytes of the length prefix, 0 for none.
    prefix: u8,
    collation: Option<u16>,
}

impl Shape {
    fn of(column: &Column) -> Self {
        let kind = column.real_kind();
        let prefix = match image::length(column) {
            Length::Prefix(prefix) => prefix,
            Length::Fixed(_) | Length::Unknown(_) => 0,
        };
        let meta = match kind {
            ColumnKind::VARCHAR | ColumnKind::VAR_STRING | ColumnKind::STRING | ColumnKind::VARCHAR_COMPRESSED => 0,
            _ => column.meta,
        };
        Self { kind: kind.0, meta, prefix, collation: column.collation }
    }

    /// Whether values have the same bytes under both. What is not said counts as the same.
    fn fits(&self, other: &Self) -> bool {
        let same_characters = match (self.collation, other.collation) {
            (Some(a), Some(b)) => a == b || numbered::same_charset(a, b),
            _ => true,
        };
        self.kind == other.kind && self.meta == other.meta && self.prefix == other.prefix && same_characters
    }

    /// As part of a key, where the length prefix does not count.
    fn fits_as_key(&self, other: &Self) -> bool {
        Self { prefix: 0, ..self.clone() }.fits(&Self { prefix: 0, ..other.clone() })
    }
}

pub fn shapes(map: &TableMap) -> Vec<Shape> {
    map.columns.iter().map(Shape::of).collect()
}

fn part(map: &TableMap, column: usize) -> Option<Part> {
    let definition = map.columns.get(column)?;
    Some(Part { column, shape: Shape::of(definition), unsigned: definition.unsigned == Some(true) })
}

/// The identity of a table that is seen for the first time.
pub fn decide(map: &TableMap, declared: Option<&DeclaredKey>) -> Identity {
    let bag = || Identity::Bag { columns: shapes(map) };
    let parts = |columns: &mut dyn Iterator<Item = usize>| -> Option<Vec<Part>> {
        columns.map(|column| part(map, column)).collect()
    };
    if let Some(key) = &map.primary_key {
        let parts = parts(&mut key.iter().map(|part| part.column));
        return parts
            .filter(|parts| !parts.is_empty())
            .map_or_else(bag, |parts| Identity::Key { parts, declared: None });
    }
    match declared.filter(|declared| declared.width == map.columns.len() && !has_names(map)) {
        Some(declared) => parts(&mut declared.columns.iter().copied())
            .map_or_else(bag, |parts| Identity::Key { parts, declared: Some(shapes(map)) }),
        None => bag(),
    }
}

/// binlog_row_metadata=FULL: a primary key would be named.
pub fn has_names(map: &TableMap) -> bool {
    map.columns.iter().any(|column| column.name.is_some())
}

/// The recorded identity as it applies to rows under a table map; an error says why it does not.
pub fn fit(identity: &Identity, map: &TableMap) -> Result<Identity, String> {
    match identity {
        Identity::Undecided { declared } => Ok(decide(map, declared.as_ref())),
        Identity::Single => Ok(Identity::Single),
        Identity::Bag { columns } => {
            let now = shapes(map);
            let same = columns.len() == now.len() && columns.iter().zip(&now).all(|(was, is)| was.fits(is));
            same.then(|| identity.clone()).ok_or_else(|| {
                "its columns have changed, and without a known primary key its rows can not be told apart any more"
                    .to_owned()
            })
        }
        Identity::Key { parts, declared } => fit_key(parts, declared.as_deref(), map),
    }
}

fn fit_key(parts: &[Part], declared: Option<&[Shape]>, map: &TableMap) -> Result<Identity, String> {
    let columns: Vec<usize> = match (&map.primary_key, declared) {
        (Some(key), _) => key.iter().map(|part| part.column).collect(),
        (None, _) if has_names(map) => return Err("its primary key is gone".to_owned()),
        (None, None) => parts.iter().map(|part| part.column).collect(),
        (None, Some(known)) => {
            let now = shapes(map);
            let grown = known.len() <= now.len() && known.iter().zip(&now).all(|(was, is)| was.fits(is));
            if !grown {
                return Err(
                    "its columns have changed, and the table map does not say where the primary key is now".to_owned()
                );
            }
            parts.iter().map(|part| part.column).collect()
        }
    };
    let changed = || "its primary key has changed".to_owned();
    if columns.len() != parts.len() {
        return Err(changed());
    }
    let mut now = Vec::with_capacity(parts.len());
    for (was, column) in parts.iter().zip(columns) {
        let is = part(map, column).ok_or_else(changed)?;
        if !was.shape.fits_as_key(&is.shape) {
            return Err("the type of its primary key has changed".to_owned());
        }
        // The keys that are there were made with the old sign.
        now.push(Part { unsigned: was.unsigned, ..is });
    }
    Ok(Identity::Key { parts: now, declared: declared.map(<[Shape]>::to_vec) })
}

/// Makes keys of the rows of one table.
#[derive(Clone, Debug)]
pub struct KeyRule {
    table: u32,
    parts: SmallVec<[PartRule; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct PartRule {
    column: usize,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// Little-endian; `flip`: the sign bit is turned so that keys sort as numbers.
    Number {
        flip: bool,
    },
    Fixed,
    Variable,
}

/// Longer keys are cut and end with a hash: fjall takes up to 65,535 bytes.
const KEY_BYTES_MAX: usize = 1024;
/// Bytes of a long key that are kept in front of its hash; with it, the key is longer than any that is not cut.
const KEY_BYTES_KEPT: usize = KEY_BYTES_MAX - 8;

/// Values of the key columns of one image.
pub type KeyValues<'a> = SmallVec<[&'a [u8]; 2]>;

impl KeyRule {
    pub fn new(table: u32, parts: &[Part]) -> Self {
        let form = |part: &Part| match ColumnKind(part.shape.kind) {
            ColumnKind::TINY | ColumnKind::SHORT | ColumnKind::INT24 | ColumnKind::LONG | ColumnKind::LONGLONG => {
                Form::Number { flip: !part.unsigned }
            }
            _ if part.shape.prefix == 0 => Form::Fixed,
            _ => Form::Variable,
        };
        let parts = parts.iter().map(|part| PartRule { column: part.column, form: form(part) }).collect();
        Self { table, parts }
    }

    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().map(|part| part.column)
    }

    /// The key's values in an image, in the key's order.
    pub fn values<'a>(&self, map: &'a TableMap, present: &'a Bitmap, image: &'a [u8]) -> Result<KeyValues<'a>, String> {
        let mut values: KeyValues<'a> = SmallVec::from_elem(&[][..], self.parts.len());
        let mut missing = self.parts.len();
        for column in binlog::table_map::columns(map, present, image) {
            let column = column.map_err(|error| error.to_string())?;
            if let Some(at) = self.parts.iter().position(|part| part.column == column.column) {
                let value = column.value.ok_or("its primary key is NULL")?;
                if let Some(slot) = values.get_mut(at) {
                    *slot = value;
                }
                missing -= 1;
                if missing == 0 {
                    return Ok(values);
                }
            }
        }
        Err("the row image lacks columns of the primary key".to_owned())
    }

    /// Replaces `key` by the store's key of these values.
    pub fn write(&self, values: &[&[u8]], key: &mut Vec<u8>) {
        key.clear();
        key.extend_from_slice(&keys::rows(self.table));
        let last = self.parts.len().saturating_sub(1);
        for (at, (part, value)) in self.parts.iter().zip(values).enumerate() {
            match part.form {
                Form::Number { flip } => {
                    let start = key.len();
                    key.extend(value.iter().rev());
                    if let Some(first) = key.get_mut(start).filter(|_| flip) {
                        *first ^= 0x80;
                    }
                }
                Form::Fixed => key.extend_from_slice(value),
                Form::Variable if at == last => key.extend_from_slice(value),
                Form::Variable => {
                    for &byte in *value {
                        key.push(byte);
                        if byte == 0 {
                            key.push(0xff);
                        }
                    }
                    key.extend_from_slice(&[0, 0]);
                }
            }
        }
        if key.len() > KEY_BYTES_MAX {
            let hash = Sha256::digest(&*key);
            key.truncate(KEY_BYTES_KEPT);
            key.extend_from_slice(&hash);
        }
    }
}

/// The key of a row that only its whole image identifies: so many bytes of its SHA-256 that no two rows meet.
pub fn bag_key(table: u32, image: &[u8], key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&keys::rows(table));
    let hash = Sha256::digest(image);
    key.extend_from_slice(hash.first_chunk::<16>().map_or(&[][..], |head| head));
}
