//! What ALTER TABLE, CREATE INDEX and DROP INDEX make of a definition that is known.
//!
//! Knows the clauses of both servers. `None` when one is not surely understood, or can not be executed on that definition: it is another one then.
//! Executes nothing, and says nothing of rows: [`super::alterations`] does.

mod clause;
mod edit;

use super::SqlMode;
use super::create_table::{TableDefinition, index};
use super::cursor::Cursor;
use clause::Clause;
pub use edit::AlteredTable;

/// `known` after an ALTER TABLE of it; a new name of the table is not in it.
pub fn alter_table(known: &TableDefinition, sql: &[u8], default_schema: &str, mode: SqlMode) -> Option<AlteredTable> {
    let mut cursor = Cursor::new(sql, mode);
    let cursor = &mut cursor;
    cursor.eat("ALTER").then_some(())?;
    while cursor.eat_any(&["ONLINE", "OFFLINE", "IGNORE"]).is_some() {}
    cursor.eat("TABLE").then_some(())?;
    cursor.eat_all(&["IF", "EXISTS"]);
    cursor.object(default_schema)?;
    clause::wait(cursor)?;
    let mut clauses = Vec::new();
    while !cursor.at_end() {
        clauses.extend(clause::read(cursor, sql, &known.name.schema, default_schema, mode)?);
        cursor.eat_punct(b',');
    }
    edit::apply(known, clauses)
}

/// `known` after a CREATE INDEX on it.
pub fn create_index(known: &TableDefinition, sql: &[u8], mode: SqlMode) -> Option<AlteredTable> {
    let mut cursor = Cursor::new(sql, mode);
    let cursor = &mut cursor;
    cursor.eat("CREATE").then_some(())?;
    let replaces = cursor.eat_all(&["OR", "REPLACE"]);
    while cursor.eat_any(&["ONLINE", "OFFLINE"]).is_some() {}
    let kind = cursor.eat_any(&["UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"]);
    cursor.eat("INDEX").then_some(())?;
    let if_not_exists = cursor.eat_all(&["IF", "NOT", "EXISTS"]);
    let name = cursor.ident()?;
    if cursor.eat("USING") {
        cursor.ident()?;
    }
    cursor.eat("ON").then_some(())?;
    cursor.object("")?;
    clause::wait(cursor)?;
    let key = index(cursor, name.clone())?;
    how(cursor)?;
    let drop = replaces.then_some(Clause::DropKey { name, if_exists: true });
    edit::apply(known, drop.into_iter().chain([Clause::index(key, kind == Some("UNIQUE"), if_not_exists)]).collect())
}

/// `known` after a DROP INDEX on it.
pub fn drop_index(known: &TableDefinition, sql: &[u8], mode: SqlMode) -> Option<AlteredTable> {
    let mut cursor = Cursor::new(sql, mode);
    let cursor = &mut cursor;
    cursor.eat("DROP").then_some(())?;
    while cursor.eat_any(&["ONLINE", "OFFLINE"]).is_some() {}
    cursor.eat("INDEX").then_some(())?;
    let if_exists = cursor.eat_all(&["IF", "EXISTS"]);
    let name = cursor.ident()?;
    cursor.eat("ON").then_some(())?;
    cursor.object("")?;
    how(cursor)?;
    edit::apply(known, vec![Clause::DropKey { name, if_exists }])
}

/// How the server does it, up to the end.
fn how(cursor: &mut Cursor<'_>) -> Option<()> {
    while !cursor.at_end() {
        clause::wait(cursor)?;
        cursor.eat_punct(b',');
        if !cursor.at_end() && !clause::how(cursor)? {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
