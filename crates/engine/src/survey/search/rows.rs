//! Rows events: which rows meet the conditions, and how they are shown.

use std::ops::Range;
use std::sync::Arc;

use binlog::table_map::columns;
use binlog::{Bitmap, Event, RowsEvent, RowsKind, TableMap, value};

use super::{Change, ChangeKind, Content, Failed, Field, Search};
use crate::intake::{Lookup, MappedTable};
use crate::schema::{Catalogue, Table};
use crate::survey::cut::PAYLOAD_BYTES_MAX;
use crate::survey::{LogCatalogue, Piece};

/// Rows of a change that are shown.
const ROWS_MAX: usize = 10;
/// Longest value that is shown, in characters.
const VALUE_CHARS_MAX: usize = 80;
/// Columns that are shown of a row whose key is not known.
const COLUMNS_MAX: usize = 3;

/// A column: its place in the table, and its name.
struct ColumnPlace {
    at: usize,
    name: String,
    unsigned: bool,
}

impl Search {
    pub(super) fn rows(&mut self, event: &Event, piece: &Piece) -> Result<(), Failed> {
        if self.open.is_none() {
            return Ok(());
        }
        let format = &piece.format;
        let (map, beside) = match self.tables.of_rows(event, format).map_err(|corrupt| corrupt.to_string())? {
            Lookup::Table(MappedTable { map, beside, .. }) => (Arc::clone(map), beside),
            Lookup::LeftOut | Lookup::Foreign(_) | Lookup::Refused(_) | Lookup::Dummy(_) => return Ok(()),
            Lookup::Missing(id) => return Err(format!("rows for table id {id}, whose table map is missing")),
        };
        let kind = RowsKind::of(event.kind());
        if !kind.is_some_and(|kind| self.pattern.is_of_rows(kind, &map.schema, &map.table)) {
            return Ok(());
        }
        if beside.is_none() {
            let mut catalogue = LogCatalogue::new(Arc::clone(&piece.definitions));
            *beside = Some(catalogue.table(&map).map_err(|error| error.to_string())?);
        }
        let Some(known) = beside.clone() else { return Ok(()) };
        let rows = RowsEvent::decode_within(event, format, PAYLOAD_BYTES_MAX).map_err(|corrupt| corrupt.to_string())?;
        let Some(conditions) = self.condition_places(&map, &known) else { return Ok(()) };
        let shown = shown_places(&map, &known, &conditions);
        let (mut count, mut first) = (0u64, Vec::new());
        for images in rows.images(&map) {
            let images = images.map_err(|corrupt| format!("rows of {}.{}: {corrupt}", map.schema, map.table))?;
            let image = |range: &Option<Range<usize>>| range.clone().and_then(|range| rows.rows.get(range));
            let sides = [(image(&images.before), &rows.before_columns), (image(&images.after), &rows.after_columns)];
            let is_met = conditions.is_empty()
                || sides
                    .iter()
                    .any(|(image, present)| image.is_some_and(|image| self.meets(&map, present, image, &conditions)));
            if !is_met {
                continue;
            }
            count += 1;
            if first.len() < ROWS_MAX {
                let [before, after] = sides.map(|(image, present)| texts(&map, present, image, &shown));
                let fields = shown.iter().zip(before).zip(after);
                let fields = fields.map(|((place, before), after)| Field { column: place.name.clone(), before, after });
                first.push(fields.collect());
            }
        }
        if count > 0 {
            self.rows_change(ChangeKind::of_rows(rows.kind), format!("{}.{}", map.schema, map.table), count, first);
        }
        Ok(())
    }

    /// The rows of a statement come in several events.
    fn rows_change(&mut self, kind: ChangeKind, table: String, rows: u64, mut more: Vec<Vec<Field>>) {
        let last = self.open.as_mut().and_then(|open| open.hit.changes.last_mut());
        if let Some(Change { kind: last_kind, table: last_table, content: Content::Rows { count, first } }) = last
            && (*last_kind, &*last_table) == (kind, &table)
        {
            *count += rows;
            more.truncate(ROWS_MAX.saturating_sub(first.len()));
            first.append(&mut more);
            return;
        }
        self.change(Change { kind, table, content: Content::Rows { count: rows, first: more } });
    }

