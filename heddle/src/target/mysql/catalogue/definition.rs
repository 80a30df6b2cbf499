//! Columns and unique keys of tables, read from `information_schema`: of one table, or of many with the same three queries.

use std::collections::HashMap;

use engine::keys::{self, KeyClass};
use engine::schema::{Column, KeyPart, TableOrderCause, UniqueKey};
use wire::Row;

/// One table, without its relations.
#[derive(Debug, Default)]
pub struct Definition {
    pub columns: Vec<Column>,
    /// The one that identifies a row first.
    pub unique_keys: Vec<UniqueKey>,
    pub transactional: bool,
    pub cause: Option<TableOrderCause>,
    /// Columns of the row image that `information_schema.COLUMNS` does not show: MariaDB's hidden hash for each unique key that
    /// is too long for an index, and the two ends of a row's time with system versioning.
    pub hidden_columns: usize,
    /// TIME, DATETIME and TIMESTAMP columns with digits behind the point.
    pub fractions: Vec<usize>,
    /// A unique key can not be expressed in columns.
    functional: bool,
}

/// The tables at `place`, a condition on `TABLE_SCHEMA` and `TABLE_NAME`, by schema and name.
pub fn read(
    rows: &mut dyn FnMut(&str) -> Result<Vec<Row>, String>,
    place: &str,
) -> Result<HashMap<(String, String), Definition>, String> {
    let mut found: HashMap<(String, String), Definition> = HashMap::new();
    let tables =
        format!("SELECT TABLE_NAME, ENGINE, TABLE_TYPE, TABLE_SCHEMA FROM information_schema.TABLES WHERE {place}");
    for row in &rows(&tables)? {
        let text = |index: usize| row.text(index).map_err(|error| error.to_string());
        let (engine, kind) = (text(1)?.unwrap_or("").to_ascii_uppercase(), text(2)?.unwrap_or(""));
        let transactional = matches!(engine.as_str(), "INNODB" | "ROCKSDB" | "TOKUDB" | "NDBCLUSTER" | "BLACKHOLE");
        let hidden_columns = if kind == "SYSTEM VERSIONED" { 2 } else { 0 };
        let definition = Definition { transactional, hidden_columns, ..Definition::default() };
        found.insert(name(row, 3)?, definition);
    }
    if found.is_empty() {
        return Ok(found);
    }
    let columns = format!(
        "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COALESCE(CHARACTER_SET_NAME,''), COALESCE(COLLATION_NAME,''), \
         TABLE_SCHEMA FROM information_schema.COLUMNS WHERE {place} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
    );
    for row in &rows(&columns)? {
        if let Some(definition) = found.get_mut(&name(row, 6)?) {
            if has_fraction(required(row, 2)?) {
                definition.fractions.push(definition.columns.len());
            }
            definition.columns.push(column(row)?);
        }
    }
    let keys = format!(
        "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART, INDEX_TYPE, SEQ_IN_INDEX, TABLE_SCHEMA FROM information_schema.STATISTICS \
         WHERE {place} AND NON_UNIQUE=0 ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
    );
    for row in &rows(&keys)? {
        if let Some(definition) = found.get_mut(&name(row, 6)?) {
            definition.key_part(row)?;
        }
    }
    found.values_mut().for_each(Definition::judge);
    Ok(found)
}

/// A table's name is in the first column.
fn name(row: &Row, schema: usize) -> Result<(String, String), String> {
    Ok((required(row, schema)?.to_owned(), required(row, 0)?.to_owned()))
}

fn required(row: &Row, index: usize) -> Result<&str, String> {
    row.required_text(index).map_err(|error| error.to_string())
}

/// `column_type` as `information_schema` has it.
fn has_fraction(column_type: &str) -> bool {
    let lower = column_type.to_ascii_lowercase();
    ["time(", "datetime(", "timestamp("].iter().any(|name| lower.starts_with(name)) && !lower.contains("(0)")
}

fn column(row: &Row) -> Result<Column, String> {
    let kind = required(row, 2)?;
    Ok(Column {
        name: required(row, 1)?.to_owned(),
        unsigned: kind.contains("unsigned"),
        nullable: required(row, 3)? == "YES",
        key_class: keys::classify(&keys::DataType::from_column_type(kind), required(row, 4)?, required(row, 5)?),
    })
}

impl Definition {
    /// Rows of one index come one after the other.
    fn key_part(&mut self, row: &Row) -> Result<(), String> {
        let index = required(row, 1)?;
        let column = row.text(2).map_err(|error| error.to_string())?;
        let prefix: Option<u32> = row.parse(3).map_err(|error| error.to_string())?;
        let first: u32 = row.required(5).map_err(|error| error.to_string())?;
        if first == 1 && required(row, 4)? == "HASH" {
            self.hidden_columns += 1;
        }
        let Some(column) = column.and_then(|name| self.columns.iter().position(|column| column.name == name)) else {
            self.functional = true;
            return Ok(());
        };
        let part = KeyPart { column, prefix };
        match self.unique_keys.last_mut().filter(|key| key.name == index) {
            Some(key) => key.parts.push(part),
            None => self.unique_keys.push(UniqueKey { name: index.to_owned(), parts: vec![part] }),
        }
        Ok(())
    }

    /// Which key identifies a row, and whether keys tell who may run beside whom.
    fn judge(&mut self) {
        let columns = &self.columns;
        let is_nullable = |key: &UniqueKey| {
            key.parts.iter().any(|part| columns.get(part.column).is_none_or(|column| column.nullable))
        };
        self.unique_keys.sort_by_key(|key| (key.name != "PRIMARY", is_nullable(key)));
        let identified = self.unique_keys.first().is_some_and(|key| !is_nullable(key));
        let coarse = self
            .unique_keys
            .iter()
            .flat_map(|key| &key.parts)
            .any(|part| columns.get(part.column).is_none_or(|column| column.key_class == KeyClass::Coarse));
        self.cause = if !self.transactional {
            Some(TableOrderCause::NotTransactional)
        } else if self.functional {
            Some(TableOrderCause::FunctionalKey)
        } else if !identified {
            Some(TableOrderCause::NoUniqueKey)
        } else if coarse {
            Some(TableOrderCause::KeyNotNormalised)
        } else {
            None
        };
    }
}
