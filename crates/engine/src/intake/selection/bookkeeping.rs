//! What a server keeps of its own replication does not go on: Heddle's tables, known by their definitions, and the servers' tables of positions. Knows no other rule.

use std::sync::Arc;

use binlog::{ColumnKind, TableMap};

use crate::sql::{self, Class, DdlKind, ObjectName};

/// Where heddle keeps its progress on a target, unless it is told otherwise. When that target is a source itself, its bookkeeping is not replicated.
pub const BOOKKEEPING_SCHEMA: &str = "heddle";

#[derive(Clone, Debug)]
pub enum Bookkeeping {
    /// What is applied: all but heddle's bookkeeping in this schema. Anything else there is refused: the target's schema of that name is heddle's.
    Applied(Arc<str>),
    /// What is sent on: all but heddle's bookkeeping.
    Sent,
    /// What is only looked at: all.
    Everything,
}

/// What becomes of a table's rows.
#[derive(Debug)]
pub enum Place {
    Elsewhere,
    /// It is kept of a server's own replication.
    Own,
    /// The table is another's, in the schema of Heddle's own.
    Foreign(ForeignObject),
}

/// Why a table's rows, or a statement, can be neither applied nor left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignObject {
    #[error(
        "the source's log has {name}, which is not heddle's own, and the target keeps heddle's bookkeeping in the schema {schema}"
    )]
    Object { name: String, schema: Arc<str> },
    #[error("a statement names tables of {schema}, heddle's bookkeeping, and others")]
    Mixed { schema: Arc<str> },
}

/// Columns of Heddle's tables, by kind, in their order. A version may have fewer of the last ones, or more behind them.
const OWN_TABLES: [(&str, &[ColumnKind]); 18] = {
    use ColumnKind as K;
    const TEXT: K = K::VARCHAR;
    [
        (
            "progress",
            &[
                TEXT,
                K::LONGLONG,
                K::LONGLONG,
                TEXT,
                K::LONGLONG,
                K::BLOB,
                K::LONGLONG,
                K::TIMESTAMP2,
                TEXT,
                TEXT,
                K::TINY,
                K::BLOB,
            ],
        ),
        ("islands", &[TEXT, K::LONGLONG, K::LONGLONG, K::LONGLONG, K::SHORT]),
        ("leases", &[TEXT, K::LONGLONG]),
        ("branches", &[TEXT, TEXT]),
        ("kept_branches", &[TEXT, TEXT, K::LONG, K::BLOB]),
        ("open_branches", &[TEXT, K::LONGLONG, K::LONGLONG, TEXT, TEXT, K::LONG, K::BLOB]),
        ("stops", &[TEXT, K::TIMESTAMP2, TEXT, K::LONG, K::BLOB, K::BLOB, K::BLOB, K::LONGLONG, TEXT, TEXT]),
        ("skips", &[TEXT, K::LONGLONG, TEXT, TEXT, K::BLOB, K::BLOB, TEXT, K::TIMESTAMP2]),
        ("retries", &[TEXT, K::LONGLONG, K::LONG, K::LONG, K::BLOB, K::TIMESTAMP2]),
        ("kept_gtids", &[TEXT, K::BLOB]),
        ("rescue", &[TEXT, TEXT, K::BLOB, K::BLOB, K::TIMESTAMP2]),
        ("selections", &[TEXT, K::BLOB]),
        ("copies", &[TEXT, K::LONGLONG, TEXT, K::LONG, TEXT, K::BLOB, TEXT, K::BLOB, K::TINY, K::BLOB, K::TIMESTAMP2]),
        ("copy_tables", &[TEXT, TEXT, TEXT, TEXT, TEXT]),
        ("copy_ranges", &[TEXT, TEXT, TEXT, K::LONG, K::BLOB, K::BLOB, K::LONGLONG, K::TINY]),
        ("copy_accounts", &[TEXT, TEXT, TEXT, K::TINY]),
        ("switches", &[TEXT, TEXT, K::BLOB, K::TIMESTAMP2]),
        (
            "standbys",
            &[TEXT, K::SHORT, TEXT, K::LONG, K::TIMESTAMP2, TEXT, K::LONGLONG, K::LONGLONG, K::BLOB, K::TIMESTAMP2],
        ),
    ]
};

