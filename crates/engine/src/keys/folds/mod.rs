//! Tables of the characters that collations do not tell apart, all measured on the servers.
//!
//! The folded form of a string is good for equality only: it says nothing of order. The tables are text files beside this one,
//! written by the scripts in `evidence/` and read when they are first needed.

mod table;
mod table_file;

use std::sync::LazyLock;

pub use table::{SingleByteFold, UnicodeFold};

macro_rules! unicode_table {
    ($constant:ident, $name:literal) => {
        pub(super) static $constant: LazyLock<UnicodeFold> =
            LazyLock::new(|| table_file::read_unicode($name, include_str!(concat!($name, ".txt"))));
    };
}

unicode_table!(GENERAL_CI, "general_ci");
unicode_table!(UCA0900_AI_CI, "uca0900_ai_ci");
unicode_table!(UCA1400_AI_CI, "uca1400_ai_ci");
unicode_table!(UNICODE_520_CI, "unicode_520_ci");
unicode_table!(UNICODE_CI, "unicode_ci");

pub(super) static SINGLE_BYTE: LazyLock<Vec<SingleByteFold>> =
    LazyLock::new(|| table_file::read_single_byte(include_str!("single_byte.txt")));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_keep_ascii() {
        for table in [&GENERAL_CI, &UCA0900_AI_CI, &UCA1400_AI_CI, &UNICODE_520_CI, &UNICODE_CI].map(|table| &**table) {
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
