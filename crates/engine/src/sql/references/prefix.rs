//! What may stand before a statement's verb. Never looks at the statement.

use super::super::cursor::Cursor;
use super::super::lexer::Kind;

/// MariaDB's `SET STATEMENT … FOR`.
pub(super) fn skip_set_statement(cursor: &mut Cursor<'_>) -> Option<()> {
    if !cursor.eat_all(&["SET", "STATEMENT"]) {
        return Some(());
    }
    loop {
        if cursor.eat("FOR") {
            return Some(());
        }
        if cursor.is_punct(b'(') {
            cursor.skip_parens()?;
        } else if matches!(cursor.take().kind, Kind::End | Kind::Broken) {
            return None;
        }
    }
}
