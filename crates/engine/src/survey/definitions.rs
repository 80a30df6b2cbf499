//! Table definitions without a server to ask: from a schema dump, from DDL in the log.
//!
//! What is not surely known is left out. [`super::LogCatalogue`] compares what is left with the table maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sql::alter_table::{self, AlteredTable};
use crate::sql::create_table::{self, ForeignKeyDefinition, TableDefinition};
use crate::sql::{self, Class, DdlKind, ObjectName, SqlMode, Statement, alterations};

type Tables = BTreeMap<Arc<ObjectName>, Arc<TableDefinition>>;

/// The definitions at one place of a log. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    tables: Tables,
    /// As a schema dump or a server had them, whatever the log says. It may be of any time: they count where the ones above do not fit the rows.
    given: Arc<Tables>,
}

impl Definitions {
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub fn get(&self, schema: &str, table: &str) -> Option<&Arc<TableDefinition>> {
        self.tables.get(&ObjectName::new(schema, table))
    }

    /// In the order of their names.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableDefinition>> {
        self.tables.values()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<ObjectName>, &Arc<TableDefinition>)> {
        self.tables.iter()
    }

    /// That of now, and that of the schema which was given.
    pub(super) fn candidates(&self, name: &ObjectName) -> impl Iterator<Item = &Arc<TableDefinition>> {
        self.tables.get(name).into_iter().chain(self.given.get(name))
    }

    /// These are those of a schema that somebody gave.
    #[must_use]
    pub fn given(self) -> Self {
        Self { given: Arc::new(self.tables.clone()), tables: self.tables }
    }

    /// Only those of now: what was given does not count beside them.
    #[must_use]
    pub fn without_given(self) -> Self {
        Self { tables: self.tables, given: Arc::default() }
    }

    /// Tables whose names differ from this one only in upper and lower case are not known any more: a server may take them for the same.
    pub fn forget_other_spellings(&mut self, name: &ObjectName) {
        self.tables.retain(|known, _| **known == *name || !is_spelled_alike(known, name));
    }

    /// What a statement does to definitions; true when it may have done anything.
    pub fn execute(&mut self, sql: &[u8], schema: &str, mode: SqlMode) -> bool {
        let statement = sql::classify(sql, schema, mode);
        let Class::Ddl { kind } = statement.class else { return false };
        let first = statement.tables.first();
        match kind {
            DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. } => return false,
            DdlKind::CreateTable { like, if_not_exists, .. } => {
                let Some(name) = first else { return false };
                if if_not_exists && self.tables.contains_key(name) {
                    return false;
                }
                let model = statement.tables.get(1).filter(|_| like);
                let definition = match model {
                    Some(model) => self.tables.get(model).map(|model| like_it(model)),
                    None => create_table::read(sql, schema, mode),
                };
                self.set(name, definition);
            }
            DdlKind::AlterTable => self.alter(sql, schema, mode, first),
            DdlKind::RenameTable => {
                for (from, to) in alterations::renames(sql, schema, mode).unwrap_or_default() {
                    self.rename(&from, &to);
                }
            }
            DdlKind::DropTable { .. } => statement.tables.iter().for_each(|name| self.set(name, None)),
            DdlKind::CreateDatabase if !statement.guards.or_replace => return false,
            // A server that does not tell upper from lower case may spell it in another way.
            DdlKind::CreateDatabase | DdlKind::DropDatabase => {
                let is_it = |schema: &String, name: &ObjectName| schema.eq_ignore_ascii_case(&name.schema);
                self.tables.retain(|name, _| !statement.schemas.iter().any(|schema| is_it(schema, name)));
            }
            DdlKind::CreateIndex => self.change(&statement, |known| alter_table::create_index(known, sql, mode)),
            DdlKind::DropIndex => self.change(&statement, |known| alter_table::drop_index(known, sql, mode)),
            _ => return false,
        }
        true
    }

    /// A table is not known any more.
    pub fn forget(&mut self, name: &ObjectName) {
        self.set(name, None);
    }

    fn set(&mut self, name: &ObjectName, definition: Option<TableDefinition>) {
        match definition {
            Some(mut definition) => {
                definition.name = name.clone();
                let _ = self.tables.insert(Arc::new(name.clone()), Arc::new(definition));
            }
            None => {
                let _ = self.tables.remove(name);
            }
        }
    }

    /// Foreign keys of others follow.
    fn rename(&mut self, from: &ObjectName, to: &ObjectName) {
        if let Some(definition) = self.tables.remove(from) {
            let mut definition = Arc::unwrap_or_clone(definition);
            definition.take_name(to);
            self.tables.insert(Arc::new(to.clone()), Arc::new(definition));
        }
        self.references(from, None, |key| key.parent = to.clone());
    }

    /// Changes all foreign keys that refer to this table. `but`: those of this one have followed already.
    fn references(
        &mut self,
        parent: &ObjectName,
        but: Option<&ObjectName>,
        change: impl Fn(&mut ForeignKeyDefinition),
    ) {
        let refers = |key: &ForeignKeyDefinition| key.parent == *parent;
        for (child, definition) in &mut self.tables {
            if but != Some(&**child) && definition.foreign_keys.iter().any(refers) {
                Arc::make_mut(definition).foreign_keys.iter_mut().filter(|key| refers(key)).for_each(&change);
            }
        }
    }

    fn alter(&mut self, sql: &[u8], schema: &str, mode: SqlMode, first: Option<&ObjectName>) {
        let Some(found) = alterations::alteration(sql, schema, mode) else {
            return first.into_iter().for_each(|name| self.set(name, None));
        };
        if let Some(known) = self.tables.get(&found.table) {
            let altered = alter_table::alter_table(known, sql, schema, mode);
            self.altered(&found.table, altered);
        }
        if let Some(to) = &found.renamed_to {
            self.rename(&found.table, to);
        }
    }

    /// A statement about its first table.
    fn change(&mut self, statement: &Statement, make: impl Fn(&TableDefinition) -> Option<AlteredTable>) {
        let Some(name) = statement.tables.first() else { return };
        if let Some(known) = self.tables.get(name) {
            let altered = make(known);
            self.altered(name, altered);
        }
    }

    fn altered(&mut self, name: &ObjectName, altered: Option<AlteredTable>) {
        let Some(AlteredTable { definition, renamed_columns, made, taken_in }) = altered else {
            return self.set(name, None);
        };
        if let Some(made) = made {
            self.set(&made, Some(like_it(&definition)));
        }
        if let Some(taken_in) = taken_in {
            self.set(&taken_in, None);
        }
        self.set(name, Some(definition));
        self.references(name, Some(name), |key| {
            for column in &mut key.parent_columns {
                if let Some((_, to)) = renamed_columns.iter().find(|(from, _)| from.eq_ignore_ascii_case(column)) {
                    to.clone_into(column);
                }
            }
        });
    }
}

