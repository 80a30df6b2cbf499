//! Strings under a collation, as bytes that are equal when the strings are.

use super::folds::{SingleByteFold, UnicodeFold};

/// How characters are told apart in the bytes of a value, for prefix keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    SingleByte,
    Utf8,
    /// One or more bytes, of which only those below 0x80 at the start are surely characters of their own.
    OtherMultiByte,
}

/// Which characters a collation does not tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// None.
    Bytes,
    /// Lower and upper case of ASCII letters; anything but printable ASCII is not known.
    AsciiUpper,
    /// None of printable ASCII; anything else is not known.
    AsciiExact,
    /// As a table says.
    Unicode(&'static UnicodeFold),
    SingleByte(&'static SingleByteFold),
}

/// What becomes of spaces at the end of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pad {
    /// They count (VARCHAR and TEXT under NO PAD collations).
    Counts,
    /// They are taken off before values are compared (CHAR under MySQL's NO PAD collations).
    Stripped,
    /// Shorter values are filled up with spaces (PAD SPACE): other characters that are equal to a space go as well.
    Filled,
}

/// What makes two values of a string column equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextKey {
    pub encoding: Encoding,
    pub fold: Fold,
    pub pad: Pad,
}

impl TextKey {
    /// Appends the comparable form of `value`, or of its first `prefix_chars` characters; false when that is not
    /// known, with `out` then in any state.
    pub(super) fn append(&self, value: &[u8], prefix_chars: Option<u32>, out: &mut Vec<u8>) -> bool {
        let value = match prefix_chars {
            None => value,
            Some(chars) => match self.prefix(value, chars) {
                Some(prefix) => prefix,
                None => return false,
            },
        };
        let value = if self.pad == Pad::Stripped { strip_spaces(value) } else { value };
        let start = out.len();
        let known = match self.fold {
            Fold::Bytes => {
                out.extend_from_slice(value);
                true
            }
            Fold::AsciiExact => {
                out.extend_from_slice(value);
                value.iter().all(is_printable)
            }
            Fold::AsciiUpper => {
                out.extend(value.iter().map(u8::to_ascii_uppercase));
                value.iter().all(is_printable)
            }
            Fold::Unicode(table) => table.append(value, out),
            Fold::SingleByte(table) => {
                out.extend(value.iter().map(|&byte| table.weight(byte)));
                true
            }
        };
        if self.pad == Pad::Filled {
            let space = match self.fold {
                Fold::SingleByte(table) => table.weight(b' '),
                Fold::Bytes | Fold::AsciiUpper | Fold::AsciiExact | Fold::Unicode(_) => b' ',
            };
            while out.len() > start && out.last() == Some(&space) {
                out.pop();
            }
        }
        known
    }

    /// The bytes of the first `chars` characters; `None` when where they end is not known.
    fn prefix<'a>(&self, value: &'a [u8], chars: u32) -> Option<&'a [u8]> {
        let chars = chars as usize;
        if value.len() <= chars {
            return Some(value);
        }
        match self.encoding {
            Encoding::SingleByte => value.get(..chars),
            Encoding::OtherMultiByte => value.get(..chars).filter(|head| head.is_ascii()),
            Encoding::Utf8 => {
                let mut at = 0;
                for _ in 0..chars {
                    let Some(first) = value.get(at) else { return Some(value) };
                    let length = match first {
                        0..0x80 => 1,
                        0xc2..0xe0 => 2,
                        0xe0..0xf0 => 3,
                        0xf0..0xf5 => 4,
                        _ => return None,
                    };
                    let tail = value.get(at + 1..at + length)?;
                    if !tail.iter().all(|byte| byte & 0xc0 == 0x80) {
                        return None;
                    }
                    at += length;
                }
                value.get(..at)
            }
        }
    }
}

/// Control characters are ignored by some collations and not by others.
fn is_printable(byte: &u8) -> bool {
    (0x20..0x7f).contains(byte)
}

fn strip_spaces(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    value.get(..end).unwrap_or(value)
}
