//! The options of a table, and its partitioning.

use super::definition::{History, TableDefinition};
use crate::sql::cursor::{Cursor, text};
use crate::sql::lexer::Kind;

/// A name as an option's value, with or without quotes.
pub(super) fn option_word(cursor: &mut Cursor<'_>) -> Option<String> {
    cursor.eat_punct(b'=');
    if cursor.peek().kind == Kind::Text {
        let token = cursor.take();
        let inner = token.text.get(1..token.text.len().checked_sub(1)?)?;
        return text(inner).map(str::to_owned);
    }
    cursor.ident()
}

/// `CHARACTER SET [=] name` and its synonyms; `Some(None)` when something else stands here.
pub(in crate::sql) fn character_set(cursor: &mut Cursor<'_>) -> Option<Option<String>> {
    if cursor.eat_all(&["CHARACTER", "SET"]) || cursor.eat_all(&["CHAR", "SET"]) || cursor.eat("CHARSET") {
        return option_word(cursor).map(Some);
    }
    Some(None)
}

/// `COLLATE [=] name`.
pub(in crate::sql) fn collation(cursor: &mut Cursor<'_>) -> Option<Option<String>> {
    if cursor.eat("COLLATE") {
        return option_word(cursor).map(Some);
    }
    Some(None)
}

/// Reads one option of a table. `None` where a query may begin.
pub(in crate::sql) fn option(table: &mut TableDefinition, cursor: &mut Cursor<'_>) -> Option<()> {
    if cursor.eat_all(&["WITH", "SYSTEM", "VERSIONING"]) {
        table.history.get_or_insert(History::Hidden);
        return Some(());
    }
    cursor.eat("DEFAULT");
    if cursor.eat_any(&["ENGINE", "TYPE"]).is_some() {
        table.engine = Some(option_word(cursor)?);
    } else if let Some(charset) = character_set(cursor)? {
        table.charset = Some(charset);
    } else if let Some(collation) = collation(cursor)? {
        table.collation = Some(collation);
    } else if cursor.eat_all(&["START", "TRANSACTION"]) {
    } else if ["AS", "SELECT", "WITH", "LIKE", "IGNORE", "REPLACE", "VALUES", "TABLE"]
        .iter()
        .any(|word| cursor.is(word))
    {
        return None;
    } else {
        // `NAME [=] value`, such as ROW_FORMAT=DYNAMIC, UNION=(a,b), DATA DIRECTORY 'x'.
        cursor.ident()?;
        cursor.eat_any(&["DIRECTORY"]);
        cursor.eat_punct(b'=');
        match cursor.peek().kind {
            Kind::Punct(b'(') => cursor.skip_parens()?,
            Kind::Word | Kind::Quoted(_) | Kind::Text | Kind::Number => {
                cursor.take();
            }
            _ => return None,
        }
    }
    Some(())
}

/// Takes the partitioning, which changes neither columns nor keys. A query may follow: then `None`.
pub(in crate::sql) fn partitions(cursor: &mut Cursor<'_>) -> Option<()> {
    loop {
        if cursor.at_end() {
            return Some(());
        }
        if cursor.is_punct(b'(') {
            cursor.skip_parens()?;
            continue;
        }
        if ["AS", "SELECT", "WITH"].iter().any(|word| cursor.is(word)) {
            return None;
        }
        if matches!(cursor.take().kind, Kind::End | Kind::Broken | Kind::Punct(b';' | b')')) {
            return None;
        }
    }
}
