//! What the target calls what the source has (`--rename`): tables, and names in statements that define them.

use std::sync::Arc;

use binlog::Query;
use bytes::Bytes;
use engine::failure::{Failure, FailureKind};
use engine::intake::{Fate, Filter, SelectedStatement, Selection};
use engine::sql::{SqlMode, classify};

use crate::chunk::TableName;

/// Names of the target.
#[derive(Clone, Debug)]
pub struct TargetNames {
    /// `None`: all keep theirs.
    renaming: Option<(Arc<Filter>, Selection)>,
}

/// A statement, and the schema in which it is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetStatement {
    pub sql: String,
    pub schema: String,
}

impl TargetNames {
    pub fn new(part: Option<&Filter>) -> Self {
        let renaming = part.filter(|part| !part.renames.is_empty()).map(|part| {
            // What is left out is not copied in the first place.
            let filter = Arc::new(Filter {
                rules: part.rules.clone(),
                renames: part.renames.clone(),
                rewrites: part.rewrites,
                ..Filter::default()
            });
            let selection = Selection::everything().filtered(Some(Arc::clone(&filter)));
            (filter, selection)
        });
        Self { renaming }
    }

    pub fn table(&self, name: &TableName) -> TableName {
        let Some((filter, _)) = &self.renaming else { return name.clone() };
        let (schema, table) = filter.renames.target(&name.schema, &name.table);
        TableName { schema, table }
    }

    /// A definition of the source, executed there in `schema`. `None`: it is not taken.
    ///
    /// # Errors
    /// It names things on both sides of the border of what is taken, or of what is renamed: with what to do.
    pub fn statement(&self, sql: &str, schema: &str, sql_mode: &str) -> Result<Option<TargetStatement>, Failure> {
        let whole = || Some(TargetStatement { sql: sql.to_owned(), schema: schema.to_owned() });
        let Some((_, selection)) = &self.renaming else { return Ok(whole()) };
        let (bits, mode) = mode_of(sql_mode);
        let mut query = Query {
            thread_id: 0,
            exec_time: 0,
            error_code: 0,
            schema: Bytes::copy_from_slice(schema.as_bytes()),
            status_vars: Bytes::new(),
            sql: Bytes::copy_from_slice(sql.as_bytes()),
            vars: binlog::StatusVars::default(),
        };
        query.vars.sql_mode = Some(bits);
        query.vars.charset = Some((UTF8MB4_GENERAL_CI, UTF8MB4_GENERAL_CI, UTF8MB4_GENERAL_CI));
        let refused = |what: &str, remedy: &str| {
            Failure::new(FailureKind::Refused, format!("the definition {}: {what}", shortened(sql)))
                .remedy(remedy.to_owned())
        };
        match selection.statement(&classify(sql.as_bytes(), schema, mode), &query) {
            SelectedStatement::Fate(Fate::Whole) => Ok(whole()),
            SelectedStatement::Fate(Fate::LeftOut(_)) => Ok(None),
            SelectedStatement::Fate(Fate::Rewritten(new)) => Ok(Some(TargetStatement {
                sql: String::from_utf8(new.sql)
                    .map_err(|_| refused("it is no UTF-8 under its new name", "leave it out (--ignore)"))?,
                schema: new.schema,
            })),
            SelectedStatement::Foreign(foreign) => Err(refused(&foreign.to_string(), "see --bookkeeping-schema")),
            SelectedStatement::Refused(refusal) => Err(refused(&refusal.what, &refusal.remedy)),
        }
    }
}

/// Both servers number it so.
const UTF8MB4_GENERAL_CI: u16 = 45;

/// Of the modes that a text depends on, from their names.
fn mode_of(names: &str) -> (u64, SqlMode) {
    const MODES: [(&str, u64); 3] = [("REAL_AS_FLOAT", 1), ("ANSI_QUOTES", 4), ("NO_BACKSLASH_ESCAPES", 1 << 20)];
    let has = |mode: &str| names.split(',').any(|name| name == mode);
    let bits = MODES.iter().filter(|(mode, _)| has(mode)).fold(0, |bits, (_, bit)| bits | bit);
    (bits, SqlMode { charset: engine::sql::Charset::of_collation(UTF8MB4_GENERAL_CI), ..SqlMode::from_bits(bits) })
}

fn shortened(sql: &str) -> String {
    const CHARACTERS: usize = 80;
    let mut text: String = sql.chars().take(CHARACTERS).map(|c| if c == '\n' { ' ' } else { c }).collect();
    if sql.chars().count() > CHARACTERS {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use engine::intake::{Rename, Renames};

    use super::*;

    fn names(renames: &[&str]) -> TargetNames {
        let renames = Renames(renames.iter().map(|text| text.parse::<Rename>().unwrap()).collect());
        TargetNames::new(Some(&Filter { renames, ..Filter::default() }))
    }

    #[test]
    fn without_renames_all_stays() {
        let names = TargetNames::new(Some(&Filter::default()));
        assert_eq!(names.table(&TableName::new("a", "t")), TableName::new("a", "t"));
        let statement = names.statement("CREATE TABLE `t` (a int)", "a", "").unwrap().unwrap();
        assert_eq!((statement.sql.as_str(), statement.schema.as_str()), ("CREATE TABLE `t` (a int)", "a"));
    }

    #[test]
    fn tables_and_texts() {
        let names = names(&["shop=store", "log.events=archive.old"]);
        assert_eq!(names.table(&TableName::new("shop", "t")), TableName::new("store", "t"));
        assert_eq!(names.table(&TableName::new("log", "events")), TableName::new("archive", "old"));
        for (sql, schema, expected) in [
            ("CREATE DATABASE IF NOT EXISTS `shop`", "", "CREATE DATABASE IF NOT EXISTS `store`"),
            ("CREATE TABLE `t` (\n  `id` int\n)", "shop", "CREATE TABLE `t` (\n  `id` int\n)"),
            ("CREATE TABLE `events` (`id` int)", "log", "CREATE TABLE `old` (`id` int)"),
            (
                "ALTER TABLE `t` ADD CONSTRAINT `k` FOREIGN KEY (`a`) REFERENCES `shop`.`p` (`a`)",
                "shop",
                "ALTER TABLE `t` ADD CONSTRAINT `k` FOREIGN KEY (`a`) REFERENCES `store`.`p` (`a`)",
            ),
            ("DROP VIEW IF EXISTS `shop`.`v`", "shop", "DROP VIEW IF EXISTS `store`.`v`"),
        ] {
            let found = names.statement(sql, schema, "").unwrap().unwrap();
            assert_eq!(found.sql, expected);
            if schema == "shop" {
                assert_eq!(found.schema, "store");
            }
        }
    }
}
