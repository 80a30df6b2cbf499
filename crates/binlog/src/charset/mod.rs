//! Character sets of the servers, by the number of a collation: bytes → text. What does not decode is no text; only [`lossy`] replaces it.
//!
//! The numbers are those of MySQL's and MariaDB's `information_schema.COLLATIONS`. MariaDB adds 1024 for NOPAD, and numbers its UCA 14 collations from
//! 2048 on, 256 for a character set.

mod differences;
mod lengths;
mod numbers;

pub use lengths::Lengths;

use std::borrow::Cow;

use encoding_rs as e;
use encoding_rs::Encoding;

use differences::{Difference, difference};
use numbers::without_nopad;

/// How a character set's bytes become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charset {
    Utf8,
    Utf16,
    Utf16Le,
    Utf32,
    /// As the browsers' standard has it, but for the [`differences`].
    Known(&'static Encoding),
    /// Only its ASCII is known.
    Ascii,
    /// It differs from ASCII in some signs, too.
    Letters,
}

/// The text of a value with this collation; `None`: it is none in its character set, or that is not known here.
pub fn decode(collation: u16, raw: &[u8]) -> Option<Cow<'_, str>> {
    match charset(collation)? {
        Charset::Utf8 => std::str::from_utf8(raw).ok().map(Cow::Borrowed),
        Charset::Utf16 => utf16(raw, u16::from_be_bytes),
        Charset::Utf16Le => utf16(raw, u16::from_le_bytes),
        Charset::Utf32 => utf32(raw),
        Charset::Known(encoding) => match Lengths::of_collation(collation) {
            Some(lengths) => several_bytes(collation, encoding, lengths, raw),
            None => encoding.decode_without_bom_handling_and_without_replacement(raw),
        },
        Charset::Ascii => raw.is_ascii().then(|| std::str::from_utf8(raw).ok().map(Cow::Borrowed))?,
        Charset::Letters => raw
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b" .,:;-+*/=()<>?!\"'%&_".contains(byte))
            .then(|| std::str::from_utf8(raw).ok().map(Cow::Borrowed))?,
    }
}

/// As [`decode`], for people: what is no text is replaced. `None`: the character set is not known here, or has no encoding of several bytes or letters.
pub fn lossy(collation: u16, raw: &[u8]) -> Option<Cow<'_, str>> {
    match charset(collation)? {
        Charset::Known(encoding) => Some(encoding.decode_without_bom_handling(raw).0),
        _ => decode(collation, raw),
    }
}

fn several_bytes<'a>(
    collation: u16,
    encoding: &'static Encoding,
    lengths: Lengths,
    raw: &'a [u8],
) -> Option<Cow<'a, str>> {
    let standard = |raw: &'a [u8]| encoding.decode_without_bom_handling_and_without_replacement(raw);
    let (mut text, mut from, mut at) = (String::new(), 0, 0);
    while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
        let end = at + lengths.of_first(rest);
        let is_half = |byte: &u8| *byte >= 0x80 && !(lengths == Lengths::ShiftJis && matches!(byte, 0xa1..=0xdf));
        if end == at + 1 && rest.first().is_some_and(is_half) {
            return None;
        }
        if end > at + 1
            && let Some(found) = difference(collation, raw.get(at..end)?)
        {
            let Difference::Is(character) = found else { return None };
            text.push_str(&standard(raw.get(from..at)?)?);
            text.push(character);
            from = end;
        }
        at = end;
    }
    let last = standard(raw.get(from..)?)?;
    if from == 0 {
        return Some(last);
    }
    text.push_str(&last);
    Some(Cow::Owned(text))
}

fn utf16(raw: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'static, str>> {
    let (units, rest) = raw.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    char::decode_utf16(units.iter().map(|bytes| unit(*bytes))).collect::<Result<String, _>>().ok().map(Cow::Owned)
}

fn utf32(raw: &[u8]) -> Option<Cow<'static, str>> {
    let (units, rest) = raw.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    units.iter().map(|bytes| char::from_u32(u32::from_be_bytes(*bytes))).collect::<Option<String>>().map(Cow::Owned)
}

