//! A part of a source, under the names that it has on the target: which tables, which names, which kinds of changes. Never looks at a statement.

use std::fmt;

use super::pattern::Pattern;
use super::removals::Removals;
use super::renames::{Rename, Renames, SchemaTarget};
use super::rules::{Extent, Rules};

/// What of a source a channel takes, and under which names. The same text is the same selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub rules: Rules,
    pub renames: Renames,
    /// The renames are the servers' `replicate-rewrite-db`, so the servers' lists go by new names.
    pub rewrites: bool,
    pub changes: Changes,
    /// Statements on which a server with the same lists would decide otherwise, as it goes by the session's schema or does not cut, are refused.
    pub as_server: bool,
}

/// Kinds of changes that are not applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Definitions of any kind.
    pub no_definitions: bool,
    /// Removals that the target does not take part in.
    pub left_out: Removals,
}

/// What becomes of a table's changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    LeftOut,
    /// Under this name.
    Taken {
        schema: String,
        table: String,
    },
    /// A rename, as it was given, makes another table of the source the table of this name.
    Collides(String),
}

impl Filter {
    /// All of the source, under its own names.
    pub fn is_everything(&self) -> bool {
        self.takes_all_tables() && self.changes == Changes::default()
    }

    /// Tables do not decide: each is taken, under its own name.
    pub fn takes_all_tables(&self) -> bool {
        self.rules.is_empty() && self.renames.is_empty()
    }

    /// A schema as the servers' lists have it.
    pub fn rewritten(&self, schema: &str) -> String {
        if self.rewrites { self.renames.default_target(schema) } else { schema.to_owned() }
    }

    /// The function that decides. `schema`, `table`: as the source calls them.
    pub fn decide(&self, schema: &str, table: &str) -> Decision {
        if !self.takes(schema, table) {
            return Decision::LeftOut;
        }
        if let Some(rename) = self.renames.taken_name(schema, table) {
            return Decision::Collides(rename.to_string());
        }
        let (schema, table) = self.renames.target(schema, table);
        Decision::Taken { schema, table }
    }

    pub fn takes(&self, schema: &str, table: &str) -> bool {
        self.rules.takes(schema, table, &self.rewritten(schema))
    }

    /// How much of a schema is taken.
    pub fn extent(&self, schema: &str) -> Extent {
        self.rules.extent(schema, &self.rewritten(schema))
    }

    /// Where the tables of a schema are on the target.
    pub fn schema_target(&self, schema: &str) -> SchemaTarget {
        self.renames.schema_target(schema)
    }

    /// Whether a table of the target may be one that is taken.
    pub fn may_write(&self, schema: &str, table: &str) -> bool {
        let keeps_its_name = self.renames.target(schema, table) == (schema.to_owned(), table.to_owned());
        self.renames.names(schema, table) || keeps_its_name && self.takes(schema, table)
    }

    /// Schemas of the target that renames name.
    pub fn new_schemas(&self) -> impl Iterator<Item = &str> {
        self.renames.0.iter().map(|rename| rename.schema.as_str())
    }
}

/// As the options of a command line that ask for it, each kind in a fixed order.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rules { only, ignore, servers } = &self.rules;
        let mut options: Vec<(&str, Vec<String>)> = Vec::new();
        let mut list = |name, mut values: Vec<String>| {
            values.sort();
            values.dedup();
            options.push((name, values));
        };
        let texts = |patterns: &[Pattern]| patterns.iter().map(ToString::to_string).collect();
        list("only", texts(only));
        list("ignore", texts(ignore));
        list("replicate-do-db", servers.do_db.clone());
        list("replicate-ignore-db", servers.ignore_db.clone());
        let names = |tables: &[super::rules::ServerTable]| {
            tables.iter().map(|name| format!("{}.{}", name.schema, name.table)).collect()
        };
        list("replicate-do-table", names(&servers.do_table));
        list("replicate-ignore-table", names(&servers.ignore_table));
        let wild = |tables: &[super::rules::ServerWildcard]| tables.iter().map(|name| name.text().to_owned()).collect();
        list("replicate-wild-do-table", wild(&servers.wild_do_table));
        list("replicate-wild-ignore-table", wild(&servers.wild_ignore_table));
        // Of these the first that matches counts.
        let renames: Vec<String> = self.renames.0.iter().map(Rename::to_string).collect();
        options.push((if self.rewrites { "replicate-rewrite-db" } else { "rename" }, renames));
        let removals = self.changes.left_out;
        options.push(("leave-out", if removals.is_empty() { Vec::new() } else { vec![removals.to_string()] }));
        let mut is_first = true;
        for (name, values) in options {
            for value in values {
                let space = if is_first { "" } else { " " };
                is_first = false;
                if value.contains(|c: char| c.is_whitespace() || "'*?`\\$&;|<>()\"".contains(c)) {
                    write!(f, "{space}--{name} '{}'", value.replace('\'', r"'\''"))?;
                } else {
                    write!(f, "{space}--{name} {value}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests;
