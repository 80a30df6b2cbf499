//! Table definitions of a server, as far as comparing rows depends on them. Only reads `information_schema`.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};
use apply::mysql::progress::SCHEMA;
use apply::mysql::server::sql::{identifier, quote};
use wire::{Connection, Row};

use crate::chunk::{IndexPart, UniqueIndex, unique_indexes};

/// Schemas that belong to the server.
const SERVER_SCHEMAS: [&str; 5] = ["mysql", "sys", "information_schema", "performance_schema", "innodb"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    pub schema: String,
    pub table: String,
}

impl TableName {
    pub fn new(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self { schema: schema.into(), table: table.into() }
    }

    /// As a statement names it.
    pub fn sql(&self) -> String {
        format!("{}.{}", identifier(&self.schema), identifier(&self.table))
    }

    /// The same for names that a server may take for the same.
    pub fn folded(&self) -> Self {
        Self::new(self.schema.to_lowercase(), self.table.to_lowercase())
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.table)
    }
}

/// Whether a column's values are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnStorage {
    #[default]
    Yes,
    /// A virtual column: it follows from the others.
    Virtual,
    /// A generated column with a stored value: it can not be written.
    Generated,
    /// The primary key that a server makes by itself (`sql_generate_invisible_primary_key`).
    GeneratedKey,
}

#[derive(Clone, Debug, Default)]
pub struct ColumnDefinition {
    pub name: String,
    /// Such as `varchar`.
    pub data_type: String,
    /// Such as `varchar(20)`, `int(10) unsigned zerofill`.
    pub column_type: String,
    pub nullable: bool,
    pub charset: Option<String>,
    pub collation: Option<String>,
    /// The most bytes of a text or binary value.
    pub octets: u64,
    /// Digits behind the point of a decimal, or of a second.
    pub digits: u32,
    pub stored: ColumnStorage,
}

impl ColumnDefinition {
    pub fn has_attribute(&self, word: &str) -> bool {
        self.column_type.split(' ').any(|part| part.eq_ignore_ascii_case(word))
    }
}

#[derive(Clone, Debug, Default)]
pub struct TableDefinition {
    /// The server's estimates.
    pub rows: u64,
    pub row_bytes: u64,
    /// In the table's order.
    pub columns: Vec<ColumnDefinition>,
    /// Those by which it can be read in chunks, the primary key first.
    pub keys: Vec<UniqueIndex>,
    /// Tables whose changes change rows here by a foreign key, without a row event of their own; transitively.
    pub cascading_parents: Vec<TableName>,
}

impl TableDefinition {
    pub fn column(&self, name: &str) -> Option<(usize, &ColumnDefinition)> {
        self.columns.iter().enumerate().find(|(_, column)| column.name.eq_ignore_ascii_case(name))
    }
}

/// The tables of a server by name.
pub type Tables = BTreeMap<TableName, TableDefinition>;

fn outside_server_schemas(column: &str) -> String {
    let names: Vec<String> =
        SERVER_SCHEMAS.iter().map(|name| quote(name)).chain([quote(&SCHEMA.to_string())]).collect();
    format!("{column} NOT IN ({})", names.join(","))
}

fn name(row: &Row, at: usize) -> Result<TableName> {
    Ok(TableName::new(row.required_text(at)?, row.required_text(at + 1)?))
}

fn number(row: &Row, at: usize) -> Result<u64> {
    Ok(row.parse(at)?.unwrap_or(0))
}

/// All tables with rows of their own, without the server's and Heddle's.
pub fn read(connection: &mut Connection) -> Result<Tables> {
    let mut tables = Tables::new();
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, AVG_ROW_LENGTH FROM information_schema.TABLES \
         WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {}",
        outside_server_schemas("TABLE_SCHEMA")
    );
    for row in connection.rows(sql).context("reading the tables")? {
        let table =
            TableDefinition { rows: number(&row, 2)?, row_bytes: number(&row, 3)?, ..TableDefinition::default() };
        tables.insert(name(&row, 0)?, table);
    }
    read_columns(connection, &mut tables)?;
    read_keys(connection, &mut tables)?;
    read_cascades(connection, &mut tables)?;
    Ok(tables)
}

