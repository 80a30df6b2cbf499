//! One row as text, for messages.

use binlog::RowsKind;
use engine::compact::Batch;

/// Values of more characters than this are cut.
const VALUE_CHARS_MAX: usize = 80;

/// Table, kind and key of a batch's first row: `delete from shop.orders where (id=7)`.
pub fn describe(batch: &Batch<'_>) -> String {
    let verb = match batch.kind {
        RowsKind::Write => "insert into",
        RowsKind::Update => "update of",
        RowsKind::Delete => "delete from",
    };
    format!("{verb} {}.{} key {}", batch.map.schema, batch.map.table, key(batch))
}

/// The identifying columns where they are known, else the first few.
fn key(batch: &Batch<'_>) -> String {
    let Some(row) = batch.rows.first() else { return "(none)".to_owned() };
    let (image, present) = match batch.kind {
        RowsKind::Write => (row.after, batch.after_columns),
        RowsKind::Update | RowsKind::Delete => (row.before, batch.before_columns),
    };
    let table = batch.table.filter(|table| table.columns.len() == batch.map.columns.len());
    let wanted: Option<Vec<usize>> =
        table.and_then(|table| table.unique_keys.first()).map(|key| key.parts.iter().map(|part| part.column).collect());
    let mut values = Vec::new();
    for column in binlog::table_map::columns(batch.map, present, image) {
        let Ok(column) = column else { break };
        let is_wanted = wanted.as_ref().map_or(values.len() < 4, |wanted| wanted.contains(&column.column));
        if !is_wanted {
            continue;
        }
        let definition = table.and_then(|table| table.columns.get(column.column));
        let name = definition.map_or_else(|| format!("@{}", column.column + 1), |column| column.name.clone());
        let unsigned = definition.is_some_and(|column| column.unsigned);
        let text = match (column.value, batch.map.columns.get(column.column)) {
            (Some(raw), Some(definition)) => binlog::value::display(definition, raw, unsigned),
            _ => "NULL".to_owned(),
        };
        let text: String = text.chars().take(VALUE_CHARS_MAX).collect();
        values.push(format!("{name}={text}"));
    }
    format!("({})", values.join(", "))
}
