//! Keys, foreign keys, checks and periods, as CREATE TABLE and ALTER TABLE write them, and the names that servers give to those without one.

use super::definition::{
    ForeignKeyDefinition, History, KeyDefinition, KeyPartDefinition, ReferenceAction, TableDefinition,
    generated_prefix, same,
};
use crate::sql::ObjectName;
use crate::sql::cursor::{Cursor, text};
use crate::sql::lexer::Kind;

/// What stands in a list of columns and keys beside the columns, or behind ADD.
#[derive(Clone, Debug)]
pub(in crate::sql) enum Element {
    Primary(KeyDefinition),
    Unique(KeyDefinition),
    Other(KeyDefinition),
    Foreign(ForeignKeyDefinition),
    /// Nothing that an order of rows depends on: a check, the period of an application.
    Nothing,
    /// Of MariaDB's system versioning: its columns are among the others, or are hidden.
    History(History),
}

/// An element, and whether IF NOT EXISTS stood with it.
#[derive(Clone, Debug)]
pub(in crate::sql) struct GuardedElement {
    pub element: Element,
    pub if_not_exists: bool,
}

impl From<Element> for GuardedElement {
    fn from(element: Element) -> Self {
        Self { element, if_not_exists: false }
    }
}

/// Reads a key, foreign key, check or period; `Some(None)` when a column stands here.
pub(in crate::sql) fn constraint(cursor: &mut Cursor<'_>, schema: &str) -> Option<Option<GuardedElement>> {
    let mut name = None;
    if cursor.eat("CONSTRAINT") {
        cursor.eat_all(&["IF", "NOT", "EXISTS"]);
        let named = !["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"].iter().any(|word| cursor.is(word));
        if named {
            name = Some(cursor.ident()?);
        }
    }
    if cursor.eat_all(&["PRIMARY", "KEY"]) {
        let (key, if_not_exists) = key(cursor, None)?;
        let key = KeyDefinition { name: Some("PRIMARY".to_owned()), ..key };
        return Some(Some(GuardedElement { element: Element::Primary(key), if_not_exists }));
    }
    if cursor.eat("UNIQUE") {
        cursor.eat_any(&["KEY", "INDEX"]);
        let (key, if_not_exists) = key(cursor, name)?;
        return Some(Some(GuardedElement { element: Element::Unique(key), if_not_exists }));
    }
    if cursor.eat_all(&["FOREIGN", "KEY"]) {
        return foreign_key(cursor, schema, name).map(Some);
    }
    if cursor.is("CHECK") && followed_by_paren(cursor) {
        cursor.take();
        cursor.skip_parens()?;
        enforced(cursor);
        return Some(Some(Element::Nothing.into()));
    }
    if name.is_some() {
        return None;
    }
    // A column may be called like this one.
    let vector = ["KEY", "INDEX"].iter().any(|word| { *cursor }.eat_all(&["VECTOR", word]));
    let special = cursor.eat_any(&["FULLTEXT", "SPATIAL"]).is_some() || vector && cursor.eat("VECTOR");
    if cursor.eat_any(&["KEY", "INDEX"]).is_some() || special {
        let (key, if_not_exists) = key(cursor, None)?;
        return Some(Some(GuardedElement { element: Element::Other(key), if_not_exists }));
    }
    let mut ahead = *cursor;
    if ahead.eat_all(&["PERIOD", "FOR"]) {
        let name = ahead.ident()?;
        ahead.skip_parens()?;
        *cursor = ahead;
        let system = same(&name, "SYSTEM_TIME");
        let element = if system { Element::History(History::Columns) } else { Element::Nothing };
        return Some(Some(element.into()));
    }
    Some(None)
}

