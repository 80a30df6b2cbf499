//! Changes of the servers' account tables that are no account statements: rows of `mysql.user`, `DELETE FROM mysql.global_priv`.
//!
//! What they do to heddle's own account is taken back before it counts: the tables are only read at `FLUSH PRIVILEGES`, an account statement or a start of the server. Where the
//! tables have transactions (MySQL 8.0 and later) that is in the same transaction, elsewhere right behind it. It never looks at which rows a statement is about.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, DdlKind, mentions};
use engine::transaction::{Item, StatementItem};

use crate::mysql::server::account_tables::{SCHEMA, TABLES, is_account_table};
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::{identifier, quote};
use crate::mysql::session::connection::ChannelConnection;

/// Whether a statement that is not about accounts may change their tables.
pub fn may_change(statement: &StatementItem) -> bool {
    let class = &statement.class;
    if class.tables.iter().any(|table| is_account_table(&table.schema, &table.name)) {
        return true;
    }
    let names_schema = || {
        statement.query.schema.eq_ignore_ascii_case(SCHEMA.as_bytes())
            || mentions(&statement.query.sql, SCHEMA.as_bytes())
    };
    match &class.class {
        // Several tables, or a name that is not understood.
        Class::Dml { .. } => class.tables.is_empty() && names_schema(),
        Class::Unknown | Class::Ddl { kind: DdlKind::Other } => names_schema(),
        _ => false,
    }
}

pub fn are_changed(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Rows(rows) => is_account_table(&rows.map.schema, &rows.map.table),
        Item::Statement(statement) => may_change(statement),
    })
}

/// What the target's tables have of heddle's own account.
#[derive(Debug)]
pub struct OwnAccountRows(Vec<RowsOfTable>);

#[derive(Debug, PartialEq, Eq)]
struct RowsOfTable {
    table: &'static str,
    account_column: &'static str,
    columns: Vec<String>,
    /// Each value as hexadecimal digits of its text; `None`: NULL.
    rows: Vec<Vec<Option<String>>>,
}

impl OwnAccountRows {
    pub fn read(connection: &mut ChannelConnection) -> Result<Self, Failure> {
        let user = connection.info().account.user.clone();
        let names: Vec<String> = TABLES.iter().map(|(table, _)| quote(table)).collect();
        let columns = connection
            .wire
            .rows(format!(
                "SELECT c.TABLE_NAME,c.COLUMN_NAME FROM information_schema.COLUMNS c JOIN information_schema.TABLES t ON t.TABLE_SCHEMA=c.TABLE_SCHEMA \
                 AND t.TABLE_NAME=c.TABLE_NAME WHERE c.TABLE_SCHEMA='{SCHEMA}' AND c.TABLE_NAME IN ({}) AND t.TABLE_TYPE='BASE TABLE' \
                 ORDER BY c.TABLE_NAME,c.ORDINAL_POSITION",
                names.join(",")
            ))
            .map_err(failed)?;
        let mut found = Vec::new();
        for (table, account_column) in TABLES {
            let mut of_table = RowsOfTable { table, account_column, columns: Vec::new(), rows: Vec::new() };
            for row in &columns {
                if row.required_text(0).map_err(failed)?.eq_ignore_ascii_case(table) {
                    of_table.columns.push(row.required_text(1).map_err(failed)?.to_owned());
                }
            }
            if !of_table.columns.is_empty() {
                of_table.rows = of_table.read(connection, &user)?;
                found.push(of_table);
            }
        }
        if found.is_empty() {
            return Err(Failure::new(
                FailureKind::Refused,
                "the transaction changes tables of accounts, and heddle's account may not read them: what becomes of itself could not be seen",
            )
            .remedy("GRANT SELECT, INSERT, DELETE ON mysql.* TO heddle's account on the target, and run the same command again"));
        }
        Ok(Self(found))
    }

    /// Takes back what was done to the account since. Whether anything was.
    pub fn restore(&self, connection: &mut ChannelConnection) -> Result<bool, Failure> {
        let user = connection.info().account.user.clone();
        let mut statements = Vec::new();
        for of_table in &self.0 {
            if of_table.read(connection, &user)? != of_table.rows {
                statements.extend(of_table.restoring(&user));
            }
        }
        if statements.is_empty() {
            return Ok(false);
        }
        if connection.is_open() {
            statements.iter().try_for_each(|sql| connection.execute(sql))?;
        } else {
            connection.execute_beside(&statements)?;
        }
        Ok(true)
    }
}

impl RowsOfTable {
    fn read(&self, connection: &mut ChannelConnection, user: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        let values: Vec<String> =
            self.columns.iter().map(|name| format!("HEX(CONCAT({}))", identifier(name))).collect();
        let sql = format!(
            "SELECT {} FROM {SCHEMA}.{} WHERE {}={}",
            values.join(","),
            identifier(self.table),
            self.account_column,
            quote(user)
        );
        let rows = connection.wire.rows(sql).map_err(failed)?;
        let value = |row: &wire::Row, at: usize| row.text(at).map(|text| text.map(str::to_owned)).map_err(failed);
        let mut rows: Vec<Vec<Option<String>>> = rows
            .iter()
            .map(|row| (0..self.columns.len()).map(|at| value(row, at)).collect())
            .collect::<Result<_, Failure>>()?;
        rows.sort();
        Ok(rows)
    }

    fn restoring(&self, user: &str) -> Vec<String> {
        let table = identifier(self.table);
        let names: Vec<String> = self.columns.iter().map(|name| identifier(name)).collect();
        let mut statements =
            vec![format!("DELETE FROM {SCHEMA}.{table} WHERE {}={}", self.account_column, quote(user))];
        for row in &self.rows {
            let values: Vec<String> = row
                .iter()
                .map(|value| match value {
                    Some(digits) => format!("CONVERT(X'{digits}' USING utf8mb4)"),
                    None => "NULL".to_owned(),
                })
                .collect();
            statements.push(format!(
                "INSERT INTO {SCHEMA}.{table} ({}) VALUES ({})",
                names.join(","),
                values.join(",")
            ));
        }
        statements
    }
}

/// Whether the account tables of the target can be rolled back.
pub fn have_transactions(target: &TargetInfo) -> bool {
    target.flavour == Flavour::MySql && target.version >= (8, 0, 0)
}
