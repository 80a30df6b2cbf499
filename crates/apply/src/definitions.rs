//! Which tables and columns a server has, and where two servers differ. For `--dry-run` only: what applies rows reads the target's definitions,
//! through the catalogue.

use std::collections::BTreeMap;

use engine::intake::{Decision, Filter};
use wire::{Connection, Error};

use crate::mysql::progress::SCHEMA;

/// By schema and name, in order.
#[derive(Debug, Default)]
pub struct Definitions(pub BTreeMap<(String, String), Vec<Column>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// Without lengths and display widths, which versions print differently.
    pub data_type: String,
}

/// Tables of this kind that a message names before it only counts them.
const NAMED_MAX: usize = 5;

impl Definitions {
    /// Every table that is not the server's or heddle's own.
    pub fn read(connection: &mut Connection) -> Result<Self, Error> {
        // Of a hundred thousand tables these are millions of rows: they are not kept as rows, too.
        let sql = format!(
            "SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME, \
             CONCAT(c.DATA_TYPE, IF(c.COLUMN_TYPE LIKE '%unsigned%', ' unsigned', '')) \
             FROM information_schema.COLUMNS c JOIN information_schema.TABLES t \
             ON t.TABLE_SCHEMA=c.TABLE_SCHEMA AND t.TABLE_NAME=c.TABLE_NAME \
             WHERE t.TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') \
             AND c.TABLE_SCHEMA NOT IN ('mysql','sys','information_schema','performance_schema','{SCHEMA}') \
             ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION"
        );
        let mut tables: BTreeMap<(String, String), Vec<Column>> = BTreeMap::new();
        connection.for_each_row(sql, &mut |row| {
            let text = |at: usize| row.required_text(at).map(str::to_owned);
            let column = Column { name: text(2)?, data_type: text(3)?.to_ascii_lowercase() };
            tables.entry((text(0)?, text(1)?)).or_default().push(column);
            Ok(())
        })?;
        Ok(Self(tables))
    }

    /// The tables that a channel takes, under the names that they have on the target.
    #[must_use]
    pub fn of_part(self, part: &Filter) -> Self {
        let named = |((schema, table), columns): ((String, String), Vec<Column>)| match part.decide(&schema, &table) {
            Decision::Taken { schema, table } => Some(((schema, table), columns)),
            Decision::LeftOut | Decision::Collides(_) => None,
        };
        Self(self.0.into_iter().filter_map(named).collect())
    }

    /// What may stop a channel from here to `target`, a message for each kind. The source may be ahead of the target:
    /// a DDL on the way can still make them equal.
    pub fn differences(&self, target: &Definitions) -> Vec<String> {
        let mut missing = Vec::new();
        let mut different = Vec::new();
        for (name, columns) in &self.0 {
            match target.0.get(name) {
                None => missing.push(shown(name)),
                Some(there) => {
                    different.extend(difference(columns, there).map(|why| format!("{} ({why})", shown(name))));
                }
            }
        }
        let mut messages = Vec::new();
        if !missing.is_empty() {
            messages.push(format!(
                "{}: their rows stop the channel, unless the log creates them first",
                listed("tables of the source that are not on the target", &missing)
            ));
        }
        if !different.is_empty() {
            messages.push(format!(
                "{}: rows that do not fit stop the channel, unless a DDL in the log comes first",
                listed("tables whose columns differ", &different)
            ));
        }
        messages
    }
}

fn shown((schema, table): &(String, String)) -> String {
    format!("{schema}.{table}")
}

/// `12 tables that …: a, b, c and 9 more`
pub fn listed(what: &str, names: &[String]) -> String {
    let named = names.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => format!("{} {what}: {named}", names.len()),
        more => format!("{} {what}: {named} and {more} more", names.len()),
    }
}

fn difference(source: &[Column], target: &[Column]) -> Option<String> {
    if source.len() != target.len() {
        return Some(format!("{} columns, on the target {}", source.len(), target.len()));
    }
    source.iter().zip(target).find_map(|(here, there)| {
        if !here.name.eq_ignore_ascii_case(&there.name) {
            return Some(format!("column {}, on the target {}", here.name, there.name));
        }
        let same = here.data_type == there.data_type || is_json(here) && is_json(there);
        (!same).then(|| format!("{} is {}, on the target {}", here.name, here.data_type, there.data_type))
    })
}

/// MariaDB's JSON is a LONGTEXT.
fn is_json(column: &Column) -> bool {
    matches!(column.data_type.as_str(), "json" | "longtext")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(list: &[(&str, &[(&str, &str)])]) -> Definitions {
        let column = |&(name, data_type): &(&str, &str)| Column { name: name.into(), data_type: data_type.into() };
        let table = |(name, columns): &(&str, &[(&str, &str)])| {
            (("d".to_owned(), (*name).to_owned()), columns.iter().map(column).collect())
        };
        Definitions(list.iter().map(table).collect())
    }

    #[test]
    fn differences_are_named() {
        let source = tables(&[
            ("gone", &[("a", "int")]),
            ("json", &[("a", "json")]),
            ("less", &[("a", "int"), ("b", "int")]),
            ("name", &[("a", "int")]),
            ("same", &[("A", "int")]),
            ("type", &[("a", "int unsigned")]),
        ]);
        let target = tables(&[
            ("json", &[("a", "longtext")]),
            ("less", &[("a", "int")]),
            ("more", &[("a", "int")]),
            ("name", &[("z", "int")]),
            ("same", &[("a", "int")]),
            ("type", &[("a", "int")]),
        ]);
        assert_eq!(
            source.differences(&target),
            [
                "1 tables of the source that are not on the target: d.gone: their rows stop the channel, unless the log \
                 creates them first",
                "3 tables whose columns differ: d.less (2 columns, on the target 1), d.name (column a, on the target z), \
                 d.type (a is int unsigned, on the target int): rows that do not fit stop the channel, unless a DDL in \
                 the log comes first",
            ]
        );
        assert!(source.differences(&source).is_empty());
        let many: Vec<String> = (1..=7).map(|n| format!("t{n}")).collect();
        assert_eq!(listed("tables", &many), "7 tables: t1, t2, t3, t4, t5 and 2 more");
    }
}