fn foreign_key(cursor: &mut Cursor<'_>, schema: &str, mut name: Option<String>) -> Option<GuardedElement> {
    let if_not_exists = cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    if !cursor.is_punct(b'(') {
        let index = cursor.ident()?;
        name.get_or_insert(index);
    }
    let columns = plain_columns(cursor)?;
    cursor.eat("REFERENCES").then_some(())?;
    let (parent, parent_columns, on_delete, on_update) = references(cursor, schema)?;
    if parent_columns.len() != columns.len() {
        return None;
    }
    let key = ForeignKeyDefinition { name, columns, parent, parent_columns, on_delete, on_update };
    Some(GuardedElement { element: Element::Foreign(key), if_not_exists })
}

fn followed_by_paren(cursor: &Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    ahead.take();
    ahead.is_punct(b'(')
}

/// `[IF NOT EXISTS] [name] [USING type] (parts) [options]`, and whether it was guarded. `name`: that of the constraint.
fn key(cursor: &mut Cursor<'_>, mut name: Option<String>) -> Option<(KeyDefinition, bool)> {
    let if_not_exists = cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    if !cursor.is_punct(b'(') && !cursor.is("USING") {
        name = Some(cursor.ident()?);
    }
    if cursor.eat("USING") {
        cursor.ident()?;
    }
    let parts = parts(cursor)?;
    key_options(cursor)?;
    Some((KeyDefinition { name, parts }, if_not_exists))
}

/// The parts and options of `CREATE INDEX name ON table (parts) options`.
pub(in crate::sql) fn index(cursor: &mut Cursor<'_>, name: String) -> Option<KeyDefinition> {
    let parts = parts(cursor)?;
    key_options(cursor)?;
    Some(KeyDefinition { name: Some(name), parts })
}

fn parts(cursor: &mut Cursor<'_>) -> Option<Vec<KeyPartDefinition>> {
    cursor.eat_punct(b'(').then_some(())?;
    let mut parts = Vec::new();
    loop {
        parts.extend(key_part(cursor)?);
        if cursor.eat_punct(b')') {
            return (!parts.is_empty()).then_some(parts);
        }
        cursor.eat_punct(b',').then_some(())?;
    }
}

fn key_options(cursor: &mut Cursor<'_>) -> Option<()> {
    loop {
        if cursor.eat_any(&["VISIBLE", "INVISIBLE", "IGNORED"]).is_some() || cursor.eat_all(&["NOT", "IGNORED"]) {
        } else if cursor.eat_any(&["USING", "TYPE"]).is_some() || cursor.eat_all(&["WITH", "PARSER"]) {
            cursor.ident()?;
        } else if cursor
            .eat_any(&["KEY_BLOCK_SIZE", "COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"])
            .is_some()
            || cursor.eat_any(&["DISTANCE", "M", "CLUSTERING"]).is_some()
        {
            cursor.eat_punct(b'=');
            cursor.take();
        } else {
            return Some(());
        }
    }
}

/// `Some(None)`: a period WITHOUT OVERLAPS.
fn key_part(cursor: &mut Cursor<'_>) -> Option<Option<KeyPartDefinition>> {
    let part = if cursor.is_punct(b'(') {
        cursor.skip_parens()?;
        KeyPartDefinition::Expression
    } else {
        let name = cursor.ident()?;
        if cursor.eat_all(&["WITHOUT", "OVERLAPS"]) {
            return Some(None);
        }
        let mut prefix = None;
        if cursor.eat_punct(b'(') {
            let length = cursor.take();
            if length.kind != Kind::Number {
                return None;
            }
            prefix = Some(text(length.text)?.parse().ok()?);
            cursor.eat_punct(b')').then_some(())?;
        }
        KeyPartDefinition::Column { name, prefix }
    };
    cursor.eat_any(&["ASC", "DESC"]);
    Some(Some(part))
}

fn plain_columns(cursor: &mut Cursor<'_>) -> Option<Vec<String>> {
    cursor.eat_punct(b'(').then_some(())?;
    let mut names = Vec::new();
    loop {
        names.push(cursor.ident()?);
        if cursor.eat_punct(b')') {
            return Some(names);
        }
        cursor.eat_punct(b',').then_some(())?;
    }
}

