//! The columns and keys that a CREATE TABLE statement defines.
//!
//! For places where no server can be asked. Answers only when every part of the statement is understood: a
//! definition that is half right would order rows wrongly.

mod column;
mod definition;
mod keys;
mod options;

pub(super) use column::{ReadColumn, column};
pub(super) use definition::same;
pub use definition::{
    ColumnDefinition, ForeignKeyDefinition, GenerationKind, History, KeyDefinition, KeyPartDefinition, ReferenceAction,
    TableDefinition,
};
pub(super) use keys::{Element, GuardedElement, add, constraint, index};
pub(super) use options::{character_set, collation, option, partitions};

use super::SqlMode;
use super::cursor::Cursor;

/// Columns of a table at the most, on either server.
pub(super) const COLUMNS_MAX: usize = 4096;

/// [`read`], but `None` also for system versioning and compressed columns, which change the row images.
pub fn parse(sql: &[u8], default_schema: &str, mode: SqlMode) -> Option<TableDefinition> {
    read(sql, default_schema, mode).filter(TableDefinition::is_plain)
}

/// Reads a CREATE TABLE with a list of columns. `None` for any other statement (LIKE, SELECT) and for what is not
/// surely understood.
pub fn read(sql: &[u8], default_schema: &str, mode: SqlMode) -> Option<TableDefinition> {
    let mut cursor = Cursor::new(sql, mode);
    let cursor = &mut cursor;
    cursor.eat("CREATE").then_some(())?;
    cursor.eat_all(&["OR", "REPLACE"]);
    let temporary = cursor.eat("TEMPORARY");
    cursor.eat("TABLE").then_some(())?;
    cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    let mut table = TableDefinition::empty(cursor.object(default_schema)?);
    table.temporary = temporary;
    elements(&mut table, cursor, sql, mode)?;
    loop {
        cursor.eat_punct(b',');
        if cursor.at_end() {
            break;
        }
        if cursor.is("PARTITION") {
            partitions(cursor)?;
            break;
        }
        option(&mut table, cursor)?;
    }
    finish(table)
}

/// `(columns and keys)`.
fn elements(table: &mut TableDefinition, cursor: &mut Cursor<'_>, sql: &[u8], mode: SqlMode) -> Option<()> {
    cursor.eat_punct(b'(').then_some(())?;
    loop {
        match constraint(cursor, &table.name.schema)? {
            Some(read) => add(table, read.element)?,
            None => {
                let read = column(cursor, sql, &table.name.schema, mode)?;
                if table.columns.iter().any(|column| same(&column.name, &read.column.name)) {
                    return None;
                }
                table.columns.push(read.column);
                read.elements.into_iter().try_for_each(|element| add(table, element))?;
            }
        }
        if cursor.eat_punct(b')') {
            return Some(());
        }
        cursor.eat_punct(b',').then_some(())?;
        if table.columns.len() > COLUMNS_MAX {
            return None;
        }
    }
}

/// Key columns must exist; those of the primary key are NOT NULL.
pub(super) fn finish(mut table: TableDefinition) -> Option<TableDefinition> {
    // Its text columns are binary ones.
    let binary = |option: &Option<String>| option.as_deref().is_some_and(|name| same(name, "binary"));
    if binary(&table.charset) || binary(&table.collation) {
        return None;
    }
    let columns = &mut table.columns;
    for key in table.primary_key.iter_mut().chain(&mut table.unique_keys) {
        for part in &mut key.parts {
            if let KeyPartDefinition::Column { name, .. } = part {
                // As the column is written, whatever the case in the key.
                name.clone_from(&columns.iter().find(|column| same(&column.name, name))?.name);
            }
        }
    }
    for part in table.primary_key.iter().flat_map(|key| &key.parts) {
        let KeyPartDefinition::Column { name, .. } = part else { return None };
        for column in columns.iter_mut().filter(|column| same(&column.name, name)) {
            column.nullable = false;
        }
    }
    for name in table.foreign_keys.iter_mut().flat_map(|key| &mut key.columns) {
        name.clone_from(&columns.iter().find(|column| same(&column.name, name))?.name);
    }
    let times = |kind| columns.iter().filter(|column| column.generated == Some(kind)).count();
    match (times(GenerationKind::RowStart), times(GenerationKind::RowEnd), table.history) {
        (0, 0, None | Some(History::Hidden)) => {}
        (1, 1, Some(_)) => table.history = Some(History::Columns),
        _ => return None,
    }
    (!table.columns.is_empty()).then_some(table)
}
