//! Which tables of a source are taken: one function decides, [`Rules::takes`]. Never looks at a statement or at a default schema.
//!
//! Heddle's own lists: a table is taken if `only` is empty or one of its patterns matches, and no pattern of `ignore` does. The servers' lists have the servers'
//! meaning for a row's own schema and table (MySQL manual, "Evaluation of Database-Level Replication and Binary Logging Options" and "Evaluation of
//! Table-Level Replication Options"; MariaDB's manual, "Replication Filters", says the same). Where both are given, both have to take the table.

use super::pattern::{Pattern, Wildcard, same_name};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub only: Vec<Pattern>,
    pub ignore: Vec<Pattern>,
    pub servers: ServerRules,
}

/// How much of a schema may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// No table of it, whatever its name.
    Nothing,
    /// Some tables, or none.
    Some,
    /// Each table, whatever its name.
    All,
}

impl Rules {
    /// Nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.only.is_empty() && self.ignore.is_empty() && self.servers.is_empty()
    }

    /// Whether changes of a table are taken, by its name on the source. `rewritten`: its schema as the servers' `replicate-rewrite-db` calls it, which their
    /// other lists go by.
    pub fn takes(&self, schema: &str, table: &str, rewritten: &str) -> bool {
        let is_in = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(schema, table));
        (self.only.is_empty() || is_in(&self.only)) && !is_in(&self.ignore) && self.servers.takes(rewritten, table)
    }

    /// How much of a schema is taken.
    pub fn extent(&self, schema: &str, rewritten: &str) -> Extent {
        let of = |patterns: &[Pattern]| {
            let in_schema = patterns.iter().filter(|pattern| pattern.schema.matches(schema));
            in_schema.map(|pattern| if pattern.is_of_schemas() { Extent::All } else { Extent::Some }).max()
        };
        let only = if self.only.is_empty() { Extent::All } else { of(&self.only).unwrap_or(Extent::Nothing) };
        let left = match of(&self.ignore) {
            None | Some(Extent::Nothing) => Extent::All,
            Some(Extent::Some) => Extent::Some,
            Some(Extent::All) => Extent::Nothing,
        };
        only.min(left).min(self.servers.extent(rewritten))
    }
}

/// The servers' own lists. Names are compared as they are written, without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerRules {
    pub do_db: Vec<String>,
    pub ignore_db: Vec<String>,
    pub do_table: Vec<ServerTable>,
    pub ignore_table: Vec<ServerTable>,
    pub wild_do_table: Vec<ServerWildcard>,
    pub wild_ignore_table: Vec<ServerWildcard>,
}

/// `db.table`, each as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTable {
    pub schema: String,
    pub table: String,
}

/// `db.table` with `%` and `_`: compared with both names and the dot between them at once, so `%` may pass the dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerWildcard {
    whole: Wildcard,
    schema: Wildcard,
    text: String,
}

impl ServerTable {
    /// `None`: there is no dot, or nothing on one of its sides.
    pub fn parse(text: &str) -> Option<Self> {
        let (schema, table) = text.split_once('.')?;
        (!schema.is_empty() && !table.is_empty()).then(|| Self { schema: schema.to_owned(), table: table.to_owned() })
    }

    fn is(&self, schema: &str, table: &str) -> bool {
        same_name(&self.schema, schema) && same_name(&self.table, table)
    }
}

impl ServerWildcard {
    /// `None`: there is no dot.
    pub fn parse(text: &str) -> Option<Self> {
        let (schema, _) = text.split_once('.')?;
        Some(Self { whole: Wildcard::of_like(text), schema: Wildcard::of_like(schema), text: text.to_owned() })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    fn matches(&self, schema: &str, table: &str) -> bool {
        self.whole.matches(&format!("{schema}.{table}"))
    }
}

impl ServerRules {
    pub fn is_empty(&self) -> bool {
        self.do_db.is_empty() && self.ignore_db.is_empty() && !self.has_table_rules()
    }

    pub fn has_table_rules(&self) -> bool {
        self.has_do_rules() || !self.ignore_table.is_empty() || !self.wild_ignore_table.is_empty()
    }

    fn has_do_rules(&self) -> bool {
        !self.do_table.is_empty() || !self.wild_do_table.is_empty()
    }

    /// Whether a server executes what it judges by a session's schema. Where there is none it does.
    pub fn takes_session(&self, schema: &str) -> bool {
        schema.is_empty() || self.takes_schema(schema)
    }

    fn takes_schema(&self, schema: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|name| same_name(name, schema));
        // With do-db, ignore-db is not asked.
        if self.do_db.is_empty() { !is_in(&self.ignore_db) } else { is_in(&self.do_db) }
    }

    fn takes(&self, schema: &str, table: &str) -> bool {
        if !self.takes_schema(schema) {
            return false;
        }
        let is_in = |names: &[ServerTable]| names.iter().any(|name| name.is(schema, table));
        let is_like = |names: &[ServerWildcard]| names.iter().any(|name| name.matches(schema, table));
        // The first list that has the table decides.
        if is_in(&self.do_table) {
            return true;
        }
        if is_in(&self.ignore_table) {
            return false;
        }
        if is_like(&self.wild_do_table) {
            return true;
        }
        !is_like(&self.wild_ignore_table) && !self.has_do_rules()
    }

    fn extent(&self, schema: &str) -> Extent {
        if !self.takes_schema(schema) {
            return Extent::Nothing;
        }
        if !self.has_table_rules() {
            return Extent::All;
        }
        let names = |names: &[ServerTable]| names.iter().any(|name| same_name(&name.schema, schema));
        let like =
            |names: &[ServerWildcard]| names.iter().any(|name| name.schema.matches(schema) || name.matches(schema, ""));
        // `db.%`: the servers look for a pattern that matches `db.` for statements about databases.
        let all =
            |names: &[ServerWildcard]| names.iter().any(|name| name.matches(schema, "") && name.text.ends_with('%'));
        if all(&self.wild_do_table) && !names(&self.ignore_table) {
            return Extent::All;
        }
        if self.has_do_rules() {
            let is_named = names(&self.do_table) || like(&self.wild_do_table);
            return if is_named { Extent::Some } else { Extent::Nothing };
        }
        if all(&self.wild_ignore_table) {
            return Extent::Nothing;
        }
        if names(&self.ignore_table) || like(&self.wild_ignore_table) { Extent::Some } else { Extent::All }
    }
}
