//! What of a session changes how the text of its statements is read.

use binlog::StatusVars;

use super::charset::Charset;

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