type References = (ObjectName, Vec<String>, ReferenceAction, ReferenceAction);

/// What stands behind REFERENCES.
pub(super) fn references(cursor: &mut Cursor<'_>, schema: &str) -> Option<References> {
    let parent = cursor.object(schema)?;
    let columns = if cursor.is_punct(b'(') { plain_columns(cursor)? } else { Vec::new() };
    let (mut on_delete, mut on_update) = Default::default();
    loop {
        if cursor.eat("MATCH") {
            cursor.eat_any(&["FULL", "PARTIAL", "SIMPLE"])?;
        } else if cursor.eat_all(&["ON", "DELETE"]) {
            on_delete = action(cursor)?;
        } else if cursor.eat_all(&["ON", "UPDATE"]) {
            on_update = action(cursor)?;
        } else {
            return Some((parent, columns, on_delete, on_update));
        }
    }
}

fn action(cursor: &mut Cursor<'_>) -> Option<ReferenceAction> {
    if cursor.eat("CASCADE") {
        Some(ReferenceAction::Cascade)
    } else if cursor.eat_all(&["SET", "NULL"]) {
        Some(ReferenceAction::SetNull)
    } else if cursor.eat_all(&["SET", "DEFAULT"]) {
        Some(ReferenceAction::SetDefault)
    } else {
        (cursor.eat("RESTRICT") || cursor.eat_all(&["NO", "ACTION"])).then_some(ReferenceAction::Restrict)
    }
}

pub(super) fn enforced(cursor: &mut Cursor<'_>) {
    if !cursor.eat_all(&["NOT", "ENFORCED"]) {
        cursor.eat("ENFORCED");
    }
}

/// Adds what was read to a table, behind what it has; `None` when it has a primary key already.
pub(in crate::sql) fn add(table: &mut TableDefinition, element: Element) -> Option<()> {
    match element {
        Element::Primary(key) => table.primary_key.replace(key).is_none().then_some(())?,
        Element::Unique(key) => {
            let key = named(table, key);
            table.unique_keys.push(key);
        }
        Element::Other(key) => {
            let key = named(table, key);
            table.other_keys.push(key);
        }
        Element::Foreign(mut key) => {
            key.name.get_or_insert_with(|| foreign_key_name(table));
            table.foreign_keys.push(key);
        }
        Element::History(History::Columns) => table.history = Some(History::Columns),
        Element::History(History::Hidden) => {
            table.history.get_or_insert(History::Hidden);
        }
        Element::Nothing => {}
    }
    Some(())
}

/// As the servers name an index: after its first column, with a number if that is taken (`make_unique_key_name`).
fn named(table: &TableDefinition, mut key: KeyDefinition) -> KeyDefinition {
    const NUMBERS_MAX: u32 = 100;
    let base = match key.parts.first() {
        Some(KeyPartDefinition::Column { name, .. }) => name.as_str(),
        _ => "functional_index",
    };
    let taken = |name: &str| same(name, "PRIMARY") || table.key_names().any(|other| same(other, name));
    if key.name.is_none() {
        let numbered = |number: u32| if number < 2 { base.to_owned() } else { format!("{base}_{number}") };
        key.name = (1..NUMBERS_MAX).map(numbered).find(|name| !taken(name));
    }
    key
}

/// InnoDB's names of foreign keys without one: `TABLE_ibfk_1`, …
fn foreign_key_name(table: &TableDefinition) -> String {
    let prefix = generated_prefix(&table.name.name);
    let number = |name: &str| name.strip_prefix(&prefix)?.parse::<u32>().ok();
    let last = table.foreign_keys.iter().filter_map(|key| number(key.name.as_deref()?)).max();
    format!("{prefix}{}", last.unwrap_or(0).saturating_add(1))
}
