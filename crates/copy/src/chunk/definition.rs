//! A table of the source as it is read: its columns that are stored, and its key.

use std::fmt;

use apply::mysql::server::sql::{identifier, quote};
use wire::{Connection, Error};

use super::key::{ChunkKey, IndexPart, choose};
use super::literal::ValueKind;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    pub schema: String,
    pub table: String,
}

impl TableName {
    pub fn new(schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self { schema: schema.into(), table: table.into() }
    }

    /// As statements name it.
    pub fn quoted(&self) -> String {
        format!("{}.{}", identifier(&self.schema), identifier(&self.table))
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.table)
    }
}

/// Whether reads of one transaction see one state of all tables of the engine.
pub fn is_transactional(engine: &str) -> bool {
    engine.eq_ignore_ascii_case("InnoDB")
}

/// No such database, no such table.
const GONE: [u16; 2] = [1049, 1146];

/// A column whose values are stored, not worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkColumn {
    pub name: String,
    /// Of `information_schema`, in small letters: `varchar`.
    pub data_type: String,
    pub collation: String,
    pub kind: ValueKind,
    pub is_nullable: bool,
}

impl ChunkColumn {
    /// What a query selects.
    pub fn expression(&self) -> String {
        self.kind.expression(&self.data_type, &identifier(&self.name))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    pub name: TableName,
    pub engine: String,
    /// MariaDB: a table of one row, which changes outside of transactions.
    pub is_sequence: bool,
    /// In the order of the table.
    pub columns: Vec<ChunkColumn>,
    pub key: ChunkKey,
    /// As the server guesses them.
    pub rows: u64,
    pub row_bytes: u64,
}

impl TableDefinition {
    /// `None`: there is no such table, or it is a view.
    pub fn read(connection: &mut Connection, name: &TableName) -> Result<Option<Self>, Error> {
        let (schema, table) = (quote(&name.schema), quote(&name.table));
        let facts = connection.row(format!(
            "SELECT ENGINE, TABLE_ROWS, AVG_ROW_LENGTH, TABLE_TYPE FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA={schema} AND TABLE_NAME={table} AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED','SEQUENCE')"
        ))?;
        let Some(facts) = facts else { return Ok(None) };
        let columns = connection.rows(format!(
            "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, EXTRA FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA={schema} AND TABLE_NAME={table} ORDER BY ORDINAL_POSITION"
        ))?;
        let mut stored = Vec::new();
        for row in &columns {
            let text = |at: usize| Ok::<_, Error>(row.text(at)?.unwrap_or_default().to_owned());
            if is_generated(&text(5)?) {
                continue;
            }
            let data_type = text(1)?.to_ascii_lowercase();
            stored.push(ChunkColumn {
                name: text(0)?,
                kind: ValueKind::of(&data_type, &text(2)?),
                data_type,
                collation: text(3)?,
                is_nullable: text(4)? == "YES",
            });
        }
        let indexes = match connection.rows(format!("SHOW INDEX FROM {}", name.quoted())) {
            Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => return Ok(None),
            indexes => indexes?,
        };
        let parts: Result<Vec<IndexPart>, Error> = indexes.iter().map(IndexPart::read).collect();
        let names: Vec<String> = stored.iter().map(|column| column.name.clone()).collect();
        Ok(Some(Self {
            name: name.clone(),
            engine: facts.text(0)?.unwrap_or_default().to_owned(),
            is_sequence: facts.text(3)? == Some("SEQUENCE"),
            key: choose(&parts?, &names),
            columns: stored,
            rows: facts.parse(1)?.unwrap_or(0),
            row_bytes: facts.parse(2)?.unwrap_or(0),
        }))
    }

    /// Whether reads of one transaction see its rows as those of other tables.
    pub fn is_transactional(&self) -> bool {
        is_transactional(&self.engine) && !self.is_sequence
    }

    /// Its rows can be told apart, and read in chunks.
    pub fn has_key(&self) -> bool {
        matches!(self.key, ChunkKey::Index { .. })
    }
}

/// Of `information_schema.COLUMNS.EXTRA`. `DEFAULT_GENERATED` only says that the default is an expression.
pub(crate) fn is_generated(extra: &str) -> bool {
    let extra = extra.to_ascii_uppercase();
    ["VIRTUAL", "PERSISTENT", "STORED GENERATED"].iter().any(|word| extra.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_columns() {
        for (extra, generated) in [
            ("", false),
            ("auto_increment", false),
            ("DEFAULT_GENERATED on update CURRENT_TIMESTAMP", false),
            ("VIRTUAL GENERATED", true),
            ("STORED GENERATED", true),
            ("STORED GENERATED, INVISIBLE", true),
            ("INVISIBLE", false),
        ] {
            assert_eq!(is_generated(extra), generated, "{extra}");
        }
    }

    #[test]
    fn names() {
        let name = TableName::new("a`b", "c");
        assert_eq!((name.quoted(), name.to_string()), ("`a``b`.`c`".to_owned(), "a`b.c".to_owned()));
    }
}
