//! Names in a statement's text, replaced one by one: all other bytes stay, with their comments, quoting and character set. Never decides what a name becomes.

use std::ops::Range;

use super::super::refusal::Refusal;
use crate::sql::{NamedObject, SqlMode, default_schema_calls_at};

pub(super) struct Edits<'a> {
    sql: &'a [u8],
    mode: SqlMode,
    /// The session's schema on the target.
    pub schema: String,
    edits: Vec<(Range<usize>, String)>,
}

/// A statement's new text, and the places that were edited with their new lengths.
pub(super) type Edited = (Vec<u8>, Vec<(Range<usize>, usize)>);

impl<'a> Edits<'a> {
    pub fn new(sql: &'a [u8], mode: SqlMode, schema: String) -> Self {
        Self { sql, mode, schema, edits: Vec::new() }
    }

    /// A name becomes another. `implied`: the schema that the server takes for one that has none.
    pub fn name(&mut self, named: &NamedObject, (schema, name): (&str, &str), implied: &str) {
        let is_renamed = named.object.name != name;
        match &named.schema_at {
            Some(at) if named.object.schema != schema => self.token(at.clone(), schema),
            None if schema != implied => {
                let start = named.name_at.start;
                self.insert(start, format!("{}.", quoted(schema, b'`')));
            }
            Some(_) | None => {}
        }
        if is_renamed {
            self.token(named.name_at.clone(), name);
        }
    }

    /// A token becomes this name, in its own kind of quotes.
    pub fn token(&mut self, at: Range<usize>, name: &str) {
        let quote = match self.sql.get(at.start) {
            Some(b'"') if self.mode.ansi_quotes => b'"',
            _ => b'`',
        };
        self.edits.push((at, quoted(name, quote)));
    }

    pub fn insert(&mut self, at: usize, text: String) {
        self.edits.push((at..at, text));
    }

    pub fn remove(&mut self, at: Range<usize>) {
        self.edits.push((at, String::new()));
    }

    /// `DATABASE()` says what it said on the source.
    pub fn replace_default_schema(&mut self, schema: &str) {
        let value = if schema.is_empty() { "NULL".to_owned() } else { format!("_utf8 X'{}'", hex(schema.as_bytes())) };
        for place in default_schema_calls_at(self.sql, self.mode) {
            self.edits.push((place, value.clone()));
        }
    }

    /// `None`: the text stays.
    pub fn finish(self) -> Result<Option<Edited>, Refusal> {
        let Self { sql, mode, mut edits, .. } = self;
        if edits.is_empty() {
            return Ok(None);
        }
        // What is inserted comes in front of the token that stands there.
        edits.sort_by_key(|(place, _)| (place.start, place.end));
        let mut text = Vec::with_capacity(sql.len());
        let mut places = Vec::with_capacity(edits.len());
        let mut end = 0;
        for (place, instead) in edits {
            // In a part that is removed as a whole.
            if place.start < end {
                continue;
            }
            let bytes = mode.charset.encode(&instead, sql).ok_or_else(|| {
                Refusal::new(
                    format!("the new name {instead} cannot be written in the character set of a statement"),
                    "rename to a name of ASCII characters, or do on the target by hand what the statement does, and leave the transaction out (heddle channel skip)",
                )
            })?;
            text.extend_from_slice(sql.get(end..place.start).unwrap_or_default());
            text.extend_from_slice(&bytes);
            end = place.end;
            places.push((place, bytes.len()));
        }
        text.extend_from_slice(sql.get(end..).unwrap_or_default());
        Ok(Some((text, places)))
    }
}

fn quoted(name: &str, quote: u8) -> String {
    let quote = char::from(quote);
    format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