    /// Where the columns of the conditions are; `None`: one is not known, so no row is judged.
    fn condition_places(&mut self, map: &TableMap, table: &Table) -> Option<Vec<ColumnPlace>> {
        let mut places = Vec::new();
        for condition in self.pattern.conditions() {
            let by_number = condition.column.strip_prefix('@').and_then(|number| number.parse::<usize>().ok());
            let by_name = |name: &str| name.to_lowercase() == condition.column.to_lowercase();
            let at = match by_number {
                Some(number) => number.checked_sub(1).filter(|at| *at < map.columns.len()),
                None => (0..map.columns.len()).find(|at| name_of(map, table, *at).as_deref().is_some_and(by_name)),
            };
            let Some(at) = at else {
                if (0..map.columns.len()).any(|at| name_of(map, table, at).is_none()) && by_number.is_none() {
                    self.nameless.insert(format!("{}.{}", map.schema, map.table));
                }
                return None;
            };
            self.known_columns.insert(condition.column.clone());
            places.push(place(map, table, at));
        }
        Some(places)
    }

    fn meets(&self, map: &TableMap, present: &Bitmap, image: &[u8], places: &[ColumnPlace]) -> bool {
        let mut met = vec![false; places.len()];
        for found in columns(map, present, image) {
            let Ok(found) = found else { return false };
            let Some(column) = map.columns.get(found.column) else { continue };
            for ((place, condition), met) in places.iter().zip(self.pattern.conditions()).zip(&mut met) {
                if place.at == found.column {
                    let text = found.value.map(|raw| value::display(column, raw, place.unsigned));
                    *met = condition.is_met(text.as_deref().zip(found.value));
                }
            }
        }
        met.iter().all(|met| *met)
    }
}

/// The definition's name, or the table map's.
fn name_of(map: &TableMap, table: &Table, at: usize) -> Option<String> {
    let defined = table.columns.get(at).map(|column| column.name.clone()).filter(|name| !name.starts_with('@'));
    defined.or_else(|| map.columns.get(at).and_then(|column| column.name.clone()))
}

fn place(map: &TableMap, table: &Table, at: usize) -> ColumnPlace {
    let name = name_of(map, table, at).unwrap_or_else(|| format!("@{}", at + 1));
    ColumnPlace { at, name, unsigned: table.columns.get(at).is_some_and(|column| column.unsigned) }
}

/// The key's columns, or the first ones where it is not known, and those of the conditions.
fn shown_places(map: &TableMap, table: &Table, conditions: &[ColumnPlace]) -> Vec<ColumnPlace> {
    let mut places: Vec<usize> = match table.unique_keys.first() {
        Some(key) => key.parts.iter().map(|part| part.column).collect(),
        None => (0..map.columns.len().min(COLUMNS_MAX)).collect(),
    };
    places.extend(conditions.iter().map(|place| place.at));
    let mut once = Vec::new();
    places.retain(|at| {
        let is_new = !once.contains(at);
        once.push(*at);
        is_new
    });
    places.into_iter().map(|at| place(map, table, at)).collect()
}

fn texts(map: &TableMap, present: &Bitmap, image: Option<&[u8]>, places: &[ColumnPlace]) -> Vec<Option<String>> {
    let mut texts = vec![None; places.len()];
    let Some(image) = image else { return texts };
    for found in columns(map, present, image) {
        let Ok(found) = found else { break };
        let Some(column) = map.columns.get(found.column) else { continue };
        for (place, text) in places.iter().zip(&mut texts).filter(|(place, _)| place.at == found.column) {
            *text = Some(
                found.value.map_or_else(|| "NULL".to_owned(), |raw| short(value::display(column, raw, place.unsigned))),
            );
        }
    }
    texts
}

fn short(text: String) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
