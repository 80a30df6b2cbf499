//! Where table definitions come from.

use std::sync::Arc;

use binlog::TableMap;

use super::table::Table;
use crate::redefined::Redefined;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the definition of {schema}.{table}: {why}")]
pub struct CatalogueError {
    pub schema: String,
    pub table: String,
    pub why: String,
}

/// Only asked while no DDL is under way on the target, so that the answer is the schema of the event at hand.
pub trait Catalogue {
    /// The definition of a table as the target has it now.
    fn table(&mut self, map: &TableMap) -> Result<Arc<Table>, CatalogueError>;
    /// Whether the target surely has this table, which is no view. `false`: it has not, or nobody knows.
    fn has_table(&mut self, _schema: &str, _table: &str) -> bool {
        false
    }
    /// A DDL was applied: what is known of these may be out of date.
    fn invalidate(&mut self, what: &Redefined);
}
