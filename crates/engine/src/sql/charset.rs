//! The character set that a statement's text is in: where a character of several bytes ends, and which text bytes are.
//!
//! The servers' lexers skip whole characters in names and strings. In GBK, GB18030, Big5 and Shift-JIS the second byte may be a backslash or a backtick.
//! UTF-16, UTF-32 and UCS-2 are no character sets of clients. Never converts a statement: places in it stay those of its bytes.

use std::borrow::Cow;

use binlog::charset::Lengths;

use crate::charsets;

/// `character_set_client`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8, or one in which an ASCII byte can be the second half of a character.
    #[default]
    Unknown,
    /// An ASCII byte is always a character of its own. With the number of a collation.
    AsciiAlone(u16),
    /// A character may have several bytes, an ASCII byte among them. With the number of a collation.
    MultiByte(Lengths, u16),
}

impl Charset {
    /// By the number of a collation, as the log has it (`Q_CHARSET_CODE`).
    pub fn of_collation(number: u16) -> Self {
        match (Lengths::of_collation(number), charsets::of_collation(number.into())) {
            (Some(lengths), _) => Self::MultiByte(lengths, number),
            (None, Some(_)) => Self::AsciiAlone(number),
            (None, None) => Self::Unknown,
        }
    }

    /// That of one text. Servers write the definition of a `CREATE TABLE … SELECT` (and of one LIKE a temporary table) and savepoints themselves, in UTF-8,
    /// and log them with the session's character set all the same.
    pub(super) fn of_text(self, sql: &[u8]) -> Self {
        const UTF8: u16 = 45;
        match self {
            Self::MultiByte(..) | Self::AsciiAlone(_) if is_servers_own(sql) && is_utf8(sql) => Self::AsciiAlone(UTF8),
            _ => self,
        }
    }

    /// Whether names beyond ASCII may be in another character set than [`Charset::decode`] takes them for.
    pub(super) fn is_ambiguous(self, sql: &[u8]) -> bool {
        if sql.is_ascii() {
            return false;
        }
        match self {
            Self::Unknown => true,
            Self::AsciiAlone(_) | Self::MultiByte(..) => self != self.of_text(sql) && !self.is_utf8_set(),
        }
    }

    fn is_utf8_set(self) -> bool {
        let Self::AsciiAlone(collation) = self else { return false };
        matches!(charsets::of_collation(collation.into()), Some("utf8" | "utf8mb4"))
    }

    /// A name, or another part of a statement. `None`: it is no text in this character set, or that is not known.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<String> {
        let utf8 = || std::str::from_utf8(bytes).ok().map(str::to_owned);
        let known = |collation| binlog::charset::decode(collation, bytes).map(Cow::into_owned);
        match self {
            Self::Unknown => utf8(),
            // Without a table for the set here, it is UTF-8 or nothing.
            Self::AsciiAlone(collation) => known(collation).or_else(utf8),
            // A short text in GBK is often UTF-8 by chance.
            Self::MultiByte(_, collation) => known(collation),
        }
    }

    /// New text for a statement, in its character set. `None`: that is not known, or not done here.
    pub(crate) fn encode(self, text: &str, sql: &[u8]) -> Option<Vec<u8>> {
        let is_utf8 = match self.of_text(sql) {
            // Text that is not ASCII is taken for UTF-8.
            Self::Unknown => true,
            known => known.is_utf8_set(),
        };
        (text.is_ascii() || is_utf8).then(|| text.as_bytes().to_vec())
    }

    /// As it may be shown: what does not decode is replaced.
    pub(super) fn lossy(self, bytes: &[u8]) -> Cow<'_, str> {
        let known = match self {
            Self::Unknown => None,
            Self::AsciiAlone(collation) | Self::MultiByte(_, collation) => binlog::charset::lossy(collation, bytes),
        };
        known.unwrap_or_else(|| String::from_utf8_lossy(bytes))
    }
}

/// Also if it is cut off within a character.
fn is_utf8(text: &[u8]) -> bool {
    std::str::from_utf8(text).err().is_none_or(|error| error.error_len().is_none())
}

/// As `SHOW CREATE TABLE` lays it out; the texts of savepoints.
fn is_servers_own(sql: &[u8]) -> bool {
    const COLUMNS: &[u8] = b"` (\n  `";
    if sql.starts_with(b"SAVEPOINT `") || sql.starts_with(b"ROLLBACK TO `") {
        return true;
    }
    // Most texts are not even searched.
    if !sql.starts_with(b"CREATE ") {
        return false;
    }
    let first_line = sql.iter().position(|&byte| byte == b'\n').unwrap_or(sql.len());
    sql.get(first_line.saturating_sub(3)..).is_some_and(|text| text.starts_with(COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_servers_write() {
        let gbk = Charset::of_collation(28);
        let own = "CREATE TABLE `s一` (\n  `c` int\n)".as_bytes();
        assert_eq!(gbk.of_text(own), Charset::AsciiAlone(45));
        assert_eq!(gbk.of_text(b"CREATE TABLE `s\xb6\xa9\xb5\xa5` (\n  `c` int\n)"), gbk);
        assert_eq!(gbk.of_text("CREATE TABLE `s一` (`c` int)".as_bytes()), gbk);
        // 一 in GBK, which is UTF-8, too.
        assert_eq!(gbk.decode(b"\xd2\xbb").as_deref(), Some("一"));
        assert_eq!(gbk.decode("一".as_bytes()), None);
        assert_eq!(Charset::of_collation(51).decode(b"\xe7\xe0\xea\xe0\xe7").as_deref(), Some("заказ"));
        assert_eq!(Charset::of_collation(8).decode(b"t\xe9\x80").as_deref(), Some("té€"));
        for (charset, text, ambiguous) in [
            (gbk, own, true),
            (gbk, b"DROP TABLE `\xd2\xbb`".as_slice(), false),
            (Charset::of_collation(45), own, false),
            (Charset::Unknown, "DROP TABLE `一`".as_bytes(), true),
            (Charset::Unknown, b"DROP TABLE t", false),
        ] {
            assert_eq!(charset.is_ambiguous(text), ambiguous, "{}", text.escape_ascii());
        }
        assert_eq!(Charset::Unknown.decode(b"\xd2\xbb\xff"), None);
    }
}
