//! A name in a statement's text, and where it stands. Never says what it is the name of.

use std::ops::Range;

use super::cursor::Cursor;
use super::lexer::Kind;
use super::names::ObjectName;

/// `name` or `schema.name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedObject {
    /// Its schema is the one written, else the session's.
    pub object: ObjectName,
    /// The token of the schema, if one is written.
    pub schema_at: Option<Range<usize>>,
    pub name_at: Range<usize>,
}

impl NamedObject {
    /// From the first of its tokens to the last.
    pub fn span(&self) -> Range<usize> {
        self.schema_at.as_ref().map_or(self.name_at.start, |at| at.start)..self.name_at.end
    }
}

impl Cursor<'_> {
    /// `name` or `schema.name`, as [`Cursor::object`] reads it.
    pub fn named(&mut self, default_schema: &str) -> Option<NamedObject> {
        let start = self.peek().start;
        let mut ahead = *self;
        ahead.take();
        let first_at = start..ahead.end();
        if !ahead.is_punct(b'.') {
            let object = self.object(default_schema)?;
            return Some(NamedObject { object, schema_at: None, name_at: first_at });
        }
        ahead.take();
        let name_start = ahead.peek().start;
        let object = self.object(default_schema)?;
        Some(NamedObject { object, schema_at: Some(first_at), name_at: name_start..self.end() })
    }

    /// The next token is a name.
    pub fn is_name(&self) -> bool {
        matches!(self.peek().kind, Kind::Word | Kind::Quoted(_))
    }
}
