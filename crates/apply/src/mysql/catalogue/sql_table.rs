//! What rows as SQL need to know of a table, read from the target. Changes nothing.

use binlog::{Flavour, TableMap};
use engine::failure::Failure;
use wire::{Connection, Row};

use super::definition::{self, Definition};
use super::hidden_columns::HiddenColumn;
use super::periods;
use crate::mysql::rows::sql::table::{SqlTable, TableDescription, Traits, Trigger};
use crate::mysql::rows::table_mapping::Name;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;

/// Asks the target.
type Rows<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<Row>, Failure>;

/// `width`: columns of the source's row images.
pub fn describe(
    rows: Rows<'_>,
    name: &Name,
    definition: &Definition,
    width: usize,
    hidden: HiddenColumn,
) -> Result<SqlTable, Failure> {
    let (has_own, image_has) = (definition.has_generated_key(), hidden == HiddenColumn::GeneratedKey);
    Ok(SqlTable::new(&TableDescription {
        name,
        columns: &definition.columns,
        types: &definition.types,
        unique_keys: &definition.unique_keys,
        exact_keys: definition.unique_keys.iter().filter(|key| !periods::is_equality(key)).collect(),
        on_update: definition.timed.iter().filter(|timed| timed.on_update).map(|timed| timed.column).collect(),
        traits: Traits {
            is_unique_otherwise: definition.functional || definition.hidden_columns > 0,
            is_versioned: definition.is_versioned,
            triggers: triggers(rows, name)?,
            refers_to_itself: refers_to_itself(rows, name)?,
        },
        width,
        first: match (has_own, image_has) {
            (false, true) => 1,
            (true, false) if definition.columns.len() == width + 1 => -1,
            _ => 0,
        },
    }))
}

/// A table that the feeder has not looked at: of a huge transaction, or made in the same one. `None`: there is none.
pub fn load(connection: &mut Connection, map: &TableMap) -> Result<Option<SqlTable>, Failure> {
    let name = (map.schema.clone(), map.table.clone());
    let place = format!("TABLE_SCHEMA={} AND TABLE_NAME={}", quote(&name.0), quote(&name.1));
    let periods = connection.server().flavour == Flavour::MariaDb;
    let mut rows = |sql: &str| connection.rows(sql).map_err(failed);
    let mut read = definition::read(&mut rows, &place, periods)?;
    // A server that does not tell upper from lower case may spell it in another way.
    let found = read.remove(&name).or_else(|| read.into_values().next());
    found
        .map(|definition| describe(&mut rows, &name, &definition, map.columns.len(), HiddenColumn::of(map)))
        .transpose()
}

/// Whether foreign keys of the table lead to it: then the order of its rows matters within one statement.
fn refers_to_itself(rows: Rows<'_>, (schema, table): &Name) -> Result<bool, Failure> {
    let sql = format!(
        "SELECT 1 FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA={0} AND TABLE_NAME={1} AND REFERENCED_TABLE_SCHEMA={0} AND REFERENCED_TABLE_NAME={1} LIMIT 1",
        quote(schema),
        quote(table)
    );
    Ok(!rows(&sql)?.is_empty())
}

/// Those that the account may see: without the privilege TRIGGER on the table it sees none.
fn triggers(rows: Rows<'_>, (schema, table): &Name) -> Result<Vec<Trigger>, Failure> {
    let sql = format!(
        "SELECT TRIGGER_NAME, EVENT_MANIPULATION FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA={} AND EVENT_OBJECT_TABLE={}",
        quote(schema),
        quote(table)
    );
    let trigger = |row: &Row| {
        let text = |at: usize| row.required_text(at).map(str::to_owned).map_err(failed);
        Ok(Trigger { name: text(0)?, event: text(1)? })
    };
    rows(&sql)?.iter().map(trigger).collect()
}
