//! Whether a definition is that of the rows at hand, by their table map.
//!
//! Compares what a map surely says: columns, the families of their types, names and primary key where they are logged. Two definitions with the same
//! columns and other keys are the same to it.

use binlog::{ColumnKind, TableMap};

use crate::keys::{DataType, KeyClass, logged};
use crate::schema::Column;
use crate::sql::create_table::{ColumnDefinition, GenerationKind, History, KeyPartDefinition, TableDefinition};

/// A column of the rows that the definition does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HiddenColumn {
    /// MySQL's generated invisible primary key, in front of the others.
    GeneratedKey,
    /// MariaDB's times of a row, behind the others.
    RowStart,
    RowEnd,
    /// MariaDB's hash of a unique key over long texts, behind all.
    Hash,
}

/// `None` when the rows are not of such a table; else the columns that they have beyond it.
pub(super) fn fits(definition: &TableDefinition, map: &TableMap) -> Option<Vec<HiddenColumn>> {
    let beyond = beyond(definition, map)?;
    let offset = usize::from(beyond.first() == Some(&HiddenColumn::GeneratedKey));
    let own = map.columns.get(offset..offset + definition.columns.len())?;
    let is_like = own.iter().zip(&definition.columns).all(|(logged, defined)| column_fits(logged, defined));
    (is_like && key_fits(definition, map, offset)).then_some(beyond)
}

fn beyond(definition: &TableDefinition, map: &TableMap) -> Option<Vec<HiddenColumn>> {
    let more = map.columns.len().checked_sub(definition.columns.len())?;
    let is = |at: usize, kind: ColumnKind| map.columns.get(at).is_some_and(|column| column.real_kind() == kind);
    let mut found = Vec::new();
    if definition.history == Some(History::Hidden) {
        found.extend([HiddenColumn::RowStart, HiddenColumn::RowEnd]);
    }
    if more == 1 && found.is_empty() && definition.primary_key.is_none() && is_generated_key(map) {
        return Some(vec![HiddenColumn::GeneratedKey]);
    }
    let hashes = more.checked_sub(found.len())?;
    let long = definition.unique_keys.iter().chain(&definition.primary_key).filter(|key| {
        key.parts.iter().any(|part| {
            matches!(part, KeyPartDefinition::Column { name, .. } if definition.columns.iter().any(|column| {
                column.name.eq_ignore_ascii_case(name) && family(&column.data_type) == Family::Text
            }))
        })
    });
    if hashes > long.count() || !(map.columns.len() - hashes..map.columns.len()).all(|at| is(at, ColumnKind::LONGLONG))
    {
        return None;
    }
    found.extend(std::iter::repeat_n(HiddenColumn::Hash, hashes));
    Some(found)
}

fn is_generated_key(map: &TableMap) -> bool {
    map.columns.first().is_some_and(|first| {
        first.real_kind() == ColumnKind::LONGLONG
            && !first.nullable
            && first.unsigned != Some(false)
            && first.name.as_deref().is_none_or(|name| name == "my_row_id")
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Int(u8),
    Text,
    Other(DataType),
}

fn family(data_type: &DataType) -> Family {
    match data_type {
        DataType::Int { bytes, .. } => Family::Int(*bytes),
        DataType::Char
        | DataType::VarChar
        | DataType::Text
        | DataType::Binary
        | DataType::VarBinary
        | DataType::Blob
        // MariaDB's are texts and bytes in its log.
        | DataType::Json
        | DataType::Geometry
        | DataType::Vector
        | DataType::Inet4
        | DataType::Inet6
        | DataType::Uuid => Family::Text,
        other => Family::Other(*other),
    }
}

fn column_fits(logged: &binlog::Column, defined: &ColumnDefinition) -> bool {
    let names = logged.name.as_deref().is_none_or(|name| name.eq_ignore_ascii_case(&defined.name));
    let signs = !matches!(defined.data_type, DataType::Int { .. })
        || logged.unsigned.is_none_or(|unsigned| unsigned == defined.unsigned);
    let is_compressed = [ColumnKind::BLOB_COMPRESSED, ColumnKind::VARCHAR_COMPRESSED].contains(&logged.real_kind());
    let types = if defined.compressed || is_compressed {
        defined.compressed == is_compressed
    } else {
        family(&logged::data_type(logged)) == family(&defined.data_type)
    };
    names && signs && types
}

/// The primary key, where the map says it.
fn key_fits(definition: &TableDefinition, map: &TableMap, offset: usize) -> bool {
    let Some(logged) = map.primary_key.as_ref().filter(|parts| !parts.is_empty() && offset == 0) else { return true };
    let Some(key) = &definition.primary_key else { return false };
    let place = |part: &KeyPartDefinition| match part {
        KeyPartDefinition::Column { name, .. } => {
            definition.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
        }
        KeyPartDefinition::Expression => None,
    };
    // The map's may end with parts that the server adds: the end of a row's time, the columns of a period.
    logged.len() >= key.parts.len() && logged.iter().zip(&key.parts).all(|(part, own)| place(own) == Some(part.column))
}

/// Where the end of a row's time is in its image, if it belongs to every unique key.
pub(super) fn row_end(definition: &TableDefinition, beyond: &[HiddenColumn]) -> Option<usize> {
    match definition.history? {
        History::Columns => {
            definition.columns.iter().position(|column| column.generated == Some(GenerationKind::RowEnd))
        }
        History::Hidden => {
            let at = beyond.iter().position(|column| *column == HiddenColumn::RowEnd)?;
            Some(definition.columns.len() + at)
        }
    }
}

/// A column that no definition has.
pub(super) fn hidden(at: usize, logged: &binlog::Column) -> Column {
    Column {
        name: logged.name.clone().unwrap_or_else(|| format!("@{}", at + 1)),
        unsigned: logged.unsigned == Some(true),
        nullable: logged.nullable,
        key_class: if matches!(logged::data_type(logged), DataType::Other) {
            KeyClass::Coarse
        } else {
            logged::key_class(logged)
        },
    }
}
