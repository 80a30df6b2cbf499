//! A collation's table, and the folded form of a string.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A collation of Unicode strings that can be folded character by character.
pub struct UnicodeFold {
    pub(super) name: &'static str,
    /// Characters of which anything is known, as sorted ranges with both ends included.
    pub(super) covered: Vec<(char, char)>,
    /// Covered characters that do not stand for themselves, sorted.
    pub(super) folds: Vec<(char, Box<str>)>,
    /// What all characters beyond the basic plane are equal to, for collations that know none of them.
    pub(super) beyond_bmp: Option<char>,
}

impl UnicodeFold {
    /// Appends the folded form of `text`; false at a character of which nothing is known.
    pub(in crate::keys) fn append(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let mut rest = text;
        loop {
            // Of printable ASCII only the small letters are folded (a test holds the tables to that).
            let ascii = rest.iter().position(|byte| !(0x20..0x7f).contains(byte)).unwrap_or(rest.len());
            let (plain, other) = rest.split_at_checked(ascii).unwrap_or((rest, &[]));
            out.extend(plain.iter().map(u8::to_ascii_uppercase));
            let end = other.iter().position(|byte| (0x20..0x7f).contains(byte)).unwrap_or(other.len());
            let (other, next) = other.split_at_checked(end).unwrap_or((other, &[]));
            let Ok(other) = std::str::from_utf8(other) else { return false };
            if !other.chars().all(|character| self.append_char(character, out)) {
                return false;
            }
            if next.is_empty() {
                return true;
            }
            rest = next;
        }
    }

    pub(super) fn append_char(&self, character: char, out: &mut Vec<u8>) -> bool {
        let mut encoded = [0; 4];
        if character > '\u{ffff}'
            && let Some(common) = self.beyond_bmp
        {
            out.extend_from_slice(common.encode_utf8(&mut encoded).as_bytes());
            return true;
        }
        let range = self.covered.partition_point(|range| range.1 < character);
        if self.covered.get(range).is_none_or(|range| range.0 > character) {
            return false;
        }
        match self.folds.binary_search_by_key(&character, |fold| fold.0).ok().and_then(|at| self.folds.get(at)) {
            Some((_, folded)) => out.extend_from_slice(folded.as_bytes()),
            None => out.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes()),
        }
        true
    }
}

/// A collation of a single-byte character set that compares byte by byte.
pub struct SingleByteFold {
    pub(super) name: &'static str,
    pub(super) weights: [u8; 256],
}

impl SingleByteFold {
    pub(in crate::keys) fn weight(&self, byte: u8) -> u8 {
        self.weights.get(usize::from(byte)).copied().unwrap_or(byte)
    }

    pub(in crate::keys) fn is_of(&self, collation: &str) -> bool {
        self.name == collation
    }
}

/// Tables are what their names say: comparing and printing them is by name.
macro_rules! by_name {
    ($table:ty) => {
        impl PartialEq for $table {
            fn eq(&self, other: &Self) -> bool {
                self.name == other.name
            }
        }

        impl Eq for $table {}

        impl Hash for $table {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.name.hash(state);
            }
        }

        impl fmt::Debug for $table {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name)
            }
        }
    };
}

by_name!(UnicodeFold);
by_name!(SingleByteFold);
