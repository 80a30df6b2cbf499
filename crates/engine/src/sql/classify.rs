//! The verb of a statement, and transaction control.

use super::cursor::Cursor;
use super::lexer::Kind;
use super::statement::{Class, DdlKind, DmlKind, Statement};
use super::{SqlMode, ddl, dml, xa};

/// Says what a statement is. `default_schema` is that of the session (the query event's); `mode` likewise.
///
/// The statement's text is taken for UTF-8 or a superset of ASCII, as `mode` says. Where its meaning could depend on another
/// character set the result is [`Class::Unknown`], and for names of a definition that can not be read; changes of rows then only lack the table.
pub fn classify(sql: &[u8], default_schema: &str, mode: SqlMode) -> Statement {
    let mut cursor = Cursor::new(sql, mode);
    let found = statement(&mut cursor, default_schema).unwrap_or_else(|| Statement::of(Class::Unknown));
    Statement { is_ambiguous: mode.charset.is_ambiguous(sql), ..found }
}

fn statement(cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    // A SELECT may stand in parentheses.
    while cursor.eat_punct(b'(') {}
    let verb = cursor.take();
    if verb.kind != Kind::Word {
        return None;
    }
    let verb = std::str::from_utf8(verb.text).ok()?.to_ascii_uppercase();
    let done = |cursor: &Cursor<'_>, class| cursor.at_end().then(|| Statement::of(class));
    match verb.as_str() {
        "BEGIN" => {
            cursor.eat("WORK");
            done(cursor, Class::Begin)
        }
        "START" => cursor.eat("TRANSACTION").then(|| Statement::of(Class::Begin)),
        "COMMIT" => {
            cursor.eat("WORK");
            done(cursor, Class::Commit)
        }
        "ROLLBACK" => {
            cursor.eat("WORK");
            if !cursor.eat("TO") {
                return done(cursor, Class::Rollback);
            }
            // `ROLLBACK TO SAVEPOINT x` and `ROLLBACK TO x`, also with x called SAVEPOINT.
            let mut named = *cursor;
            if named.eat("SAVEPOINT") && named.ident().is_some() {
                return done(&named, Class::RollbackTo);
            }
            cursor.ident()?;
            done(cursor, Class::RollbackTo)
        }
        "SAVEPOINT" => {
            cursor.ident()?;
            done(cursor, Class::Savepoint)
        }
        "RELEASE" => {
            cursor.eat("SAVEPOINT").then_some(())?;
            cursor.ident()?;
            done(cursor, Class::Release)
        }
        "XA" => xa::classify(cursor),
        "SET" => set(cursor, schema),
        "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "LOAD" | "WITH" | "CALL" | "DO" | "SELECT" => {
            dml::classify(&verb, cursor, schema)
        }
        "ANALYZE" if explains(*cursor) => Some(Statement::of(Class::Dml { kind: DmlKind::Other })),
        _ => ddl::classify(&verb, cursor, schema),
    }
}

/// MariaDB's `ANALYZE [FORMAT=JSON] statement` changes what the statement changes.
fn explains(mut cursor: Cursor<'_>) -> bool {
    if cursor.eat("FORMAT") {
        cursor.eat_punct(b'=');
        cursor.take();
    }
    cursor.eat_any(&["INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "SELECT"]).is_some()
}

fn set(cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    if cursor.is("STATEMENT") {
        return set_statement(cursor, schema);
    }
    let account = cursor.is("PASSWORD") || { *cursor }.eat_all(&["DEFAULT", "ROLE"]);
    Some(Statement::of(if account { Class::Ddl { kind: DdlKind::Account } } else { Class::SetStatement }))
}

/// MariaDB's `SET STATEMENT variable=value, … FOR statement` is that statement.
fn set_statement(cursor: &mut Cursor<'_>, schema: &str) -> Option<Statement> {
    let mut depth = 0i32;
    loop {
        if depth == 0 && cursor.eat("FOR") {
            return statement(cursor, schema);
        }
        match cursor.take().kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') => depth -= 1,
            Kind::End | Kind::Broken => return None,
            _ => {}
        }
    }
}
