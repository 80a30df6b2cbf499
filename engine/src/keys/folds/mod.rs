//! Tables of the characters that collations do not tell apart, all measured on the servers.
//!
//! The folded form of a string is good for equality only: it says nothing of order.

mod general_ci;
mod single_byte;
mod uca0900_ai_ci;
mod uca1400_ai_ci;
mod unicode_520_ci;
mod unicode_ci;

use std::fmt;
use std::hash::{Hash, Hasher};

pub(super) use general_ci::GENERAL_CI;
pub(super) use single_byte::SINGLE_BYTE;
pub(super) use uca0900_ai_ci::UCA0900_AI_CI;
pub(super) use uca1400_ai_ci::UCA1400_AI_CI;
pub(super) use unicode_520_ci::UNICODE_520_CI;
pub(super) use unicode_ci::UNICODE_CI;

/// A collation of Unicode strings that can be folded character by character.
pub struct UnicodeFold {
    name: &'static str,
    /// Characters of which anything is known, as sorted ranges with both ends included.
    covered: &'static [(char, char)],
    /// Covered characters that do not stand for themselves, sorted.
    folds: &'static [(char, &'static str)],
    /// What all characters beyond the basic plane are equal to, for collations that know none of them.
    beyond_bmp: Option<char>,
}

impl UnicodeFold {
    /// Appends the folded form of `text`; false at a character of which nothing is known.
    pub(super) fn append(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
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

    fn append_char(&self, character: char, out: &mut Vec<u8>) -> bool {
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
    name: &'static str,
    weights: [u8; 256],
}

impl SingleByteFold {
    pub(super) fn weight(&self, byte: u8) -> u8 {
        self.weights.get(usize::from(byte)).copied().unwrap_or(byte)
    }

    pub(super) fn is_of(&self, collation: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_keep_ascii() {
        for table in [&GENERAL_CI, &UCA0900_AI_CI, &UCA1400_AI_CI, &UNICODE_520_CI, &UNICODE_CI] {
            assert!(table.covered.iter().all(|range| range.0 <= range.1), "{table:?}");
            assert!(table.covered.windows(2).all(|pair| pair[0].1 < pair[1].0), "{table:?}");
            assert!(table.folds.windows(2).all(|pair| pair[0].0 < pair[1].0), "{table:?}");
            for byte in 0x20..0x7f_u8 {
                let mut out = Vec::new();
                assert!(table.append_char(byte as char, &mut out));
                assert_eq!(out, [byte.to_ascii_uppercase()], "{table:?}");
            }
            // A representative stands for itself, or is not covered (a lone jamo, say).
            for folded in table.folds.iter().flat_map(|fold| fold.1.chars()) {
                let mut out = Vec::new();
                if table.append_char(folded, &mut out) {
                    assert_eq!(out, folded.to_string().into_bytes(), "{table:?} {folded:?}");
                }
            }
        }
    }
}