fn is_spelled_alike(one: &ObjectName, other: &ObjectName) -> bool {
    let alike = |one: &str, other: &str| {
        one.eq_ignore_ascii_case(other) || (!one.is_ascii() && one.to_lowercase() == other.to_lowercase())
    };
    alike(&one.name, &other.name) && alike(&one.schema, &other.schema)
}

/// `CREATE TABLE … LIKE`: without its foreign keys.
fn like_it(model: &TableDefinition) -> TableDefinition {
    TableDefinition { foreign_keys: Vec::new(), ..model.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(statements: &[&str]) -> Definitions {
        let mut definitions = Definitions::default();
        for sql in statements {
            definitions.execute(sql.as_bytes(), "s", SqlMode::default());
        }
        definitions
    }

    #[test]
    fn statements_change_definitions() {
        const CREATE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, UNIQUE u (a))";
        // Columns and unique keys beside the primary key.
        let size = |definitions: &Definitions, table: &str| {
            definitions.get("s", table).map(|d| (d.columns.len(), d.unique_keys.len()))
        };
        for (statements, table, expect) in [
            (vec![CREATE], "t", Some((2, 1))),
            (vec![CREATE, "CREATE TABLE c LIKE t"], "c", Some((2, 1))),
            (vec![CREATE, "DROP TABLE t"], "t", None),
            (vec![CREATE, "RENAME TABLE t TO x"], "x", Some((2, 1))),
            (vec![CREATE, "ALTER TABLE t RENAME TO x"], "x", Some((2, 1))),
            (vec![CREATE, "ALTER TABLE t ADD INDEX k (a)"], "t", Some((2, 1))),
            (vec![CREATE, "ALTER TABLE t ENGINE=InnoDB"], "t", Some((2, 1))),
            (vec![CREATE, "CREATE INDEX k_1 ON t (a)"], "t", Some((2, 1))),
            (vec![CREATE, "ALTER TABLE t ADD COLUMN b VARCHAR(10) NOT NULL DEFAULT ''"], "t", Some((3, 1))),
            (vec![CREATE, "ALTER TABLE t ADD b INT, ADD c INT"], "t", Some((4, 1))),
            (vec![CREATE, "ALTER TABLE t ADD b INT FIRST, RENAME x"], "x", Some((3, 1))),
            (vec![CREATE, "ALTER TABLE t ADD UNIQUE (a)"], "t", Some((2, 2))),
            (vec![CREATE, "ALTER TABLE t MODIFY a BIGINT"], "t", Some((2, 1))),
            (vec![CREATE, "ALTER TABLE t ADD a INT"], "t", None),
            (vec![CREATE, "CREATE UNIQUE INDEX k ON t (a)"], "t", Some((2, 2))),
            (vec![CREATE, "DROP INDEX u ON t"], "t", Some((2, 0))),
            (vec![CREATE, "DROP INDEX other ON t"], "t", None),
            (vec![CREATE, "CREATE INDEX k ON t (a)", "DROP INDEX k ON t"], "t", Some((2, 1))),
            (vec![CREATE, "DROP DATABASE s"], "t", None),
            (vec![CREATE, "DROP DATABASE S"], "t", None),
            (vec![CREATE, "CREATE OR REPLACE DATABASE s"], "t", None),
            (vec![CREATE, "TRUNCATE t"], "t", Some((2, 1))),
            (vec!["CREATE TABLE t SELECT 1"], "t", None),
            (vec![CREATE, "ALTER TABLE t CONVERT PARTITION p TO TABLE x"], "x", Some((2, 1))),
            (vec![CREATE, "ALTER TABLE u CONVERT TABLE t TO PARTITION p"], "t", Some((2, 1))),
            (vec![CREATE, "CREATE TABLE u LIKE t", "ALTER TABLE u CONVERT TABLE t TO PARTITION p"], "t", None),
        ] {
            assert_eq!(size(&after(&statements), table), expect, "{statements:?}");
        }
    }

    #[test]
    fn foreign_keys_follow_their_parents() {
        const TABLES: [&str; 2] = [
            "CREATE TABLE p (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES p (id))",
            "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
        ];
        let told = |more: &[&str]| {
            let definitions = after(&[&TABLES, more].concat());
            let keys = definitions.iter().flat_map(|(table, definition)| {
                definition.foreign_keys.iter().map(move |key| {
                    format!(
                        "{}: {} → {}({})",
                        table.name,
                        key.name.clone().unwrap_or_default(),
                        key.parent.name,
                        key.parent_columns.join(",")
                    )
                })
            });
            keys.collect::<Vec<_>>()
        };
        assert_eq!(told(&[]), ["c: c_ibfk_1 → p(id)", "p: p_ibfk_1 → p(id)"]);
        assert_eq!(told(&["RENAME TABLE p TO q"]), ["c: c_ibfk_1 → q(id)", "q: q_ibfk_1 → q(id)"]);
        let renamed = ["c: c_ibfk_1 → q(pid)", "q: q_ibfk_1 → q(pid)"];
        assert_eq!(told(&["ALTER TABLE p RENAME COLUMN id TO pid, RENAME TO q"]), renamed);
        assert_eq!(told(&["ALTER TABLE p CHANGE id pid INT", "ALTER TABLE p RENAME q"]), renamed);
        // A copy refers to nothing.
        assert_eq!(told(&["CREATE TABLE d LIKE c"]).len(), 2);
    }
}
