//! The seam for a filter and a rename: what of the source goes on to be applied, and under which names.
//!
//! It sees each new table map and each statement once, before anything is keyed; whoever reads a log uses the one of its
//! [`Tables`](super::Tables). Today it leaves out heddle's own bookkeeping and changes nothing. It knows no schema of a target.

use binlog::TableMap;

use crate::sql;

/// Where heddle keeps its progress on a target. When that target is a source itself, its bookkeeping is not replicated.
pub(super) const BOOKKEEPING_SCHEMA: &str = "heddle";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// What is applied: all but heddle's bookkeeping.
    #[default]
    Applied,
    /// What is only looked at: all.
    Everything,
}

/// A statement that is about selected things and others: it can be neither run nor left out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a statement names tables of {BOOKKEEPING_SCHEMA}, heddle's bookkeeping, and others")]
pub struct Mixed;

impl Selection {
    /// The map of a table as it goes on; `None`: the table's rows are left out.
    pub fn table(self, map: TableMap) -> Option<TableMap> {
        match self {
            Self::Applied if map.schema == BOOKKEEPING_SCHEMA => None,
            Self::Applied | Self::Everything => Some(map),
        }
    }

    /// Whether a statement goes on.
    pub fn statement(self, statement: &sql::Statement) -> Result<bool, Mixed> {
        let mut schemas = statement.tables.iter().map(|table| &table.schema).chain(&statement.schemas);
        if self == Self::Everything || !schemas.clone().any(|schema| schema == BOOKKEEPING_SCHEMA) {
            return Ok(true);
        }
        if schemas.all(|schema| schema == BOOKKEEPING_SCHEMA) { Ok(false) } else { Err(Mixed) }
    }
}