fn charset(collation: u16) -> Option<Charset> {
    use Charset::{Ascii, Known, Letters, Utf8, Utf16, Utf16Le, Utf32};
    Some(match without_nopad(collation) {
        // Bytes: whoever sees text in them may show it.
        63 => Utf8,
        33 | 76 | 83 | 192..=223 | 576..=607 | 2048..=2303 => Utf8,
        45 | 46 | 224..=247 | 255..=575 | 608..=639 | 2304..=2559 => Utf8,
        35 | 90 | 128..=159 | 640..=671 | 2560..=2815 => Utf16,
        54 | 55 | 101..=124 | 736..=767 | 2816..=3071 => Utf16,
        56 | 62 => Utf16Le,
        60 | 61 | 160..=183 | 672..=703 | 3072..=3327 => Utf32,
        5 | 8 | 15 | 31 | 47..=49 | 94 => Known(e::WINDOWS_1252),
        1 | 84 => Known(e::BIG5),
        24 | 28 | 86 | 87 => Known(e::GBK),
        248..=250 => Known(e::GB18030),
        13 | 88 | 95 | 96 => Known(e::SHIFT_JIS),
        12 | 91 | 97 | 98 => Known(e::EUC_JP),
        19 | 85 => Known(e::EUC_KR),
        2 | 9 | 21 | 27 | 77 => Known(e::ISO_8859_2),
        7 | 74 => Known(e::KOI8_R),
        22 | 75 => Known(e::KOI8_U),
        16 | 71 => Known(e::ISO_8859_8),
        18 | 89 => Known(e::WINDOWS_874),
        25 | 70 => Known(e::ISO_8859_7),
        26 | 34 | 44 | 66 | 99 => Known(e::WINDOWS_1250),
        14 | 23 | 50..=52 => Known(e::WINDOWS_1251),
        30 | 78 => Known(e::WINDOWS_1254),
        57 | 67 => Known(e::WINDOWS_1256),
        29 | 58 | 59 => Known(e::WINDOWS_1257),
        20 | 41 | 42 | 79 => Known(e::ISO_8859_13),
        36 | 68 => Known(e::IBM866),
        39 | 53 => Known(e::MACINTOSH),
        // dec8, cp850, cp852, hp8, ascii, armscii8, keybcs2, macce, geostd8.
        3 | 69 | 4 | 80 | 40 | 81 | 6 | 72 | 11 | 65 | 32 | 64 | 37 | 73 | 38 | 43 | 92 | 93 => Ascii,
        // swe7
        10 | 82 => Letters,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_each_charset() {
        let cases: [(u16, &[u8], Option<&str>); 31] = [
            (45, "é".as_bytes(), Some("é")),
            (45, b"\xe9", None),
            (8, b"caf\xe9", Some("café")),
            // Not the UTF-8 that it happens to be.
            (8, b"\xc3\xa9", Some("Ã©")),
            (1032, b"caf\xe9", Some("café")),
            (54, b"\x00a\x65\xe5\xd8\x3d\xde\x00", Some("a日😀")),
            (54, b"\xd8\x3d\x00a", None),
            (54, b"\x00a\x00", None),
            (56, b"a\x00\xe5\x65", Some("a日")),
            (35, b"\x65\xe5", Some("日")),
            (60, b"\x00\x01\xf6\x00", Some("😀")),
            (60, b"\x00\x11\x00\x00", None),
            (28, b"\xd6\xd0\xce\xc4", Some("中文")),
            // The browsers' euro sign; no character of GB 2312.
            (28, b"\x80", None),
            (24, b"\x81\x40", None),
            (248, b"\xd6\xd0\x81\x30\x81\x30", Some("中\u{80}")),
            (13, b"\x93\xfa\x96\x7b", Some("日本")),
            (95, b"\x87\x40", Some("①")),
            (12, b"\xc6\xfc\xcb\xdc", Some("日本")),
            (97, b"\xc6\xfc\xff", None),
            (1, b"\xa4\xa4\xa4\xe5", Some("中文")),
            (19, b"\xc7\xd1\xb1\xdb", Some("한글")),
            (13, b"a\x81\x60b\x81\x5f", Some("a〜b\\")),
            (95, b"\x81\x60", Some("～")),
            (24, b"\xd2\xbb\xa1\xa4", Some("一・")),
            (1, b"\xc6\xe7", None),
            (12, b"\xf5\xa1", None),
            (4, b"abc", Some("abc")),
            (4, b"\x82", None),
            (10, b"[", None),
            (9_999, b"abc", None),
        ];
        for (collation, raw, text) in cases {
            assert_eq!(decode(collation, raw).as_deref(), text, "{collation}: {raw:02x?}");
        }
    }
}
