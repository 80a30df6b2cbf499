//! The tables that the generated workload uses: a small shop, once for each schema.
//!
//! Every table has a primary key of unsigned columns and no other unique key, so that table-map metadata says all that
//! an applier without a catalogue needs.

use crate::value::{Key, Type, Value};

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub of: Type,
    pub nullable: bool,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub schema: String,
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// The first so many columns are the primary key: one or two.
    pub key_columns: usize,
}

/// Which of a schema's tables; the number is its place in the schema, and in the order in which sessions lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableKind {
    Accounts = 0,
    Orders = 1,
    OrderLines = 2,
    Logins = 3,
    Counters = 4,
}

const TABLES_PER_SCHEMA: usize = 5;

/// Index of a table in [`Schema::tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableIndex(pub usize);

/// All tables of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    names: Vec<String>,
    tables: Vec<Table>,
}

impl Schema {
    /// `shop`, or `shop_1` to `shop_n` when there are more.
    pub fn new(schemas: u16) -> Schema {
        let names: Vec<String> = match schemas {
            0 | 1 => vec!["shop".to_owned()],
            n => (1..=n).map(|number| format!("shop_{number}")).collect(),
        };
        let tables = names.iter().flat_map(|name| tables(name)).collect();
        Schema { names, tables }
    }

    /// Names of the schemas.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    pub fn table(&self, index: TableIndex) -> Option<&Table> {
        self.tables.get(index.0)
    }

    pub fn index(&self, schema: usize, of: TableKind) -> TableIndex {
        TableIndex(schema * TABLES_PER_SCHEMA + of as usize)
    }

    /// What creates everything: the schema that a statement is about, and its text.
    pub fn ddl(&self) -> Vec<(String, String)> {
        let databases = self.names.iter().map(|name| {
            let sql = format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
            (name.clone(), sql)
        });
        databases.chain(self.tables.iter().map(|table| (table.schema.clone(), table.create()))).collect()
    }
}

impl Table {
    /// The primary key of a row of this table.
    pub fn key(&self, row: &[Value]) -> Key {
        let mut key = Key::default();
        for (part, value) in key.iter_mut().zip(row).take(self.key_columns) {
            if let Value::Uint(value) = value {
                *part = *value;
            }
        }
        key
    }

    fn create(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(Column::define).collect();
        let key: Vec<String> =
            self.columns.iter().take(self.key_columns).map(|column| format!("`{}`", column.name)).collect();
        format!(
            "CREATE TABLE `{}`.`{}` ({}, PRIMARY KEY ({})) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
            self.schema,
            self.name,
            columns.join(", "),
            key.join(", ")
        )
    }
}

impl Column {
    fn define(&self) -> String {
        let of = match self.of {
            Type::SmallUnsigned => "SMALLINT UNSIGNED".to_owned(),
            Type::Int => "INT".to_owned(),
            Type::IntUnsigned => "INT UNSIGNED".to_owned(),
            Type::Big => "BIGINT".to_owned(),
            Type::BigUnsigned => "BIGINT UNSIGNED".to_owned(),
            Type::Decimal { precision, scale } => format!("DECIMAL({precision},{scale})"),
            Type::Varchar(characters) => format!("VARCHAR({characters})"),
            Type::Timestamp => "TIMESTAMP(6)".to_owned(),
        };
        // A TIMESTAMP without NULL may get a default that depends on the server's settings: always said.
        match (self.nullable, self.of) {
            (true, _) => format!("`{}` {of} NULL", self.name),
            (false, Type::Timestamp) => format!("`{}` {of} NOT NULL DEFAULT '2000-01-01 00:00:00'", self.name),
            (false, _) => format!("`{}` {of} NOT NULL", self.name),
        }
    }
}

fn tables(schema: &str) -> [Table; TABLES_PER_SCHEMA] {
    const MONEY: Type = Type::Decimal { precision: 14, scale: 2 };
    let column = |name, of| Column { name, of, nullable: false };
    let nullable = |name, of| Column { name, of, nullable: true };
    let table =
        |name, key_columns, columns: Vec<Column>| Table { schema: schema.to_owned(), name, columns, key_columns };
    [
        table(
            "accounts",
            1,
            vec![
                column("id", Type::BigUnsigned),
                column("owner", Type::Varchar(60)),
                column("balance", MONEY),
                column("moves", Type::IntUnsigned),
                nullable("changed", Type::Timestamp),
            ],
        ),
        table(
            "orders",
            1,
            vec![
                column("id", Type::BigUnsigned),
                column("account", Type::BigUnsigned),
                column("status", Type::Varchar(16)),
                column("total", MONEY),
                nullable("note", Type::Varchar(200)),
                column("created", Type::Timestamp),
            ],
        ),
        table(
            "order_lines",
            2,
            vec![
                column("order_id", Type::BigUnsigned),
                column("line", Type::SmallUnsigned),
                column("product", Type::Int),
                column("quantity", Type::Int),
                column("price", Type::Decimal { precision: 10, scale: 2 }),
            ],
        ),
        table(
            "logins",
            1,
            vec![
                column("account", Type::BigUnsigned),
                column("token", Type::Varchar(40)),
                column("started", Type::Timestamp),
            ],
        ),
        table("counters", 1, vec![column("id", Type::IntUnsigned), column("n", Type::Big)]),
    ]
}
