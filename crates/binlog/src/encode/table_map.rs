//! Table maps, with the optional metadata of `binlog_row_metadata=FULL` or without any.

use bytes::Bytes;

use crate::column::{Column, ColumnKind};
use crate::event::Flavour;
use crate::kind::Kind;
use crate::table_map::{KeyPart, TableMap, meta};

use super::{Head, build, write_lenenc, write_lenenc_bytes};

/// A column for [`table_map`]: the decoded type, of which the parts that are known are written.
pub type ColumnDef = Column;

/// What a table map says.
#[derive(Debug, Clone, Copy)]
pub struct TableMapSpec<'a> {
    /// Number by which rows events name the table, 48 bits.
    pub table_id: u64,
    /// Flags; servers write 1.
    pub flags: u16,
    /// Schema, at most 255 bytes.
    pub schema: &'a str,
    /// Table, at most 255 bytes.
    pub table: &'a str,
    /// Columns.
    pub columns: &'a [ColumnDef],
    /// Primary key, for the metadata.
    pub primary_key: Option<&'a [KeyPart]>,
    /// Whether to write the optional metadata. A server of the other flavour needs none.
    pub metadata: bool,
}

/// A TABLE_MAP event.
pub fn table_map(head: &Head, spec: &TableMapSpec<'_>) -> Vec<u8> {
    build(Kind::TABLE_MAP, head, 64 + 4 * spec.columns.len(), |out| {
        out.extend(spec.table_id.to_le_bytes().into_iter().take(6));
        out.extend_from_slice(&spec.flags.to_le_bytes());
        for name in [spec.schema, spec.table] {
            let name = name.as_bytes();
            let name = name.get(..name.len().min(255)).unwrap_or_default();
            out.push(name.len() as u8);
            out.extend_from_slice(name);
            out.push(0);
        }
        write_lenenc(out, spec.columns.len() as u64);
        out.extend(spec.columns.iter().map(|column| column.kind.0));
        let mut types = Vec::new();
        for column in spec.columns {
            match column.kind.meta_len() {
                Some(1) => types.push(column.meta as u8),
                Some(2) if column.kind.meta_big_endian() => types.extend_from_slice(&column.meta.to_be_bytes()),
                Some(2) => types.extend_from_slice(&column.meta.to_le_bytes()),
                _ => {}
            }
        }
        write_lenenc_bytes(out, &types);
        write_lsb_bits(out, spec.columns.iter().map(|column| column.nullable));
        if spec.metadata {
            write_metadata(out, spec);
        }
    })
}

impl TableMap {
    /// The table map again under another number, without optional metadata: every MySQL and MariaDB reads that.
    pub fn to_event(&self, head: &Head, table_id: u64) -> Vec<u8> {
        table_map(head, &TableMapSpec { metadata: false, ..self.spec(table_id) })
    }

    /// What to encode to have this table map again under another number, with the metadata that is known.
    pub fn spec(&self, table_id: u64) -> TableMapSpec<'_> {
        TableMapSpec {
            table_id,
            flags: self.flags,
            schema: &self.schema,
            table: &self.table,
            columns: &self.columns,
            primary_key: self.primary_key.as_deref(),
            metadata: true,
        }
    }
}

