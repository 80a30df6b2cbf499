//! `SHOW COLUMNS` and `SHOW INDEX`: one row for each column, or for each part of a key.

use engine::sql::create_table::{ColumnDefinition, KeyPartDefinition, TableDefinition};
use wire::server::{Cell, ColumnKind, Rows};

use super::column::{collation_of, extra, is_nullable, key_of, keys, nullable, type_of};
use crate::inventory::SourceFacts;
use crate::queries::world::World;

const TEXT: ColumnKind = ColumnKind::Text;
const NUMBER: ColumnKind = ColumnKind::Number;

/// The columns of `SHOW COLUMNS`.
const COLUMNS: [(&str, ColumnKind); 6] =
    [("Field", TEXT), ("Type", TEXT), ("Null", TEXT), ("Key", TEXT), ("Default", TEXT), ("Extra", TEXT)];

/// `SHOW COLUMNS`.
pub(super) fn columns<'a>(
    table: &TableDefinition,
    all: impl Iterator<Item = &'a ColumnDefinition>,
    source: &SourceFacts,
) -> Rows {
    lines(&COLUMNS, all.map(|column| cells(table, column, source).to_vec()))
}

/// `SHOW FULL COLUMNS`: the same, with three more.
pub(super) fn full_columns<'a>(
    table: &TableDefinition,
    all: impl Iterator<Item = &'a ColumnDefinition>,
    source: &SourceFacts,
) -> Rows {
    let [field, kind, null, key, default, extra] = COLUMNS;
    let names = [field, kind, ("Collation", TEXT), null, key, default, extra, ("Privileges", TEXT), ("Comment", TEXT)];
    let row = |column: &ColumnDefinition| {
        let [field, kind, null, key, default, extra] = cells(table, column, source);
        let collation = collation_of(table, column, source);
        vec![field, kind, collation, null, key, default, extra, Some("select".to_owned()), Some(String::new())]
    };
    lines(&names, all.map(row))
}

fn cells(table: &TableDefinition, column: &ColumnDefinition, source: &SourceFacts) -> [Cell; 6] {
    [
        Some(column.name.clone()),
        Some(type_of(column, source)),
        Some(nullable(table, column)),
        Some(key_of(table, column).to_owned()),
        None,
        Some(extra(column).to_owned()),
    ]
}

/// `SHOW INDEX`.
pub(super) fn indexes(table: &TableDefinition, world: World<'_>) -> Rows {
    let mut names = vec![
        ("Table", TEXT),
        ("Non_unique", NUMBER),
        ("Key_name", TEXT),
        ("Seq_in_index", NUMBER),
        ("Column_name", TEXT),
        ("Collation", TEXT),
        ("Cardinality", NUMBER),
        ("Sub_part", NUMBER),
        ("Packed", TEXT),
        ("Null", TEXT),
        ("Index_type", TEXT),
        ("Comment", TEXT),
        ("Index_comment", TEXT),
    ];
    let is_mariadb = world.source.is_mariadb();
    if is_mariadb && world.source.at_least(10, 6, 0) {
        names.push(("Ignored", TEXT));
    } else if !is_mariadb && world.source.at_least(8, 0, 0) {
        names.extend([("Visible", TEXT), ("Expression", TEXT)]);
    }
    let more = names.len() - 13;
    let rows = keys(table).flat_map(|(name, key, unique)| {
        key.parts.iter().zip(1..).map(move |(part, at)| {
            let (column, prefix) = match part {
                KeyPartDefinition::Column { name, prefix } => {
                    (Some(name.clone()), prefix.map(|prefix| prefix.to_string()))
                }
                KeyPartDefinition::Expression => (None, None),
            };
            let nullable =
                table.columns.iter().any(|known| Some(&known.name) == column.as_ref() && is_nullable(table, known));
            let text = |text: &str| Some(text.to_owned());
            let mut row = vec![
                Some(table.name.name.clone()),
                text(if unique { "0" } else { "1" }),
                Some(name.clone()),
                Some(at.to_string()),
                column,
                text("A"),
                text("0"),
                prefix,
                None,
                text(if nullable { "YES" } else { "" }),
                text("BTREE"),
                text(""),
                text(""),
            ];
            match more {
                1 => row.push(text("NO")),
                2 => row.extend([text("YES"), None]),
                _ => {}
            }
            row
        })
    });
    lines(&names, rows)
}

pub(super) fn lines(columns: &[(&str, ColumnKind)], rows: impl Iterator<Item = Vec<Cell>>) -> Rows {
    Rows { rows: rows.collect(), ..Rows::new(columns) }
}
