//! What of a session changes how the text of its statements is read.

use binlog::StatusVars;

use crate::charsets;

/// The parts of `sql_mode`, and the character set of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlMode {
    /// `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// A backslash in a string is a character like others.
    pub no_backslash_escapes: bool,
    /// REAL is FLOAT instead of DOUBLE.
    pub real_as_float: bool,
    pub charset: Charset,
}

/// Families of `character_set_client`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8, or one in which an ASCII byte can be the second half of a character.
    #[default]
    Unknown,
    /// The servers' `latin1`, which is CP1252.
    Latin1,
    /// An ASCII byte is always a character of its own.
    AsciiAlone,
}

impl SqlMode {
    /// The bits that both servers write into query events (`Q_SQL_MODE_CODE`).
    pub fn from_bits(bits: u64) -> Self {
        Self {
            real_as_float: bits & 1 != 0,
            ansi_quotes: bits & 4 != 0,
            no_backslash_escapes: bits & (1 << 20) != 0,
            charset: Charset::default(),
        }
    }

    /// Of the session that a statement ran in.
    pub fn of(vars: &StatusVars) -> Self {
        let charset = vars.charset.map_or(Charset::Unknown, |(client, _, _)| Charset::of_collation(client));
        Self { charset, ..Self::from_bits(vars.sql_mode.unwrap_or(0)) }
    }
}

impl Charset {
    fn of_collation(number: u16) -> Self {
        match charsets::of_collation(number.into()) {
            Some("latin1") => Self::Latin1,
            Some("big5" | "sjis" | "cp932" | "gbk" | "gb18030") => Self::Unknown,
            _ => Self::AsciiAlone,
        }
    }

    /// A name. What servers write themselves is UTF-8, whatever the session's character set.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<String> {
        match (std::str::from_utf8(bytes), self) {
            (Ok(text), _) => Some(text.to_owned()),
            (Err(_), Self::Latin1) => Some(bytes.iter().map(|&byte| cp1252(byte)).collect()),
            (Err(_), Self::Unknown | Self::AsciiAlone) => None,
        }
    }
}

/// As the servers have it: what CP1252 leaves out is the control character of that number.
fn cp1252(byte: u8) -> char {
    const FROM_0X80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    usize::from(byte).checked_sub(0x80).and_then(|at| FROM_0X80.get(at).copied()).unwrap_or(char::from(byte))
}