fn read_columns(connection: &mut Connection, tables: &mut Tables) -> Result<()> {
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, \
         CHARACTER_OCTET_LENGTH, COALESCE(DATETIME_PRECISION, NUMERIC_SCALE), EXTRA FROM information_schema.COLUMNS \
         WHERE {} ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
        outside_server_schemas("TABLE_SCHEMA")
    );
    for row in connection.rows(sql).context("reading the columns")? {
        let Some(table) = tables.get_mut(&name(&row, 0)?) else { continue };
        let text = |at: usize| -> Result<String> { Ok(row.text(at)?.unwrap_or_default().to_owned()) };
        let (column, extra) = (text(2)?, text(10)?.to_ascii_uppercase());
        let stored = if extra.contains("VIRTUAL GENERATED") || extra.split(' ').any(|word| word == "VIRTUAL") {
            ColumnStorage::Virtual
        } else if extra.contains("STORED GENERATED") || extra.contains("PERSISTENT") {
            ColumnStorage::Generated
        } else if column == "my_row_id" && extra.contains("INVISIBLE") && extra.contains("AUTO_INCREMENT") {
            ColumnStorage::GeneratedKey
        } else {
            ColumnStorage::Yes
        };
        table.columns.push(ColumnDefinition {
            name: column,
            data_type: text(3)?.to_ascii_lowercase(),
            column_type: text(4)?,
            nullable: row.text(5)? != Some("NO"),
            charset: row.text(6)?.map(str::to_owned),
            collation: row.text(7)?.map(str::to_owned),
            octets: number(&row, 8)?,
            digits: number(&row, 9)? as u32,
            stored,
        });
    }
    Ok(())
}

fn read_keys(connection: &mut Connection, tables: &mut Tables) -> Result<()> {
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, {} FROM information_schema.STATISTICS \
         WHERE NON_UNIQUE = 0 AND {} ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
        IndexPart::of_statistics(connection),
        outside_server_schemas("TABLE_SCHEMA")
    );
    let mut parts: BTreeMap<TableName, Vec<IndexPart>> = BTreeMap::new();
    for row in connection.rows(sql).context("reading the keys")? {
        parts.entry(name(&row, 0)?).or_default().push(IndexPart::read(&row)?);
    }
    for (table, parts) in parts {
        if let Some(table) = tables.get_mut(&table) {
            table.keys = unique_indexes(&parts);
        }
    }
    Ok(())
}

/// Foreign keys whose rules change child rows: the child's ancestors.
fn read_cascades(connection: &mut Connection, tables: &mut Tables) -> Result<()> {
    let sql = "SELECT DISTINCT r.CONSTRAINT_SCHEMA, r.TABLE_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME \
         FROM information_schema.REFERENTIAL_CONSTRAINTS r JOIN information_schema.KEY_COLUMN_USAGE k \
         ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME AND k.TABLE_NAME = r.TABLE_NAME \
         WHERE (r.UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR r.DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')) \
         AND k.REFERENCED_TABLE_NAME IS NOT NULL";
    let mut parents: BTreeMap<TableName, Vec<TableName>> = BTreeMap::new();
    for row in connection.rows(sql).context("reading the foreign keys")? {
        parents.entry(name(&row, 0)?).or_default().push(name(&row, 2)?);
    }
    for child in parents.keys() {
        let ancestors = ancestors(child, &parents);
        if let Some(table) = tables.get_mut(child) {
            table.cascading_parents = ancestors;
        }
    }
    Ok(())
}

fn ancestors(child: &TableName, parents: &BTreeMap<TableName, Vec<TableName>>) -> Vec<TableName> {
    let (mut found, mut next) = (Vec::new(), vec![child.clone()]);
    while let Some(name) = next.pop() {
        for parent in parents.get(&name).into_iter().flatten() {
            if !found.contains(parent) {
                found.push(parent.clone());
                next.push(parent.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_change_with_all_ancestors() {
        let name = |table: &str| TableName::new("d", table);
        let parents = [("c", vec!["b"]), ("b", vec!["a", "b"]), ("a", vec!["c"])];
        let parents =
            parents.map(|(child, of)| (name(child), of.into_iter().map(name).collect())).into_iter().collect();
        assert_eq!(ancestors(&name("c"), &parents), [name("b"), name("a"), name("c")]);
        assert!(ancestors(&name("x"), &parents).is_empty());
    }
}
