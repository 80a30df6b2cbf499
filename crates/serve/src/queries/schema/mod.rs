//! Tables and their columns, for clients that ask for more than a stream: from the definitions that `--retag` keeps.
//!
//! Not known: default values, comments, the character sets of schemas, the number of rows.

mod column;
mod create_table;
mod select;
mod show;

use engine::sql::ObjectName;
use engine::sql::create_table::TableDefinition;
use wire::server::{ColumnKind, Rows, ServerError};

use super::catalogue::Catalogue;
use super::show::is_like;
use super::world::World;

const TEXT: ColumnKind = ColumnKind::Text;

/// Answers a question about tables.
///
/// # Errors
/// The table or column does not exist; or this server keeps no definitions.
pub(super) fn rows(asked: &Catalogue, world: World<'_>) -> Result<Rows, ServerError> {
    let Some(schema) = world.schema else { return Err(unknown_here()) };
    match asked {
        Catalogue::Databases { like } => {
            let names = select::schema_names(world).into_iter().filter(|name| fits(name, like.as_ref()));
            Ok(show::lines(&[("Database", TEXT)], names.map(|name| vec![Some(name)])))
        }
        Catalogue::Tables { schema: of, full, like } => {
            let mut columns = vec![(format!("Tables_in_{of}"), TEXT)];
            if *full {
                columns.push(("Table_type".to_owned(), TEXT));
            }
            let of_schema =
                schema.tables().filter(|table| table.name.schema == *of && fits(&table.name.name, like.as_ref()));
            let row = |table: &TableDefinition| {
                let kind = full.then(|| Some("BASE TABLE".to_owned()));
                std::iter::once(Some(table.name.name.clone())).chain(kind).collect()
            };
            Ok(Rows { columns, rows: of_schema.map(|table| row(table)).collect() })
        }
        Catalogue::Columns { table, full, like } => {
            let definition = find(table, world)?;
            let all = definition.columns.iter().filter(|column| fits(&column.name, like.as_ref()));
            Ok(if *full {
                show::full_columns(definition, all, world.source)
            } else {
                show::columns(definition, all, world.source)
            })
        }
        Catalogue::Indexes { table } => Ok(show::indexes(find(table, world)?, world)),
        Catalogue::CreateTable { table } => {
            let definition = find(table, world)?;
            let row = vec![Some(table.name.clone()), Some(create_table::statement(definition, world.source))];
            Ok(show::lines(&[("Table", TEXT), ("Create Table", TEXT)], std::iter::once(row)))
        }
        Catalogue::Select(selected) => select::rows(selected, world),
    }
}

fn unknown_here() -> ServerError {
    let text = "This version of MySQL doesn't yet support 'definitions of tables' (this binlog server keeps none: it has to run with --retag writeset)";
    ServerError::new(1235, "42000", text)
}

fn fits(name: &str, like: Option<&String>) -> bool {
    like.is_none_or(|pattern| is_like(name, pattern))
}

fn find<'a>(name: &ObjectName, world: World<'a>) -> Result<&'a TableDefinition, ServerError> {
    let found = world.schema.and_then(|schema| schema.get(&name.schema, &name.name));
    found
        .map(|table| &**table)
        .ok_or_else(|| ServerError::new(1146, "42S02", format!("Table '{}.{}' doesn't exist", name.schema, name.name)))
}

#[cfg(test)]
mod tests;
