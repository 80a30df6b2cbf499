//! Which tables a statement names, where it names them, and which of them it changes. For who cuts statements and renames tables.
//!
//! Reads `INSERT`, `REPLACE`, `UPDATE`, `DELETE`, `LOAD DATA`, queries, and the bodies of stored programs. It knows where tables stand, and no other grammar: what it does
//! not surely understand is `None`. It never looks at what a name means on a server.

mod builtins;
mod definition;
mod prefix;
mod program;
mod reference;
mod scan;

use super::SqlMode;
use super::cursor::Cursor;

/// Of a statement that changes rows, from its verb.
pub fn of_change(sql: &[u8], schema: &str, mode: SqlMode) -> Option<References> {
    let mut cursor = Cursor::new(sql, mode);
    prefix::skip_set_statement(&mut cursor)?;
    scan::Scan::new(cursor, schema).change()
}

/// Of a query that ends with the text and begins at `start`, or later: what stands before its first word counts as a part of an expression.
pub fn of_query(sql: &[u8], start: usize, schema: &str, mode: SqlMode) -> Option<References> {
    scan::Scan::new(at(sql, start, mode)?, schema).query()
}

/// Of the body of a stored program: a statement, or `BEGIN … END`. Not of one that executes text that it makes, or that defines objects.
pub fn of_body(sql: &[u8], start: usize, schema: &str, mode: SqlMode) -> Option<References> {
    scan::Scan::new(at(sql, start, mode)?, schema).body()
}

/// The cursor at a token that begins there.
fn at(sql: &[u8], start: usize, mode: SqlMode) -> Option<Cursor<'_>> {
    let mut cursor = Cursor::new(sql, mode);
    while cursor.peek().start < start {
        if matches!(cursor.take().kind, super::lexer::Kind::End | super::lexer::Kind::Broken) {
            return None;
        }
    }
    Some(cursor)
}

/// Words and names of a text, outside of strings and comments.
pub fn words(sql: &[u8], mode: SqlMode) -> impl Iterator<Item = String> + '_ {
    let mut cursor = Cursor::new(sql, mode);
    std::iter::from_fn(move || {
        loop {
            if let Some(name) = cursor.ident() {
                return Some(name);
            }
            if matches!(cursor.take().kind, super::lexer::Kind::End | super::lexer::Kind::Broken) {
                return None;
            }
        }
    })
}

pub use definition::{Definition, DefinitionName, Role, Shape, database, definition};
pub use program::{ProgramHead, program_head};
pub use reference::{Qualifier, References, TableReference};

#[cfg(test)]
mod tests;
