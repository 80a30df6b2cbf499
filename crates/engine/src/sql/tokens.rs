//! The tokens of a text one by one, outside of quotes and comments, for who looks for calls of a function. Never says what a statement is.

use super::SqlMode;
use super::cursor::Cursor;
use super::lexer::Kind;

/// A token, and what is behind it.
pub(super) struct TokenPosition<'a> {
    /// The token is the next one: copy it to look further ahead.
    pub cursor: Cursor<'a>,
    /// A dot or an at sign is before it: `d.user()`, `@user`.
    pub is_qualified: bool,
}

/// From the first to the last; a text that breaks off ends them.
pub(super) fn tokens(sql: &[u8], mode: SqlMode) -> impl Iterator<Item = TokenPosition<'_>> {
    let mut cursor = Cursor::new(sql, mode);
    let mut is_qualified = false;
    std::iter::from_fn(move || {
        if matches!(cursor.peek().kind, Kind::End | Kind::Broken) {
            return None;
        }
        let here = TokenPosition { cursor, is_qualified };
        is_qualified = cursor.is_punct(b'.') || cursor.is_punct(b'@');
        cursor.take();
        Some(here)
    })
}
