//! What of the source goes on to be applied, and under which names.
//!
//! It sees each new table map and each statement once, before anything is keyed; whoever reads a log uses the one of its
//! [`Tables`](super::Tables). What is kept of a server's own replication never goes on; a [`Filter`] takes a part of the rest, and renames it. From here on a table has the
//! name that it has on the target. Nothing here knows a target.
//!
//! ```text
//! table map, statement ─▶ bookkeeping ─▶ filter (rules, renames; statements: statement/) ─▶ taken, under new names
//! ```

mod bookkeeping;
mod filter;
mod pattern;
mod refusal;
mod removals;
mod renames;
mod rules;
mod statement;

use std::sync::Arc;

use binlog::{Query, TableMap};

pub use bookkeeping::{BOOKKEEPING_SCHEMA, ForeignObject, is_own_table};
use bookkeeping::{Bookkeeping, Place};
pub use filter::{Changes, Decision, Filter};
pub use pattern::{Pattern, PatternError};
pub use refusal::Refusal;
pub use removals::{Removal, Removals};
pub use renames::{Rename, RenameError, Renames, SchemaTarget};
pub use rules::{Extent, Rules, ServerRules, ServerTable, ServerWildcard};
pub use statement::Fate;

use crate::sql;

#[derive(Clone, Debug)]
pub struct Selection {
    bookkeeping: Bookkeeping,
    filter: Option<Arc<Filter>>,
}

/// What becomes of a table's rows.
#[derive(Debug)]
pub enum Selected {
    Taken(TableMap),
    LeftOut,
    /// The table is another's, in the schema of Heddle's own.
    Foreign(ForeignObject),
    Refused(Refusal),
}

/// What becomes of a statement.
#[derive(Debug)]
pub enum SelectedStatement {
    Fate(Fate),
    Foreign(ForeignObject),
    Refused(Refusal),
}

impl Selection {
    /// What is applied where Heddle keeps its tables in this schema.
    pub fn applied(bookkeeping: &str) -> Self {
        Self { bookkeeping: Bookkeeping::Applied(bookkeeping.into()), filter: None }
    }

    /// What is sent on.
    pub const fn sent() -> Self {
        Self { bookkeeping: Bookkeeping::Sent, filter: None }
    }

    /// What is only looked at.
    pub const fn everything() -> Self {
        Self { bookkeeping: Bookkeeping::Everything, filter: None }
    }

    /// Only this part of it.
    #[must_use]
    pub fn filtered(mut self, filter: Option<Arc<Filter>>) -> Self {
        self.filter = filter.filter(|filter| !filter.is_everything());
        self
    }

    /// The schema in which a target keeps Heddle's tables.
    pub fn bookkeeping_schema(&self) -> Option<&str> {
        match &self.bookkeeping {
            Bookkeeping::Applied(schema) => Some(schema),
            Bookkeeping::Sent | Bookkeeping::Everything => None,
        }
    }

    /// The map of a table as it goes on.
    pub fn table(&self, map: TableMap) -> Selected {
        match self.bookkeeping.table(&map) {
            Place::Own => return Selected::LeftOut,
            Place::Foreign(foreign) => return Selected::Foreign(foreign),
            Place::Elsewhere => {}
        }
        let Some(filter) = &self.filter else { return Selected::Taken(map) };
        match filter.decide(&map.schema, &map.table) {
            Decision::LeftOut => Selected::LeftOut,
            Decision::Collides(rename) => {
                Selected::Refused(Refusal::collides(&format!("{}.{}", map.schema, map.table), &rename))
            }
            Decision::Taken { schema, table } if schema == map.schema && table == map.table => Selected::Taken(map),
            Decision::Taken { schema, table } => match map.renamed(&schema, &table) {
                Some(map) => Selected::Taken(map),
                None => Selected::Refused(Refusal::new(
                    format!("the new name {schema}.{table} is longer than a table's name may be"),
                    "give a shorter one (--rename)",
                )),
            },
        }
    }

    /// Whether rows that the source deletes stay on the target.
    pub fn keeps_deleted_rows(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.changes.left_out.contains(Removal::Delete))
    }

    /// Whether a statement is surely left out.
    pub fn leaves_out(&self, statement: &sql::Statement, query: &Query) -> bool {
        let is_filtered = self.filter.is_some();
        is_filtered && matches!(self.statement(statement, query), SelectedStatement::Fate(Fate::LeftOut(_)))
    }

    /// What becomes of a statement.
    pub fn statement(&self, statement: &sql::Statement, query: &Query) -> SelectedStatement {
        match self.bookkeeping.statement(statement) {
            Ok(true) => {}
            Ok(false) => return SelectedStatement::Fate(Fate::LeftOut(None)),
            Err(foreign) => return SelectedStatement::Foreign(foreign),
        }
        let Some(filter) = &self.filter else { return SelectedStatement::Fate(Fate::Whole) };
        match statement::judge(filter, statement, query) {
            Ok(fate) => SelectedStatement::Fate(fate),
            Err(refusal) => SelectedStatement::Refused(refusal),
        }
    }
}
