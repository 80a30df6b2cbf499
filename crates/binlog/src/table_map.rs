//! TABLE_MAP: the table and the columns of the rows events that follow.
//!
//! Layout: table_id u48 (u32 in very old logs), flags u16, schema and table (length u8, text, NUL), column count, a type
//! byte for each column, metadata block, null bitmap, and since MySQL 8.0.1 and MariaDB 10.5 optional metadata as
//! (type u8, length, value) triples. Metadata types that are not known are skipped; they stay in the raw body.

use bytes::Bytes;

use crate::column::{Column, ColumnKind};
use crate::corruption::{Corruption, CorruptionKind};
use crate::event::{Event, Flavour};
use crate::format_description::FormatDescription;
use crate::image::{Bitmap, Columns, RowLayout, lsb_bit};
use crate::kind::Kind;
use crate::reader::Reader;

/// Most columns of a table in either server (4096 with generous slack).
const COLUMNS_MAX: u64 = 65_535;

/// Optional metadata types.
pub(crate) mod meta {
    pub const SIGNEDNESS: u8 = 1;
    pub const DEFAULT_CHARSET: u8 = 2;
    pub const COLUMN_CHARSET: u8 = 3;
    pub const COLUMN_NAME: u8 = 4;
    pub const SET_VALUES: u8 = 5;
    pub const ENUM_VALUES: u8 = 6;
    pub const GEOMETRY_TYPE: u8 = 7;
    pub const SIMPLE_PRIMARY_KEY: u8 = 8;
    pub const PRIMARY_KEY_WITH_PREFIX: u8 = 9;
    pub const ENUM_AND_SET_DEFAULT_CHARSET: u8 = 10;
    pub const ENUM_AND_SET_COLUMN_CHARSET: u8 = 11;
    pub const COLUMN_VISIBILITY: u8 = 12;
    pub const VECTOR_DIMENSIONS: u8 = 13;
}

/// A part of the primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPart {
    /// Index of the column.
    pub column: usize,
    /// Leading characters (bytes for binary columns) that are in the key; 0: the whole column.
    pub prefix: u32,
}

/// One table as the source had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMap {
    /// Number by which rows events name the table.
    pub table_id: u64,
    /// Flags as logged.
    pub flags: u16,
    /// Schema.
    pub schema: String,
    /// Table.
    pub table: String,
    /// Columns in the table's order, hidden generated ones excepted.
    pub columns: Vec<Column>,
    /// `None` without `binlog_row_metadata=FULL`, and for a table without a primary key.
    pub primary_key: Option<Vec<KeyPart>>,
    /// The event's body as logged (post-header included, checksum not).
    pub raw: Bytes,
    layout: RowLayout,
}

impl TableMap {
    /// `TM_GENERATED_INVISIBLE_PK_F`, in MySQL from 8.0.30 on: the first column is a primary key that the server has made by itself.
    pub const FLAG_GENERATED_KEY: u16 = 1 << 2;