fn write_metadata(out: &mut Vec<u8>, spec: &TableMapSpec<'_>) {
    let columns = spec.columns;
    let numeric = || columns.iter().filter(|column| column.is_numeric());
    if numeric().next().is_some() && numeric().all(|column| column.unsigned.is_some()) {
        let mut bits = Vec::new();
        write_msb_bits(&mut bits, numeric().map(|column| column.unsigned == Some(true)));
        field(out, meta::SIGNEDNESS, &bits);
    }
    // A GEOMETRY column has a collation where its log was MariaDB's.
    let is_geometry_with_one = |column: &Column| column.kind == ColumnKind::GEOMETRY && column.collation.is_some();
    let characters =
        columns.iter().filter(|column| column.is_character(Flavour::MySql) || is_geometry_with_one(column));
    write_charsets(out, characters, meta::DEFAULT_CHARSET, meta::COLUMN_CHARSET);
    let geometry = || columns.iter().filter(|column| column.kind == ColumnKind::GEOMETRY);
    if geometry().next().is_some() && geometry().all(|column| column.geometry_type.is_some()) {
        let mut types = Vec::new();
        for kind in geometry().filter_map(|column| column.geometry_type) {
            write_lenenc(&mut types, kind.into());
        }
        field(out, meta::GEOMETRY_TYPE, &types);
    }
    let vectors = || columns.iter().filter(|column| column.kind == ColumnKind::VECTOR);
    if vectors().next().is_some() && vectors().all(|column| column.vector_dimensions.is_some()) {
        let mut dimensions = Vec::new();
        for value in vectors().filter_map(|column| column.vector_dimensions) {
            write_lenenc(&mut dimensions, value.into());
        }
        field(out, meta::VECTOR_DIMENSIONS, &dimensions);
    }
    if !columns.is_empty() && columns.iter().all(|column| column.name.is_some()) {
        let mut names = Vec::new();
        for name in columns.iter().filter_map(|column| column.name.as_ref()) {
            write_lenenc_bytes(&mut names, name.as_bytes());
        }
        field(out, meta::COLUMN_NAME, &names);
    }
    let sets = columns.iter().filter(|column| column.is_enum_or_set());
    write_charsets(out, sets, meta::ENUM_AND_SET_DEFAULT_CHARSET, meta::ENUM_AND_SET_COLUMN_CHARSET);
    write_values(out, columns, ColumnKind::SET, meta::SET_VALUES);
    write_values(out, columns, ColumnKind::ENUM, meta::ENUM_VALUES);
    if let Some(key) = spec.primary_key.filter(|key| !key.is_empty()) {
        let prefixes = key.iter().any(|part| part.prefix != 0);
        let mut parts = Vec::new();
        for part in key {
            write_lenenc(&mut parts, part.column as u64);
            if prefixes {
                write_lenenc(&mut parts, part.prefix.into());
            }
        }
        field(out, if prefixes { meta::PRIMARY_KEY_WITH_PREFIX } else { meta::SIMPLE_PRIMARY_KEY }, &parts);
    }
    if !columns.is_empty() && columns.iter().all(|column| column.visible.is_some()) {
        let mut bits = Vec::new();
        write_msb_bits(&mut bits, columns.iter().map(|column| column.visible == Some(true)));
        field(out, meta::COLUMN_VISIBILITY, &bits);
    }
}

/// One collation for all, or one default with exceptions, or one for each: the shortest, as the servers choose.
fn write_charsets<'c>(out: &mut Vec<u8>, columns: impl Iterator<Item = &'c Column>, default: u8, each: u8) {
    let ids: Vec<Option<u16>> = columns.map(|column| column.collation).collect();
    let ids: Vec<u16> = match ids.iter().copied().collect::<Option<Vec<u16>>>() {
        Some(ids) if !ids.is_empty() => ids,
        _ => return,
    };
    let mut counts: Vec<(u16, usize)> = Vec::new();
    for id in &ids {
        match counts.iter_mut().find(|(known, _)| known == id) {
            Some((_, count)) => *count += 1,
            None => counts.push((*id, 1)),
        }
    }
    let Some((common, _)) = counts.iter().max_by_key(|(_, count)| *count).copied() else {
        return;
    };
    let mut with_default = Vec::new();
    write_lenenc(&mut with_default, common.into());
    for (index, id) in ids.iter().enumerate().filter(|(_, id)| **id != common) {
        write_lenenc(&mut with_default, index as u64);
        write_lenenc(&mut with_default, (*id).into());
    }
    let mut one_each = Vec::new();
    ids.iter().for_each(|id| write_lenenc(&mut one_each, (*id).into()));
    if with_default.len() <= one_each.len() {
        field(out, default, &with_default);
    } else {
        field(out, each, &one_each);
    }
}

fn write_values(out: &mut Vec<u8>, columns: &[Column], kind: ColumnKind, code: u8) {
    let of_kind = || columns.iter().filter(|column| column.real_kind() == kind);
    if of_kind().next().is_none() || of_kind().any(|column| column.values.is_none()) {
        return;
    }
    let mut lists = Vec::new();
    for values in of_kind().filter_map(|column| column.values.as_ref()) {
        write_lenenc(&mut lists, values.len() as u64);
        values.iter().for_each(|value: &Bytes| write_lenenc_bytes(&mut lists, value));
    }
    field(out, code, &lists);
}

fn field(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    out.push(kind);
    write_lenenc_bytes(out, value);
}

fn write_lsb_bits(out: &mut Vec<u8>, bits: impl Iterator<Item = bool>) {
    write_bits(out, bits, |index| 1 << index);
}

fn write_msb_bits(out: &mut Vec<u8>, bits: impl Iterator<Item = bool>) {
    write_bits(out, bits, |index| 0x80 >> index);
}

fn write_bits(out: &mut Vec<u8>, bits: impl Iterator<Item = bool>, mask: impl Fn(usize) -> u8) {
    for (index, bit) in bits.enumerate() {
        if index % 8 == 0 {
            out.push(0);
        }
        if let (true, Some(last)) = (bit, out.last_mut()) {
            *last |= mask(index % 8);
        }
    }
}
