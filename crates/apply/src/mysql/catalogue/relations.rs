//! The foreign keys of a whole server, by names, found from either end: there may be many thousands.

use std::collections::{HashMap, HashSet};

use engine::failure::Failure;
use engine::schema::Column;
use wire::Row;

use crate::checks::Cascade;
use crate::mysql::rows::table_mapping::Name;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;

/// One foreign key.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    pub child: Name,
    pub child_columns: Vec<String>,
    pub parent: Name,
    pub parent_columns: Vec<String>,
    /// Deleting or changing the parent changes the child's rows.
    cascades: bool,
}

#[derive(Debug, Default)]
pub struct Relations {
    all: Vec<Relation>,
    by_child: HashMap<Name, Vec<usize>>,
    by_parent: HashMap<Name, Vec<usize>>,
}

/// Runs a query.
type Rows<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<Row>, Failure>;

impl Relations {
    /// Reads all that the server has. MySQL 5.7 and MariaDB open every table for it.
    pub fn read(rows: Rows<'_>) -> Result<Self, Failure> {
        Ok(Self::new(read(rows, None)?))
    }

    /// The same with what these tables refer to now.
    pub fn read_again(&self, tables: &HashSet<Name>, rows: Rows<'_>) -> Result<Self, Failure> {
        let mut all: Vec<Relation> = self.all.iter().filter(|one| !tables.contains(&one.child)).cloned().collect();
        for table in tables {
            all.extend(read(rows, Some(table))?);
        }
        // A server that does not tell upper from lower case finds one table by several names.
        let mut seen = HashSet::new();
        all.retain(|one| seen.insert((one.child.clone(), one.name.clone())));
        Ok(Self::new(all))
    }

    /// The tables whose foreign keys a DDL on these tables may have changed: they themselves, and those that refer to them (which a new name of
    /// the parent changes).
    pub fn concerned(&self, is_one: impl Fn(&Name) -> bool) -> HashSet<Name> {
        let all = self.all.iter().filter(|relation| is_one(&relation.child) || is_one(&relation.parent));
        all.map(|relation| relation.child.clone()).collect()
    }

    fn new(all: Vec<Relation>) -> Self {
        let mut relations = Self::default();
        for (at, relation) in all.iter().enumerate() {
            relations.by_child.entry(relation.child.clone()).or_default().push(at);
            relations.by_parent.entry(relation.parent.clone()).or_default().push(at);
        }
        Self { all, ..relations }
    }

    /// Those of a table, in the server's order.
    pub fn of_child<'a>(&'a self, name: &Name) -> impl Iterator<Item = &'a Relation> + use<'a> {
        self.at(self.by_child.get(name))
    }

    /// Those that refer to a table.
    pub fn of_parent<'a>(&'a self, name: &Name) -> impl Iterator<Item = &'a Relation> + use<'a> {
        self.at(self.by_parent.get(name))
    }

    fn at<'a>(&'a self, places: Option<&'a Vec<usize>>) -> impl Iterator<Item = &'a Relation> + use<'a> {
        places.into_iter().flatten().filter_map(|&at| self.all.get(at))
    }

    /// Whether a foreign key has the table's name in small letters, and none has it as it is.
    pub fn has_only_lower_case_of(&self, name: &Name) -> bool {
        let lower = (name.0.to_lowercase(), name.1.to_lowercase());
        let has = |name: &Name| self.by_child.contains_key(name) || self.by_parent.contains_key(name);
        lower != *name && !has(name) && has(&lower)
    }

    /// Tables that cascades from this one reach.
    pub fn descendants(&self, name: &Name) -> Vec<&Name> {
        let (mut seen, mut found, mut open) = (HashSet::new(), Vec::new(), vec![name]);
        while let Some(parent) = open.pop() {
            for relation in self.of_parent(parent).filter(|relation| relation.cascades) {
                if seen.insert(&relation.child) {
                    found.push(&relation.child);
                    open.push(&relation.child);
                }
            }
        }
        found
    }

    /// Columns of a table that cascading foreign keys refer to; all of them when one is not found by its name.
    pub fn cascade_columns(&self, table: &Name, columns: &[Column]) -> Vec<usize> {
        let referring = self.of_parent(table).filter(|relation| relation.cascades);
        let names = referring.flat_map(|relation| &relation.parent_columns);
        let position = |name: &String| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        let found: Option<Vec<usize>> = names.map(position).collect();
        let mut found = found.unwrap_or_else(|| (0..columns.len()).collect());
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Foreign keys of the server that cascade. The parent's schema is that of the unique key referred to.
pub fn cascades(rows: Rows<'_>) -> Result<Vec<Cascade>, Failure> {
    let found = rows(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME \
         FROM information_schema.REFERENTIAL_CONSTRAINTS",
    )?;
    let mut all = Vec::new();
    for row in &found {
        let text = |index: usize| row.required_text(index).map(str::to_owned).map_err(failed);
        if cascades_by(row)? {
            all.push(Cascade { name: text(2)?, child: (text(0)?, text(1)?), parent: (text(5)?, text(6)?) });
        }
    }
    Ok(all)
}

/// Whether a row of the rules, with DELETE_RULE and UPDATE_RULE in columns 3 and 4, changes rows of the child.
fn cascades_by(rule: &Row) -> Result<bool, Failure> {
    let acts = |index: usize| {
        let rule = rule.required_text(index).map_err(failed)?;
        Ok::<bool, Failure>(matches!(rule, "CASCADE" | "SET NULL" | "SET DEFAULT"))
    };
    Ok(acts(3)? || acts(4)?)
}

/// The foreign keys of a table, or of all.
fn read(rows: Rows<'_>, of: Option<&Name>) -> Result<Vec<Relation>, Failure> {
    // The columns' names by which servers of before MySQL 8 find the table without looking at all.
    let condition = |schema: &str| match of {
        Some(name) => format!("{schema}={} AND TABLE_NAME={}", quote(&name.0), quote(&name.1)),
        None => "TRUE".to_owned(),
    };
    let rules = rows(&format!(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE \
         FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE {}",
        condition("CONSTRAINT_SCHEMA")
    ))?;
    if rules.is_empty() {
        return Ok(Vec::new());
    }
    let usage = rows(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, \
         REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE \
         WHERE {} AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION",
        condition("TABLE_SCHEMA")
    ))?;
    let mut by_constraint: HashMap<[&str; 3], Vec<&Row>> = HashMap::new();
    for row in &usage {
        by_constraint.entry(constraint(row)?).or_default().push(row);
    }
    let mut all = Vec::new();
    for rule in &rules {
        let columns = by_constraint.get(&constraint(rule)?).map_or(&[][..], Vec::as_slice);
        all.extend(relation(rule, columns)?);
    }
    Ok(all)
}

