//! Names with wildcards: of a schema, or of a table in a schema. Never says what becomes of what it matches.
//!
//! `*` stands for any characters, none included, and `?` for one. A backslash takes the meaning from what follows it; a dot separates schema and table, except in
//! backticks. Case does not count: a source with `lower_case_table_names=1` writes statements as their clients do, and rows in lower case.

use std::fmt;
use std::str::FromStr;

use crate::wildcard::{self, Piece};

/// A name, or many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard(Vec<Piece>);

impl Wildcard {
    /// Of each name.
    pub const fn any() -> Self {
        Self(Vec::new())
    }

    /// Of this name alone.
    pub fn exactly(name: &str) -> Self {
        let pieces: Vec<Piece> = folded(name).map(Piece::Character).collect();
        Self(pieces).or_nothing()
    }

    /// As the servers' `wild` options have it: `%` any characters, `_` one, and a backslash before what is meant as it is.
    pub fn of_like(text: &str) -> Self {
        Self::read(text, '%', '_').or_nothing()
    }

    fn of_shell(text: &str) -> Self {
        Self::read(text, '*', '?').or_nothing()
    }

    fn read(text: &str, any: char, one: char) -> Self {
        let mut pieces = Vec::new();
        for piece in wildcard::pieces(text, any, one) {
            match piece {
                Piece::Character(character) => pieces.extend(folded_char(character).map(Piece::Character)),
                Piece::One | Piece::Any => pieces.push(piece),
            }
        }
        Self(pieces)
    }

    /// An empty list would stand for each name.
    fn or_nothing(self) -> Self {
        if self.0.is_empty() { Self(vec![Piece::Character('\0')]) } else { self }
    }

    pub fn is_any(&self) -> bool {
        self.0.iter().all(|piece| *piece == Piece::Any)
    }

    /// More than one name may match.
    pub fn is_many(&self) -> bool {
        self.0.is_empty() || self.0.iter().any(|piece| !matches!(piece, Piece::Character(_)))
    }

    pub fn matches(&self, name: &str) -> bool {
        if self.is_any() {
            return true;
        }
        wildcard::matches(&self.0, &folded(name).collect::<Vec<_>>())
    }

    /// The one name that matches.
    pub fn name(&self) -> Option<String> {
        if self.is_many() {
            return None;
        }
        let characters = self.0.iter().map(|piece| match piece {
            Piece::Character(character) => Some(*character),
            Piece::One | Piece::Any => None,
        });
        characters.collect()
    }
}

/// As names are compared.
pub fn folded(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().flat_map(folded_char)
}

fn folded_char(character: char) -> impl Iterator<Item = char> {
    character.to_lowercase()
}

/// Whether a server may take both names for one.
pub fn same_name(one: &str, other: &str) -> bool {
    one == other || folded(one).eq(folded(other))
}

/// `schema` or `schema.table`, both with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub schema: Wildcard,
    pub table: Wildcard,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("{0:?} is not a pattern: write schema or schema.table, with * for any characters and ? for one")]
    Form(String),
    #[error("{0:?} has a dot too many: a name with a dot stands in backticks, `a.b`.orders")]
    Dots(String),
}

impl Pattern {
    pub fn matches(&self, schema: &str, table: &str) -> bool {
        self.schema.matches(schema) && self.table.matches(table)
    }

    /// Of whole schemas.
    pub fn is_of_schemas(&self) -> bool {
        self.table.is_any()
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let parts = parts(text)?;
        let (schema, table) = match &*parts {
            [schema] => (schema, None),
            [schema, table] => (schema, Some(table)),
            _ => return Err(PatternError::Dots(text.to_owned())),
        };
        Ok(Self {
            schema: Wildcard::of_shell(schema),
            table: table.map_or_else(Wildcard::any, |table| Wildcard::of_shell(table)),
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What stands between the dots, none of them empty. In backticks nothing is a wildcard.
pub fn parts(text: &str) -> Result<Vec<String>, PatternError> {
    let wrong = || PatternError::Form(text.to_owned());
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(character) = characters.next() {
        let Some(part) = parts.last_mut() else { return Err(wrong()) };
        match character {
            // Twice, it is a part of the name, as in a statement.
            '`' if is_quoted && characters.next_if_eq(&'`').is_some() => part.extend(['\\', '`']),
            '`' => is_quoted = !is_quoted,
            '*' | '?' | '\\' if is_quoted => part.extend(['\\', character]),
            '\\' => {
                part.push('\\');
                part.push(characters.next().ok_or_else(wrong)?);
            }
            '.' if !is_quoted => parts.push(String::new()),
            _ => part.push(character),
        }
    }
    if is_quoted || parts.iter().any(String::is_empty) { Err(wrong()) } else { Ok(parts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, names, others) in [
            ("shop", &["shop", "SHOP"][..], &["shops", "sho", ""][..]),
            ("shop*", &["shop", "shop_1", "Shops"], &["sho", "ashop"]),
            ("shop_?", &["shop_1", "shop_a"], &["shop_", "shop_12", "shop1a"]),
            ("*_log", &["a_log", "_log", "x_log_log"], &["log", "a_logs"]),
            ("a*b*c", &["abc", "axxbyyc", "abbcbc"], &["ab", "abcx"]),
            ("*", &["", "x"], &[]),
            (r"a\*", &["a*"], &["ab", "a"]),
            ("`a*`", &["a*"], &["ab"]),
            ("`a``b`", &["a`b"], &["ab", "a``b"]),
            ("ÄPFEL", &["äpfel"], &["apfel"]),
        ] {
            let pattern: Pattern = pattern.parse().unwrap();
            for name in names {
                assert!(pattern.schema.matches(name), "{pattern} {name}");
            }
            for name in others {
                assert!(!pattern.schema.matches(name), "{pattern} {name}");
            }
        }
        let like = Wildcard::of_like(r"foo\_b%._");
        assert!(like.matches("foo_bar.x") && !like.matches("foo1bar.x") && !like.matches("foo_bar.xy"));
        assert!(!Wildcard::exactly("").matches("x"));
    }

    #[test]
    fn schemas_and_tables() {
        let matches = |pattern: &str, schema, table| pattern.parse::<Pattern>().unwrap().matches(schema, table);
        assert!(matches("shop", "shop", "orders") && matches("shop.*", "shop", "orders"));
        assert!(matches("shop*.orders", "shop_2", "orders") && !matches("shop*.orders", "shop_2", "items"));
        assert!(matches("`a.b`.c", "a.b", "c") && !matches("`a.b`.c", "a", "b"));
        for wrong in ["", ".", "a.", ".a", "a.b.c", "`a"] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
    }
}
