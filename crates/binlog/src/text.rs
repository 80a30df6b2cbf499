//! Text that comes from elsewhere, on its way into a message: names, file names, server texts, statements.
//!
//! Whoever wrote that text must not be able to move a terminal's cursor, begin a line of a log, or turn the order of what is read. So characters
//! that are not seen, or that act on others, are written as escapes: `\n`, `\x1b`, `\u{202e}`. All else stays as it is, in any script. The result
//! can be escaped again without change. HTML has more that acts: reports escape for it in addition.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// The text as it may be shown.
pub fn escape(text: &str) -> Cow<'_, str> {
    if text.chars().any(acts) { Cow::Owned(EscapedText(text).to_string()) } else { Cow::Borrowed(text) }
}

/// Bytes as they may be shown: what is not UTF-8 as `\xff`; of more than `most` bytes the beginning, and how many are left out.
pub fn escape_bytes(bytes: &[u8], most: usize) -> String {
    let (shown, left_out) = bytes.split_at_checked(most).unwrap_or((bytes, &[]));
    let mut out = String::with_capacity(shown.len());
    for chunk in shown.utf8_chunks() {
        // Writing into a string does not fail.
        let _ = write!(out, "{}", EscapedText(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    if !left_out.is_empty() {
        let _ = write!(out, "… ({} more bytes)", left_out.len());
    }
    out
}

/// Writes the text as it may be shown.
#[derive(Clone, Copy, Debug)]
pub struct EscapedText<'a>(pub &'a str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, character)) = rest.char_indices().find(|(_, character)| acts(*character)) {
            let (harmless, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
            f.write_str(harmless)?;
            match character {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\0' => f.write_str("\\0")?,
                character if u32::from(character) < 0x80 => write!(f, "\\x{:02x}", u32::from(character))?,
                character => write!(f, "\\u{{{:x}}}", u32::from(character))?,
            }
            rest = from.get(character.len_utf8()..).unwrap_or("");
        }
        f.write_str(rest)
    }
}

/// True for what is not seen itself but changes how other text is shown, or hides in it.
fn acts(character: char) -> bool {
    match character {
        // C0, DEL, C1.
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        // Soft hyphen; marks, embeddings, overrides and isolates of the bidirectional algorithm.
        '\u{ad}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Line and paragraph separator; width of zero (not the joiners, which scripts and emoji need); byte order mark; interlinear notes.
        '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_escaped() {
        let check = |text: &str, want: &str| {
            assert_eq!(escape(text), want);
            assert_eq!(escape(&escape(text)), want, "again");
            assert_eq!(escape_bytes(text.as_bytes(), 1000), want);
        };
        check("", "");
        check("plain `t`.\\n 'é' 漢字 👩‍🚀 עברית", "plain `t`.\\n 'é' 漢字 👩‍🚀 עברית");
        check("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07");
        check("a\nERROR fake\r\0\t\x7f", "a\\nERROR fake\\r\\0\\t\\x7f");
        check("\u{9b}31m\u{85}", "\\u{9b}31m\\u{85}");
        check(
            "a\u{202e}b\u{2066}c\u{200f}d\u{2028}e\u{feff}\u{e0041}",
            "a\\u{202e}b\\u{2066}c\\u{200f}d\\u{2028}e\\u{feff}\\u{e0041}",
        );
    }

    #[test]
    fn only_text_that_needs_it_is_copied() {
        assert!(matches!(escape("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn bytes_that_are_no_text_and_too_many() {
        assert_eq!(escape_bytes(b"a\xff\x1b\xc3", 1000), "a\\xff\\x1b\\xc3");
        assert_eq!(escape_bytes(b"0123456789", 4), "0123… (6 more bytes)");
        assert_eq!(escape_bytes("é".as_bytes(), 1), "\\xc3… (1 more bytes)");
    }
}