/// Schema, table and name of a constraint: the first columns of both queries.
fn constraint(row: &Row) -> Result<[&str; 3], Failure> {
    let text = |index: usize| row.required_text(index).map_err(failed);
    Ok([text(0)?, text(1)?, text(2)?])
}

/// `usage`: the columns of this constraint.
fn relation(rule: &Row, usage: &[&Row]) -> Result<Option<Relation>, Failure> {
    let text = |row: &Row, index: usize| row.required_text(index).map(str::to_owned).map_err(failed);
    let (schema, table, name) = (text(rule, 0)?, text(rule, 1)?, text(rule, 2)?);
    let cascades = cascades_by(rule)?;
    let mut relation = Relation {
        name,
        child: (schema, table),
        child_columns: Vec::new(),
        parent: (String::new(), String::new()),
        parent_columns: Vec::new(),
        cascades,
    };
    for row in usage {
        relation.child_columns.push(text(row, 3)?);
        relation.parent = (text(row, 4)?, text(row, 5)?);
        relation.parent_columns.push(text(row, 6)?);
    }
    Ok((!relation.child_columns.is_empty()).then_some(relation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cascades_reach_children_of_children_once() {
        let name = |table: &str| ("s".to_owned(), table.to_owned());
        let relation = |child, parent, cascades| Relation {
            name: format!("{child}_{parent}"),
            child: name(child),
            child_columns: vec!["p".to_owned()],
            parent: name(parent),
            parent_columns: vec!["id".to_owned()],
            cascades,
        };
        // a ← b ← c ← a, in a circle; d restricts.
        let relations = Relations::new(vec![
            relation("b", "a", true),
            relation("c", "b", true),
            relation("a", "c", true),
            relation("d", "a", false),
        ]);
        let reached = |table| relations.descendants(&name(table)).into_iter().map(|(_, name)| name.as_str()).collect();
        let reached: [Vec<&str>; 3] = [reached("a"), reached("c"), reached("d")];
        assert_eq!(reached, [vec!["b", "c", "a"], vec!["a", "b", "c"], vec![]]);
        let concerned = |table| {
            let mut found: Vec<String> =
                relations.concerned(|one| one.1 == table).into_iter().map(|(_, name)| name).collect();
            found.sort();
            found.concat()
        };
        assert_eq!(["a", "c", "d", "e"].map(concerned), ["abd", "ac", "d", ""]);
        let count = |table| (relations.of_child(&name(table)).count(), relations.of_parent(&name(table)).count());
        assert_eq!(["a", "b", "d", "e"].map(count), [(1, 2), (1, 1), (1, 0), (0, 0)]);
    }
}
