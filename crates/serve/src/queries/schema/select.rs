//! `SELECT` from `information_schema`: its tables `columns`, `tables` and `schemata`.

use std::collections::BTreeSet;

use engine::sql::create_table::TableDefinition;
use wire::server::{Cell, ColumnKind, Rows, ServerError};

use super::column::{charset_of, collation_of, default_collation, extra, key_of, nullable, type_of};
use crate::queries::catalogue::{CatalogueSelect, CatalogueTable, Condition};
use crate::queries::world::World;

const TEXT: ColumnKind = ColumnKind::Text;
const NUMBER: ColumnKind = ColumnKind::Number;
const CATALOGUE: &str = "information_schema";

/// A line of one of the catalogue's tables: names in lower case.
type Line = Vec<(&'static str, Cell)>;

/// The rows that a `SELECT` of the catalogue asks for.
///
/// # Errors
/// A column does not exist.
pub(super) fn rows(selected: &CatalogueSelect, world: World<'_>) -> Result<Rows, ServerError> {
    let all = match selected.table {
        CatalogueTable::Columns => column_lines(selected, world),
        CatalogueTable::Tables => table_lines(world),
        CatalogueTable::Schemata => schema_lines(world),
    };
    let names: Vec<&'static str> = match selected.table {
        CatalogueTable::Columns => COLUMN_NAMES.to_vec(),
        CatalogueTable::Tables => TABLE_NAMES.to_vec(),
        CatalogueTable::Schemata => SCHEMA_NAMES.to_vec(),
    };
    let unknown = |name: &str| ServerError::new(1054, "42S22", format!("Unknown column '{name}' in 'field list'"));
    let wanted: Vec<(String, &'static str)> = match &selected.items {
        None => names.iter().map(|name| (name.to_uppercase(), *name)).collect(),
        Some(items) => {
            let of = |(column, title): &(String, String)| {
                let known = names.iter().find(|name| **name == column.to_lowercase());
                known.map(|name| (title.clone(), *name)).ok_or_else(|| unknown(column))
            };
            items.iter().map(of).collect::<Result<_, _>>()?
        }
    };
    for Condition { column, .. } in &selected.conditions {
        if !names.contains(&column.as_str()) {
            return Err(unknown(column));
        }
    }
    let cell =
        |line: &Line, name: &str| line.iter().find(|(known, _)| *known == name).and_then(|(_, cell)| cell.clone());
    let fits = |line: &Line| {
        selected
            .conditions
            .iter()
            .all(|condition| cell(line, &condition.column).is_some_and(|value| condition.values.contains(&value)))
    };
    let kind = |name: &str| if matches!(name, "ordinal_position" | "table_rows") { NUMBER } else { TEXT };
    let rows = all.iter().filter(|line| fits(line)).take(selected.limit.unwrap_or(usize::MAX));
    Ok(Rows {
        columns: wanted.iter().map(|(title, name)| (title.clone(), kind(name))).collect(),
        rows: rows.map(|line| wanted.iter().map(|(_, name)| cell(line, name)).collect()).collect(),
    })
}

const COLUMN_NAMES: [&str; 14] = [
    "table_catalog",
    "table_schema",
    "table_name",
    "column_name",
    "ordinal_position",
    "column_default",
    "is_nullable",
    "data_type",
    "character_set_name",
    "collation_name",
    "column_type",
    "column_key",
    "extra",
    "column_comment",
];
const TABLE_NAMES: [&str; 7] =
    ["table_catalog", "table_schema", "table_name", "table_type", "engine", "table_rows", "table_collation"];
const SCHEMA_NAMES: [&str; 4] = ["catalog_name", "schema_name", "default_character_set_name", "default_collation_name"];

/// Of the tables that are asked for: there may be many others.
fn column_lines(selected: &CatalogueSelect, world: World<'_>) -> Vec<Line> {
    let asked = |table: &&std::sync::Arc<TableDefinition>| {
        selected.conditions.iter().all(|Condition { column, values }| match column.as_str() {
            "table_schema" => values.contains(&table.name.schema),
            "table_name" => values.contains(&table.name.name),
            _ => true,
        })
    };
    let text = |text: &str| Some(text.to_owned());
    let tables = world.schema.into_iter().flat_map(|schema| schema.tables()).filter(asked);
    tables
        .flat_map(|table| {
            table.columns.iter().zip(1..).map(move |(column, at)| {
                let collation = collation_of(table, column, world.source);
                let whole = type_of(column, world.source);
                let name_end = whole.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(whole.len());
                vec![
                    ("table_catalog", text("def")),
                    ("table_schema", text(&table.name.schema)),
                    ("table_name", text(&table.name.name)),
                    ("column_name", text(&column.name)),
                    ("ordinal_position", Some(at.to_string())),
                    ("column_default", None),
                    ("is_nullable", Some(nullable(table, column))),
                    ("data_type", text(whole.get(..name_end).unwrap_or_default())),
                    ("character_set_name", collation.as_deref().map(charset_of)),
                    ("collation_name", collation),
                    ("column_type", Some(whole)),
                    ("column_key", text(key_of(table, column))),
                    ("extra", text(extra(column))),
                    ("column_comment", text("")),
                ]
            })
        })
        .collect()
}

fn table_lines(world: World<'_>) -> Vec<Line> {
    let text = |text: &str| Some(text.to_owned());
    let tables = world.schema.into_iter().flat_map(|schema| schema.tables());
    tables
        .map(|table| {
            vec![
                ("table_catalog", text("def")),
                ("table_schema", text(&table.name.schema)),
                ("table_name", text(&table.name.name)),
                ("table_type", text("BASE TABLE")),
                ("engine", table.engine.clone()),
                ("table_rows", None),
                (
                    "table_collation",
                    table
                        .collation
                        .clone()
                        .or_else(|| table.charset.as_deref().map(|charset| default_collation(charset, world.source))),
                ),
            ]
        })
        .collect()
}

fn schema_lines(world: World<'_>) -> Vec<Line> {
    let line = |name: String| {
        vec![
            ("catalog_name", Some("def".to_owned())),
            ("schema_name", Some(name)),
            ("default_character_set_name", world.source.variable("character_set_server").map(str::to_owned)),
            ("default_collation_name", world.source.variable("collation_server").map(str::to_owned)),
        ]
    };
    schema_names(world).into_iter().map(line).collect()
}

/// The names of all schemas that have tables, and the catalogue's.
pub(super) fn schema_names(world: World<'_>) -> BTreeSet<String> {
    let known = world.schema.into_iter().flat_map(|schema| schema.tables()).map(|table| table.name.schema.clone());
    known.chain(std::iter::once(CATALOGUE.to_owned())).collect()
}
