//! The parts of `sql_mode` that change how a statement is read.

/// From the status variables of a query event, or a session's `sql_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlMode {
    /// `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// A backslash in a string is a character like others.
    pub no_backslash_escapes: bool,
    /// REAL is FLOAT instead of DOUBLE.
    pub real_as_float: bool,
}

impl SqlMode {
    /// The bits that both servers write into query events (`Q_SQL_MODE_CODE`).
    pub fn from_bits(bits: u64) -> Self {
        Self { real_as_float: bits & 1 != 0, ansi_quotes: bits & 4 != 0, no_backslash_escapes: bits & (1 << 20) != 0 }
    }
}
