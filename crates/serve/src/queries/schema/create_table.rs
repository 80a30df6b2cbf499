//! The text of `SHOW CREATE TABLE`.

use engine::sql::create_table::{KeyPartDefinition, TableDefinition};

use super::column::{is_nullable, keys, type_of};
use crate::inventory::SourceFacts;

/// The statement, as far as the definition is known: default values and comments are not.
pub(super) fn statement(table: &TableDefinition, source: &SourceFacts) -> String {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let mut parts: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let mut text = format!("  {} {}", quoted(&column.name), type_of(column, source));
            let stated = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
            if let Some(charset) = stated(&column.charset) {
                text.push_str(&format!(" CHARACTER SET {charset}"));
            }
            if let Some(collation) = stated(&column.collation) {
                text.push_str(&format!(" COLLATE {collation}"));
            }
            text.push_str(if is_nullable(table, column) { " DEFAULT NULL" } else { " NOT NULL" });
            if column.auto_increment {
                text.push_str(" AUTO_INCREMENT");
            }
            text
        })
        .collect();
    for (name, key, unique) in keys(table) {
        let columns: Option<Vec<String>> = key
            .parts
            .iter()
            .map(|part| match part {
                KeyPartDefinition::Column { name, prefix: None } => Some(quoted(name)),
                KeyPartDefinition::Column { name, prefix: Some(prefix) } => Some(format!("{}({prefix})", quoted(name))),
                KeyPartDefinition::Expression => None,
            })
            .collect();
        let Some(columns) = columns else { continue };
        let kind = match (name.as_str(), unique) {
            ("PRIMARY", true) => "PRIMARY KEY".to_owned(),
            (_, true) => format!("UNIQUE KEY {}", quoted(&name)),
            (_, false) => format!("KEY {}", quoted(&name)),
        };
        parts.push(format!("  {kind} ({})", columns.join(",")));
    }
    let mut text = format!("CREATE TABLE {} (\n{}\n)", quoted(&table.name.name), parts.join(",\n"));
    for (what, value) in [("ENGINE", &table.engine), ("DEFAULT CHARSET", &table.charset), ("COLLATE", &table.collation)]
    {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            text.push_str(&format!(" {what}={value}"));
        }
    }
    text
}
