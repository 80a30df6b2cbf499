//! The name of the schema in which the target keeps Heddle's tables. A process has one.

use std::fmt;
use std::sync::OnceLock;

use engine::intake::BOOKKEEPING_SCHEMA;

/// The schema that Heddle's tables are in.
pub const SCHEMA: BookkeepingSchema = BookkeepingSchema;

/// What was asked for with `--bookkeeping-schema`; a process has one.
static NAME: OnceLock<Box<str>> = OnceLock::new();
/// Of a schema's name on every server.
const NAME_CHARACTERS_MAX: usize = 64;

/// In a statement, the schema's name: no character of it has to be quoted.
#[derive(Clone, Copy, Debug)]
pub struct BookkeepingSchema;

impl BookkeepingSchema {
    pub fn name(self) -> &'static str {
        NAME.get().map_or(BOOKKEEPING_SCHEMA, |name| name)
    }

    /// Before the first statement; only the first name counts.
    ///
    /// # Errors
    /// As [`BookkeepingSchema::check`].
    pub fn set(name: &str) -> Result<(), &'static str> {
        Self::check(name)?;
        let _ = NAME.set(name.into());
        Ok(())
    }

    /// # Errors
    /// What is wrong with the name.
    pub fn check(name: &str) -> Result<(), &'static str> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins_with_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins_with_letter || name.len() > NAME_CHARACTERS_MAX || !name.chars().all(is_plain) {
            return Err("up to 64 lower case letters, digits and _, the first a letter");
        }
        if SERVER_SCHEMAS.contains(&name) {
            return Err("this schema is the server's own");
        }
        Ok(())
    }
}

impl fmt::Display for BookkeepingSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const SERVER_SCHEMAS: [&str; 4] = ["mysql", "sys", "information_schema", "performance_schema"];
