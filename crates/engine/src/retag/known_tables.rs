//! Table definitions that are surely those of the events at hand.
//!
//! A wrong definition could hide a key, and with it a conflict. So a definition counts only from where it is known to be right: one that was read from a
//! server counts once the log has come to where it was read, or from the start if no DDL up to there names its table; one that a CREATE TABLE in the log
//! states counts at once. Everything else is unknown until then.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlog::TableMap;

use crate::definition_change::DefinitionChange;
use crate::schema::{Catalogue, CatalogueError, Table, TableOrderCause};
use crate::sql::{Class, DdlKind, ObjectName, SqlMode};
use crate::survey::{Definitions, LogCatalogue, table_id};
use crate::transaction::{Item, StatementItem, Transaction};

#[derive(Debug)]
pub struct KnownTables {
    definitions: Definitions,
    catalogue: LogCatalogue,
    /// Tables with a DDL that is still to come, in small letters: how they are now is not known.
    doubtful: BTreeSet<(String, String)>,
    changes: u64,
}

impl KnownTables {
    /// `definitions`: as they are right before the first event, or as they were read at some later place of the log; `later`: what the DDL up to there
    /// names.
    pub fn new(definitions: Definitions, later: &[DefinitionChange]) -> Self {
        let mut known = Self {
            catalogue: LogCatalogue::surely(Arc::default()),
            definitions: Definitions::default(),
            doubtful: BTreeSet::new(),
            changes: 0,
        };
        known.replace(definitions, later);
        known
    }

    /// As far as they are surely known.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// How often they have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// What the transaction did to definitions.
    pub fn execute(&mut self, transaction: &Transaction) -> DefinitionChange {
        let redefined = DefinitionChange::by(transaction);
        if redefined == DefinitionChange::Nothing {
            return redefined;
        }
        if redefined == DefinitionChange::Everything {
            self.definitions = Definitions::default();
        }
        for item in transaction.items() {
            if let Item::Statement(statement) = item {
                self.statement(statement);
            }
        }
        self.catalogue = LogCatalogue::surely(Arc::new(self.definitions.clone()));
        self.changes += 1;
        redefined
    }

    fn statement(&mut self, statement: &StatementItem) {
        let (query, tables) = (&statement.query, &statement.class.tables);
        // What a statement has done that failed half-way is not known.
        if query.error_code != 0 {
            self.doubtful.extend(tables.iter().map(small));
            return;
        }
        // Where a server does not tell upper from lower case, it may be about another spelling of them.
        for name in tables {
            self.definitions.forget_other_spellings(name);
        }
        let stated = match statement.class.class {
            Class::Ddl { kind: DdlKind::CreateTable { temporary: false, if_not_exists: false, .. } } => tables.first(),
            _ => None,
        };
        let stated = stated.filter(|_| tables.iter().skip(1).all(|model| !self.doubtful.contains(&small(model))));
        if let Some(name) = stated {
            self.definitions.forget(name);
        }
        self.definitions.execute(&query.sql, &String::from_utf8_lossy(&query.schema), SqlMode::of(&query.vars));
        if let Some(name) = stated {
            self.doubtful.remove(&small(name));
        }
    }

    /// The log has come to where these were read: they are right from here on, but for what DDL beside the reading names. If that may be everything, or all
    /// of a schema, what the log says goes on to count.
    pub fn replace(&mut self, definitions: Definitions, beside: &[DefinitionChange]) {
        let is_of_all = |redefined: &DefinitionChange| match redefined {
            DefinitionChange::Everything => true,
            DefinitionChange::Tables { schemas, .. } => !schemas.is_empty(),
            DefinitionChange::Nothing => false,
        };
        if beside.iter().any(is_of_all) {
            return;
        }
        self.doubtful.clear();
        for redefined in beside {
            if let DefinitionChange::Tables { names, .. } = redefined {
                self.doubtful.extend(names.iter().map(small));
            }
        }
        // What was given would count where a statement that is not understood has changed it.
        self.definitions = definitions.without_given();
        self.catalogue = LogCatalogue::surely(Arc::new(self.definitions.clone()));
        self.changes += 1;
    }

    fn is_doubtful(&self, map: &TableMap) -> bool {
        self.doubtful.contains(&(map.schema.to_lowercase(), map.table.to_lowercase()))
    }
}

fn small(name: &ObjectName) -> (String, String) {
    (name.schema.to_lowercase(), name.name.to_lowercase())
}

impl Catalogue for KnownTables {
    fn table(&mut self, map: &TableMap) -> Result<Arc<Table>, CatalogueError> {
        if self.is_doubtful(map) {
            let id = table_id(&map.schema, &map.table);
            return Ok(Arc::new(Table::unknown(id, &map.schema, &map.table, TableOrderCause::ColumnsDiffer)));
        }
        self.catalogue.table(map)
    }

    fn invalidate(&mut self, _: &DefinitionChange) {}
}