    /// Decodes a TABLE_MAP event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, format: &FormatDescription) -> Result<TableMap, Corruption> {
        event.expect(Kind::TABLE_MAP)?;
        let mut r = event.reader();
        let table_id = read_table_id(&mut r, format.post_header_len(Kind::TABLE_MAP))?;
        let flags = r.u16("table map flags")?;
        let schema = name(&mut r, "schema name")?;
        let table = name(&mut r, "table name")?;
        let count = r.lenenc("column count")?;
        if count > COLUMNS_MAX {
            return Err(r.invalid("column count", count));
        }
        let count = r.check_count(count, "column count")?;
        let kinds = r.bytes(count, "column types")?;
        let meta_base = r.offset();
        let meta = r.lenenc_bytes("column metadata")?;
        let mut meta = Reader::new(meta, meta_base);
        let nulls = r.bytes(count.div_ceil(8), "null bitmap")?;
        let mut columns = Vec::with_capacity(count);
        for (index, kind) in kinds.iter().enumerate() {
            let kind = ColumnKind(*kind);
            let nullable = lsb_bit(nulls, index);
            columns.push(Column::new(kind, read_meta(&mut meta, kind, index)?, nullable));
        }
        let mut map = TableMap {
            table_id,
            flags,
            schema,
            table,
            layout: RowLayout::new(&columns),
            columns,
            primary_key: None,
            raw: event.body_bytes(),
        };
        while !r.is_empty() {
            let kind = r.u8("optional metadata type")?;
            let base = r.offset();
            let value = r.lenenc_bytes("optional metadata")?;
            map.read_optional(kind, Reader::new(value, base), event, format)?;
        }
        Ok(map)
    }

    /// The same table under another name, in its raw body as well. `None`: a name is longer than the format allows.
    pub fn renamed(&self, schema: &str, table: &str) -> Option<TableMap> {
        // Number of the table (6 bytes) and flags, then both names, each with its length before it and a NUL behind it.
        const HEAD: usize = 8;
        let old = HEAD + self.schema.len() + self.table.len() + 4;
        let mut raw = Vec::with_capacity(self.raw.len() + schema.len() + table.len());
        raw.extend_from_slice(self.raw.get(..HEAD)?);
        for name in [schema, table] {
            raw.push(u8::try_from(name.len()).ok()?);
            raw.extend_from_slice(name.as_bytes());
            raw.push(0);
        }
        raw.extend_from_slice(self.raw.get(old..)?);
        Some(TableMap { schema: schema.to_owned(), table: table.to_owned(), raw: raw.into(), ..self.clone() })
    }

    /// How its rows are laid out.
    pub fn layout(&self) -> &RowLayout {
        &self.layout
    }

    fn read_optional(
        &mut self,
        kind: u8,
        mut r: Reader<'_>,
        event: &Event,
        format: &FormatDescription,
    ) -> Result<(), Corruption> {
        let flavour = format.flavour;
        match kind {
            meta::SIGNEDNESS => self.read_signedness(r.rest(), year_has_sign(format)),
            meta::DEFAULT_CHARSET => {
                default_charset(&mut r, self.columns.iter_mut().filter(|c| c.is_character(flavour)))?;
            }
            meta::ENUM_AND_SET_DEFAULT_CHARSET => {
                default_charset(&mut r, self.columns.iter_mut().filter(|c| c.is_enum_or_set()))?;
            }
            meta::COLUMN_CHARSET => {
                column_charset(&mut r, self.columns.iter_mut().filter(|c| c.is_character(flavour)))?;
            }
            meta::ENUM_AND_SET_COLUMN_CHARSET => {
                column_charset(&mut r, self.columns.iter_mut().filter(|c| c.is_enum_or_set()))?;
            }
            meta::COLUMN_NAME => {
                for column in &mut self.columns {
                    let name = r.lenenc_bytes("column name")?;
                    column.name = Some(r.utf8(name, "column name")?);
                }
            }
            meta::SET_VALUES => self.read_values(&mut r, ColumnKind::SET, event)?,
            meta::ENUM_VALUES => self.read_values(&mut r, ColumnKind::ENUM, event)?,
            meta::GEOMETRY_TYPE => {
                for column in self.columns.iter_mut().filter(|c| c.kind == ColumnKind::GEOMETRY) {
                    column.geometry_type = Some(small(&mut r, "geometry type")?);
                }
            }
            meta::SIMPLE_PRIMARY_KEY => self.read_key(&mut r, false)?,
            meta::PRIMARY_KEY_WITH_PREFIX => self.read_key(&mut r, true)?,
            meta::COLUMN_VISIBILITY => {
                let bits = r.rest();
                for (index, column) in self.columns.iter_mut().enumerate() {
                    column.visible = Some(msb_bit(bits, index));
                }
            }
            meta::VECTOR_DIMENSIONS => {
                for column in self.columns.iter_mut().filter(|c| c.kind == ColumnKind::VECTOR) {
                    let value = r.lenenc("vector dimensions")?;
                    let value = u32::try_from(value).map_err(|_| r.invalid("vector dimensions", value))?;
                    column.vector_dimensions = Some(value);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read_signedness(&mut self, bits: &[u8], year_has_sign: Option<bool>) {
        let numbers = self.columns.iter().filter(|column| column.is_numeric()).count();
        let years = self.columns.iter().filter(|column| column.kind == ColumnKind::YEAR).count();
        // Where the server's version does not tell, the number of bytes may.
        let year_has_sign = year_has_sign.or_else(|| {
            let (with, without) = (numbers.div_ceil(8), (numbers - years).div_ceil(8));
            (with != without).then_some(bits.len() == with)
        });
        let (mut with, mut without) = (0, 0);
        for column in self.columns.iter_mut().filter(|column| column.is_numeric()) {
            let is_year = column.kind == ColumnKind::YEAR;
            let (counted, uncounted) = (msb_bit(bits, with), is_year || msb_bit(bits, without));
            with += 1;
            without += usize::from(!is_year);
            column.unsigned = match year_has_sign {
                Some(true) => Some(counted),
                Some(false) => Some(uncounted),
                None => (counted == uncounted).then_some(counted),
            };
        }
    }

    fn read_values(&mut self, r: &mut Reader<'_>, kind: ColumnKind, event: &Event) -> Result<(), Corruption> {
        for column in self.columns.iter_mut().filter(|column| column.real_kind() == kind) {
            let mut values = Vec::new();
            for _ in 0..r.lenenc_count("enum or set values")? {
                values.push(event.share(r.lenenc_bytes("enum or set value")?));
            }
            column.values = Some(values);
        }
        Ok(())
    }

    fn read_key(&mut self, r: &mut Reader<'_>, prefixes: bool) -> Result<(), Corruption> {
        let mut parts = Vec::new();
        while !r.is_empty() {
            let column = r.lenenc("primary key column")?;
            let index = usize::try_from(column).ok().filter(|index| *index < self.columns.len());
            let Some(index) = index else {
                return Err(r.invalid("primary key column", column));
            };
            let mut prefix = 0;
            if prefixes {
                let raw = r.lenenc("primary key prefix")?;
                prefix = u32::try_from(raw).map_err(|_| r.invalid("primary key prefix", raw))?;
            }
            parts.push(KeyPart { column: index, prefix });
        }
        self.primary_key = Some(parts);
        Ok(())
    }
}

/// Whether the signs of the columns include those of YEAR columns. Seen: MySQL 8.0.15 without, 9.7 and MariaDB 10.11
/// with. In between it changed at a version that is not known here (`None`).
fn year_has_sign(format: &FormatDescription) -> Option<bool> {
    match (format.flavour, format.version_number()) {
        (Flavour::MariaDb, _) => Some(true),
        (Flavour::MySql, version) if version <= (8, 0, 15) => Some(false),
        (Flavour::MySql, version) if version >= (8, 0, 21) => Some(true),
        (Flavour::MySql, _) => None,
    }
}

/// The number of a table: six bytes, or four when the post-header has only room for that.
pub(crate) fn read_table_id(r: &mut Reader<'_>, post_header_len: u8) -> Result<u64, Corruption> {
    if post_header_len == 6 { Ok(r.u32("table id")?.into()) } else { r.u48("table id") }
}

fn name(r: &mut Reader<'_>, field: &'static str) -> Result<String, Corruption> {
    let bytes = r.u8_bytes(field)?;
    let text = r.utf8(bytes, field)?;
    r.u8(field)?;
    Ok(text)
}

fn read_meta(r: &mut Reader<'_>, kind: ColumnKind, index: usize) -> Result<u16, Corruption> {
    match kind.meta_len() {
        Some(0) => Ok(0),
        Some(1) => Ok(r.u8("column metadata")?.into()),
        Some(_) => {
            let raw = r.u16("column metadata")?;
            Ok(if kind.meta_big_endian() { raw.swap_bytes() } else { raw })
        }
        None => Err(r.err(CorruptionKind::ColumnType { column: index as u32, kind: kind.0 })),
    }
}

fn small(r: &mut Reader<'_>, field: &'static str) -> Result<u16, Corruption> {
    let value = r.lenenc(field)?;
    u16::try_from(value).map_err(|_| r.invalid(field, value))
}

/// One default, and (index among these columns, collation) for the others.
fn default_charset<'c>(r: &mut Reader<'_>, columns: impl Iterator<Item = &'c mut Column>) -> Result<(), Corruption> {
    let default = small(r, "default collation")?;
    let mut next = next_pair(r)?;
    for (index, column) in columns.enumerate() {
        column.collation = Some(default);
        if let Some((at, collation)) = next.filter(|(at, _)| *at == index as u64) {
            debug_assert_eq!(at, index as u64);
            column.collation = Some(collation);
            next = next_pair(r)?;
        }
    }
    match next {
        Some((at, _)) => Err(r.invalid("column with another collation", at)),
        None => Ok(()),
    }
}

fn next_pair(r: &mut Reader<'_>) -> Result<Option<(u64, u16)>, Corruption> {
    if r.is_empty() {
        return Ok(None);
    }
    let at = r.lenenc("column with another collation")?;
    Ok(Some((at, small(r, "collation")?)))
}

fn column_charset<'c>(r: &mut Reader<'_>, columns: impl Iterator<Item = &'c mut Column>) -> Result<(), Corruption> {
    for column in columns {
        column.collation = Some(small(r, "collation")?);
    }
    if r.is_empty() { Ok(()) } else { Err(r.invalid("bytes after the last collation", r.remaining() as u64)) }
}

/// The values of one image that `bytes` starts with.
pub fn columns<'a>(table: &'a TableMap, present: &'a Bitmap, image: &'a [u8]) -> Columns<'a> {
    table.layout().columns(present, image)
}

/// Bit `index` counted from the highest of the first byte.
fn msb_bit(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte >> (7 - index % 8) & 1 != 0)
}