/// Where MariaDB and MySQL keep how far their own replication is. It is each server's own: MySQL logs no change of it, MariaDB does.
const POSITION_TABLES: [&str; 5] =
    ["gtid_slave_pos", "gtid_executed", "slave_master_info", "slave_relay_log_info", "slave_worker_info"];

/// Whether Heddle keeps a table of this name in its schema.
pub fn is_own_table(name: &str) -> bool {
    OWN_TABLES.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
}

fn is_own_definition(map: &TableMap) -> bool {
    const COLUMNS_MIN: usize = 2;
    let own = OWN_TABLES.iter().find(|(own, _)| own.eq_ignore_ascii_case(&map.table));
    own.is_some_and(|(_, kinds)| {
        map.columns.len() >= COLUMNS_MIN && map.columns.iter().zip(*kinds).all(|(column, kind)| column.kind == *kind)
    })
}

fn is_position_table(schema: &str, table: &str) -> bool {
    // MariaDB may have one for each engine: `gtid_slave_pos_InnoDB`.
    let is_of_engine = table.get(..15).is_some_and(|start| start.eq_ignore_ascii_case("gtid_slave_pos_"));
    schema == "mysql" && (is_of_engine || POSITION_TABLES.iter().any(|name| name.eq_ignore_ascii_case(table)))
}

impl Bookkeeping {
    /// `None`: of nothing.
    fn bookkeeping(&self) -> Option<&str> {
        match self {
            Self::Applied(schema) => Some(schema),
            Self::Sent => Some(BOOKKEEPING_SCHEMA),
            Self::Everything => None,
        }
    }

    /// Whose table it is.
    pub fn table(&self, map: &TableMap) -> Place {
        let Some(schema) = self.bookkeeping() else { return Place::Elsewhere };
        if is_position_table(&map.schema, &map.table) {
            return Place::Own;
        }
        // A target may take names in any case for one.
        if !map.schema.eq_ignore_ascii_case(schema) {
            return Place::Elsewhere;
        }
        match self {
            _ if is_own_definition(map) => Place::Own,
            Self::Applied(schema) => Place::Foreign(foreign(format!("{}.{}", map.schema, map.table), schema)),
            Self::Sent | Self::Everything => Place::Elsewhere,
        }
    }

    /// Whether a statement goes on.
    pub fn statement(&self, statement: &sql::Statement) -> Result<bool, ForeignObject> {
        let Some(schema) = self.bookkeeping() else { return Ok(true) };
        let is_bookkeeping = |name: &str| name.eq_ignore_ascii_case(schema);
        let sql::Statement { tables, schemas, homes, .. } = statement;
        if let [table] = &**tables
            && is_position_table(&table.schema, &table.name)
        {
            return Ok(false);
        }
        let mut named = tables.iter().map(|table| &table.schema).chain(schemas).chain(homes);
        if !named.any(|name| is_bookkeeping(name)) {
            return Ok(true);
        }
        let Self::Applied(schema) = self else {
            return Ok(!tables.iter().all(|table| is_bookkeeping(&table.schema) && is_own_table(&table.name)));
        };
        let others = |table: &&ObjectName| is_bookkeeping(&table.schema) && !is_own_table(&table.name);
        if let Some(table) = tables.iter().find(others) {
            return Err(foreign(table.to_string(), schema));
        }
        if homes.iter().any(|home| is_bookkeeping(home)) {
            let Class::Ddl { kind: DdlKind::View | DdlKind::Trigger | DdlKind::Routine | DdlKind::Event } =
                statement.class
            else {
                return Ok(true);
            };
            return Err(foreign(format!("a view, trigger, routine or event in {schema}"), schema));
        }
        let mut named = tables.iter().map(|table| &table.schema).chain(schemas);
        if named.all(|name| is_bookkeeping(name)) {
            Ok(false)
        } else {
            Err(ForeignObject::Mixed { schema: Arc::clone(schema) })
        }
    }
}

fn foreign(name: String, schema: &Arc<str>) -> ForeignObject {
    ForeignObject::Object { name, schema: Arc::clone(schema) }
}
