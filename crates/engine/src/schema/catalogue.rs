//! Where table definitions come from.

use std::sync::Arc;

use binlog::TableMap;

use super::table::Table;
use crate::definition_change::DefinitionChange;
use crate::failure::Failure;

#[derive(Debug, thiserror::Error)]
#[error("cannot read the definition of {schema}.{table}: {}", .why.message)]
pub struct CatalogueError {
    pub schema: String,
    pub table: String,
    /// Its kind says whether it passes.
    pub why: Box<Failure>,
}

impl CatalogueError {
    /// What it means for the channel.
    pub fn failure(&self) -> Failure {
        let why = (*self.why).clone();
        let remedy = if why.remedy.is_empty() { "as the message says".to_owned() } else { why.remedy };
        Failure { message: self.to_string(), remedy, ..why }
    }
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
    fn invalidate(&mut self, what: &DefinitionChange);
}
