//! Names of tables on the target: `FROM=TO`. Never says which tables are taken.
//!
//! The first rename that matches a table gives its name. `shop=store` renames a schema, `shop_*=store` makes one of many; `shop.orders=store.orders_old` renames
//! a table. What no rename matches keeps its name.

use std::fmt;
use std::str::FromStr;

use super::pattern::{Pattern, PatternError, parts, same_name};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    pub from: Pattern,
    pub schema: String,
    /// `None`: tables keep their names.
    pub table: Option<String>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenameError {
    #[error("{0:?} is not a rename: write FROM=TO, such as shop=store or shop.orders=store.orders_old")]
    Form(String),
    #[error(transparent)]
    From(#[from] PatternError),
    #[error("{0:?}: the new name has no wildcards")]
    Wildcards(String),
    #[error("{0:?} gives the tables of a whole schema one name: write shop=store, or name the table")]
    OneNameForAll(String),
}

impl Rename {
    /// The servers' `replicate-rewrite-db`: `from->to`. `None`: it is not of this form.
    pub fn of_rewrite(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("->")?;
        let (from, to) = (from.trim(), to.trim());
        let quoted = |name: &str| format!("`{name}`");
        (!from.contains('`') && !to.contains('`')).then_some(())?;
        let rename: Self = format!("{}={}", quoted(from), quoted(to)).parse().ok()?;
        Some(Self { text: format!("{from}->{to}"), ..rename })
    }

    fn is_of_schema(&self) -> bool {
        self.from.is_of_schemas() && self.table.is_none()
    }

    /// More than one table of the source may get one name.
    fn is_many(&self) -> bool {
        self.from.schema.is_many() || self.table.is_some() && self.from.table.is_many()
    }

    /// Whether a table that it renames may get this name.
    fn is_into(&self, schema: &str, table: &str) -> bool {
        same_name(&self.schema, schema)
            && match &self.table {
                Some(name) => same_name(name, table),
                None => self.from.table.matches(table),
            }
    }
}

impl FromStr for Rename {
    type Err = RenameError;

    fn from_str(text: &str) -> Result<Self, RenameError> {
        let form = || RenameError::Form(text.to_owned());
        let (from, to) = text.split_once('=').ok_or_else(form)?;
        let from: Pattern = from.parse()?;
        let parts = parts(to)?;
        // A backslash stands in front of what is no wildcard.
        let plain = |part: &String| {
            let mut name = String::new();
            let mut characters = part.chars();
            while let Some(character) = characters.next() {
                match character {
                    '*' | '?' => return None,
                    '\\' => name.extend(characters.next()),
                    _ => name.push(character),
                }
            }
            Some(name)
        };
        let names: Option<Vec<String>> = parts.iter().map(plain).collect();
        let names = names.ok_or_else(|| RenameError::Wildcards(text.to_owned()))?;
        let (schema, table) = match &*names {
            [schema] => (schema.clone(), None),
            [schema, table] => (schema.clone(), Some(table.clone())),
            _ => return Err(form()),
        };
        if table.is_some() && from.is_of_schemas() {
            return Err(RenameError::OneNameForAll(text.to_owned()));
        }
        Ok(Self { from, schema, table, text: text.to_owned() })
    }
}

impl fmt::Display for Rename {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// In the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renames(pub Vec<Rename>);

/// Where the tables of a schema are on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaTarget {
    /// All in the schema of this name.
    One(String),
    /// In more than one schema, or under other names.
    Several,
}

impl Renames {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A table's name on the target.
    pub fn target(&self, schema: &str, table: &str) -> (String, String) {
        match self.0.iter().find(|rename| rename.from.matches(schema, table)) {
            Some(rename) => (rename.schema.clone(), rename.table.clone().unwrap_or_else(|| table.to_owned())),
            None => (schema.to_owned(), table.to_owned()),
        }
    }

    /// Where the tables of a schema are.
    pub fn schema_target(&self, schema: &str) -> SchemaTarget {
        let mut matching = self.0.iter().filter(|rename| rename.from.schema.matches(schema));
        match matching.next() {
            None => SchemaTarget::One(schema.to_owned()),
            Some(rename) if rename.is_of_schema() => SchemaTarget::One(rename.schema.clone()),
            Some(_) => SchemaTarget::Several,
        }
    }

    /// The schema that names without a schema of their own are in, where there is one for all that are not renamed one by one.
    pub fn default_target(&self, schema: &str) -> String {
        let whole = self.0.iter().find(|rename| rename.from.schema.matches(schema) && rename.is_of_schema());
        whole.map_or_else(|| schema.to_owned(), |rename| rename.schema.clone())
    }

    /// The rename that gives another table the name that this one has on the target, without anybody having asked that they be one.
    pub fn taken_name(&self, schema: &str, table: &str) -> Option<&Rename> {
        let Some(own) = self.0.iter().find(|rename| rename.from.matches(schema, table)) else {
            return self.0.iter().find(|rename| rename.is_into(schema, table));
        };
        // It keeps its own name in another schema, where a table may have been given that name.
        let is_given = |rename: &&Rename| rename.table.is_some() && rename.is_into(&own.schema, table);
        if own.table.is_some() { None } else { self.0.iter().find(is_given) }
    }

    /// Whether a rename gives a table this name.
    pub fn names(&self, schema: &str, table: &str) -> bool {
        self.0.iter().any(|rename| rename.is_into(schema, table))
    }

    /// Likewise of a schema.
    pub fn taken_schema(&self, schema: &str) -> Option<&Rename> {
        if self.0.iter().any(|rename| rename.from.schema.matches(schema)) {
            return None;
        }
        self.0.iter().find(|rename| rename.is_of_schema() && same_name(&rename.schema, schema))
    }

    /// Whether several schemas of the source are this one of the target, or may be.
    pub fn shares_schema(&self, target: &str) -> bool {
        let mut into = self.0.iter().filter(|rename| same_name(&rename.schema, target));
        let Some(first) = into.next() else { return false };
        first.from.schema.is_many() || into.next().is_some()
    }

    /// Whether several tables of the source are this one of the target, or may be.
    pub fn shares_table(&self, schema: &str, table: &str) -> bool {
        let into = || self.0.iter().filter(|rename| rename.is_into(schema, table));
        // Where a table is given this name, one that would keep it is refused.
        let is_given = into().any(|rename| rename.table.is_some());
        let mut made = into().filter(|rename| rename.table.is_some() == is_given);
        made.next().is_some_and(Rename::is_many) || made.next().is_some()
    }

    /// Whether tables of several names may become one.
    pub fn share(&self) -> bool {
        let is_twice = |rename: &Rename| {
            let same = |other: &&Rename| {
                let tables = match (&rename.table, &other.table) {
                    (Some(one), Some(other)) => same_name(one, other),
                    (one, other) => one.is_none() && other.is_none(),
                };
                tables && same_name(&rename.schema, &other.schema)
            };
            self.0.iter().filter(same).count() > 1
        };
        self.0.iter().any(|rename| rename.is_many() || is_twice(rename))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renames(texts: &[&str]) -> Renames {
        Renames(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn names_on_the_target() {
        let renames = renames(&["shop.orders=store.orders_old", "shop=store", "log.a_*=archive", "shard_*=all"]);
        for (from, to) in [
            ("shop.orders", "store.orders_old"),
            ("shop.items", "store.items"),
            ("log.a_1", "archive.a_1"),
            ("log.b", "log.b"),
            ("shard_7.t", "all.t"),
            ("other.t", "other.t"),
        ] {
            let (schema, table) = from.split_once('.').unwrap();
            let (new_schema, new_table) = renames.target(schema, table);
            assert_eq!(format!("{new_schema}.{new_table}"), to, "{from}");
        }
        assert_eq!(renames.schema_target("shop"), SchemaTarget::Several);
        assert_eq!(renames.schema_target("shard_1"), SchemaTarget::One("all".to_owned()));
        assert_eq!(renames.schema_target("x"), SchemaTarget::One("x".to_owned()));
        assert_eq!(renames.default_target("shop"), "store");
    }

    #[test]
    fn what_is_shared() {
        let merged = renames(&["shard_*=all"]);
        assert!(merged.shares_schema("all") && merged.shares_table("all", "t") && !merged.shares_table("x", "t"));
        let moved = renames(&["shop=store"]);
        assert!(!moved.shares_schema("store") && !moved.shares_table("store", "t") && !moved.share());
        // The source may have a schema of the new name.
        assert_eq!(moved.taken_name("store", "t").map(ToString::to_string).as_deref(), Some("shop=store"));
        assert!(moved.taken_name("shop", "t").is_none() && moved.taken_schema("store").is_some());
        assert!(renames(&["shop=store", "store=store"]).shares_table("store", "t"));
        let named = renames(&["shop.b=store.old", "shop=store"]);
        assert!(!named.shares_table("store", "old") && !named.shares_table("store", "x") && !named.share());
        assert!(named.taken_name("shop", "old").is_some() && named.taken_name("shop", "b").is_none());
        let swapped = renames(&["a=b", "b=a"]);
        assert!(!swapped.shares_schema("a") && !swapped.shares_table("b", "t"));
        assert!(renames(&["a.x=c.z", "a.y=c.z"]).shares_table("c", "z"));
    }

    #[test]
    fn forms() {
        for wrong in ["shop", "shop=", "=store", "shop=a.b.c", "shop=st*re", "shop=store.t", "a.b.c=d"] {
            assert!(wrong.parse::<Rename>().is_err(), "{wrong}");
        }
        assert_eq!(Rename::of_rewrite("a->b").unwrap().to_string(), "a->b");
        assert!(Rename::of_rewrite("a=b").is_none());
    }
}
