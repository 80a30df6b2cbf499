//! What is known of the servers' collations.
//!
//! Every entry was compared with MySQL 9.7 and MariaDB 10.11 by the scripts in `evidence/`. A collation that is not
//! named here is not known, however much its name looks like one that is.

use super::folds::{GENERAL_CI, SINGLE_BYTE, UCA0900_AI_CI, UCA1400_AI_CI, UNICODE_520_CI, UNICODE_CI};
use super::text::{Encoding, Fold, Pad, TextKey};

/// How values of a collation become comparable; `None`: not known. For columns other than CHAR.
pub(super) fn text_key(charset: &str, collation: &str) -> Option<TextKey> {
    let collation = collation.to_ascii_lowercase();
    let charset = charset.to_ascii_lowercase();
    let encoding = encoding(&charset)?;
    // MariaDB writes `uca1400_ai_ci` in some places and `utf8mb4_uca1400_ai_ci` in others; `utf8` is an old
    // name of `utf8mb3`.
    let prefixes: &[&str] = match charset.as_str() {
        "utf8" | "utf8mb3" => &["utf8mb3_", "utf8_"],
        "utf8mb4" => &["utf8mb4_"],
        other => &[other],
    };
    let rest = prefixes
        .iter()
        .find_map(|prefix| collation.strip_prefix(prefix))
        .map(|rest| rest.trim_start_matches('_'))
        .or_else(|| collation.starts_with("uca1400_").then_some(collation.as_str()))?;
    let key = |fold, pad| Some(TextKey { encoding, fold, pad: if pad { Pad::Filled } else { Pad::Counts } });
    match (rest, encoding) {
        // Code points (or bytes) in binary order: also for the multi-byte character sets of East Asia, in which
        // 0x20 is never the second byte of a character.
        ("bin", _) => key(Fold::Bytes, true),
        ("nopad_bin", _) => key(Fold::Bytes, false),
        ("0900_bin", Encoding::Utf8) => key(Fold::Bytes, false),
        (rest, Encoding::Utf8) => {
            let (fold, pad) = unicode(rest)?;
            key(fold, pad)
        }
        (_, Encoding::SingleByte) => {
            let (fold, pad) = single_byte(&collation)?;
            key(fold, pad)
        }
        (_, Encoding::OtherMultiByte) => None,
    }
}

/// The same collation for a CHAR column, whose values the servers keep without spaces at their end.
///
/// MySQL strips them before it compares under a NO PAD collation. MariaDB fills values up to the column's number of
/// characters: then `q` equals `q` with a no-break space, but `ß` does not equal `ss`, of which the filling is shorter.
/// So where one character can have no weight or several, only ASCII is known.
pub(super) fn for_char(key: TextKey) -> TextKey {
    let (fold, pad) = match (key.pad, key.fold) {
        (Pad::Filled | Pad::Stripped, fold) => (fold, key.pad),
        (Pad::Counts, Fold::Unicode(table)) if *table == *UCA0900_AI_CI => (key.fold, Pad::Stripped),
        (Pad::Counts, Fold::Unicode(table)) if *table != *GENERAL_CI => (Fold::AsciiUpper, Pad::Filled),
        (Pad::Counts, fold) => (fold, Pad::Filled),
    };
    TextKey { fold, pad, ..key }
}

/// What is folded, and whether it is a PAD SPACE collation.
fn unicode(rest: &str) -> Option<(Fold, bool)> {
    Some(match rest {
        "0900_ai_ci" => (Fold::Unicode(&UCA0900_AI_CI), false),
        "0900_as_ci" => (Fold::AsciiUpper, false),
        "0900_as_cs" => (Fold::AsciiExact, false),
        "general_ci" => (Fold::Unicode(&GENERAL_CI), true),
        "general_nopad_ci" => (Fold::Unicode(&GENERAL_CI), false),
        "general_mysql500_ci" => (Fold::AsciiUpper, true),
        "unicode_ci" => (Fold::Unicode(&UNICODE_CI), true),
        "unicode_nopad_ci" => (Fold::Unicode(&UNICODE_CI), false),
        "unicode_520_ci" => (Fold::Unicode(&UNICODE_520_CI), true),
        "unicode_520_nopad_ci" => (Fold::Unicode(&UNICODE_520_CI), false),
        "uca1400_ai_ci" => (Fold::Unicode(&UCA1400_AI_CI), true),
        "uca1400_nopad_ai_ci" => (Fold::Unicode(&UCA1400_AI_CI), false),
        "uca1400_as_ci" => (Fold::AsciiUpper, true),
        "uca1400_nopad_as_ci" => (Fold::AsciiUpper, false),
        "uca1400_ai_cs" | "uca1400_as_cs" => (Fold::AsciiExact, true),
        "uca1400_nopad_ai_cs" | "uca1400_nopad_as_cs" => (Fold::AsciiExact, false),
        _ => return None,
    })
}

/// MariaDB's NO PAD collations have the weights of those that they are named after.
fn single_byte(collation: &str) -> Option<(Fold, bool)> {
    let find = |collation: &str| SINGLE_BYTE.iter().find(|fold| fold.is_of(collation));
    if let Some(fold) = find(collation) {
        return Some((Fold::SingleByte(fold), true));
    }
    let padded = collation.strip_suffix("_nopad_ci")?;
    find(&format!("{padded}_ci")).map(|fold| (Fold::SingleByte(fold), false))
}

fn encoding(charset: &str) -> Option<Encoding> {
    Some(match charset {
        "utf8mb4" | "utf8mb3" | "utf8" => Encoding::Utf8,
        "latin1" | "latin2" | "latin5" | "latin7" | "ascii" | "cp850" | "cp852" | "cp866" | "cp1250" | "cp1251"
        | "cp1256" | "cp1257" | "dec8" | "hp8" | "koi8r" | "koi8u" | "greek" | "hebrew" | "geostd8" | "armscii8"
        | "macce" | "macroman" | "keybcs2" | "swe7" => Encoding::SingleByte,
        "gbk" | "gb2312" | "gb18030" | "big5" | "sjis" | "cp932" | "ujis" | "eucjpms" | "euckr" => {
            Encoding::OtherMultiByte
        }
        // ucs2, utf16, utf32: a space has more than one byte. tis620: not compared with a server.
        _ => return None,
    })
}
