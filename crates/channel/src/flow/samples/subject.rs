//! What a group changes, for observers: a statement, tables, and a table without a key. It looks at a few transactions only, and decides nothing.

use binlog::RowsKind;
use engine::group::Group;
use engine::sql::SqlMode;
use engine::transaction::{Item, RowsItem, Transaction};

/// Transactions of a group that are looked at.
const TRANSACTIONS_MAX: usize = 32;
/// Tables that are named.
const TABLES_MAX: usize = 3;
/// Characters of a statement that are shown.
const STATEMENT_CHARS: usize = 160;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The beginning of the first statement: a DDL, for example. Empty: only rows.
    pub statement: String,
    /// `schema.table`, as many as three.
    pub tables: Vec<String>,
    /// A table of which rows are searched for although no key tells them apart.
    pub keyless: Option<String>,
}

impl Subject {
    pub fn of(group: &Group) -> Self {
        let mut subject = Self::default();
        let first = group.transactions.iter().take(TRANSACTIONS_MAX);
        first.for_each(|transaction| subject.add(transaction));
        subject
    }

    fn add(&mut self, transaction: &Transaction) {
        for item in transaction.items().iter().take(TRANSACTIONS_MAX) {
            match item {
                Item::Rows(rows) => self.rows(rows),
                Item::Statement(statement) if self.statement.is_empty() => {
                    let query = &statement.query;
                    self.statement = engine::sql::shown(&query.sql, SqlMode::of(&query.vars), STATEMENT_CHARS);
                }
                Item::Statement(_) => {}
            }
        }
    }

    fn rows(&mut self, rows: &RowsItem) {
        let is_known = |name: &String| is_named(name, &rows.map.schema, &rows.map.table);
        // What is inserted is not searched for.
        let searches = rows.event.kind != RowsKind::Write;
        let is_keyless = searches && rows.table.as_ref().is_some_and(|table| table.unique_keys.is_empty());
        if self.tables.len() < TABLES_MAX && !self.tables.iter().any(is_known) {
            self.tables.push(format!("{}.{}", rows.map.schema, rows.map.table));
        }
        if is_keyless && self.keyless.is_none() {
            self.keyless = Some(format!("{}.{}", rows.map.schema, rows.map.table));
        }
    }
}

fn is_named(name: &str, schema: &str, table: &str) -> bool {
    name.strip_prefix(schema).and_then(|rest| rest.strip_prefix('.')) == Some(table)
}
