//! Why bytes are not what they should be.

use crate::kind::Kind;

/// Bytes that do not hold what the format says they hold.
///
/// `offset` counts bytes from the start of the event for decoders, and from the start of the file for the framer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (offset {offset})")]
pub struct Corruption {
    /// Bytes from the start of the event (decoders) or of the file (framer).
    pub offset: u64,
    /// What is wrong there.
    pub what: CorruptionKind,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CorruptionKind {
    /// The first four bytes are not those of a binary log.
    #[error("not a binary log: it starts with {0:02x?} instead of fe 62 69 6e")]
    Magic([u8; 4]),
    /// The log ends, and another one begins: files that were put together.
    #[error(
        "another binary log begins here: the file is several that were put together (cat); give them one by one, under their own names"
    )]
    AnotherLog,
    /// The log is encrypted (MySQL's `fd 'bin'`, or MariaDB's START_ENCRYPTION event).
    #[error("the binary log is encrypted: read it from the server, or turn encryption off for it")]
    Encrypted,
    /// An event arrived before any format description.
    #[error("event of type {0} before a format description")]
    NoFormat(Kind),
    /// A length that no event can have.
    #[error("event length {length} is outside of 19..={limit}")]
    EventLength { length: u64, limit: u64 },
    /// The header's length is not that of the bytes handed in.
    #[error("the header says {header} bytes, there are {actual}")]
    LengthMismatch { header: u64, actual: u64 },
    /// The CRC32 does not match.
    #[error("checksum mismatch: stored {stored:08x}, computed {computed:08x}")]
    Checksum { stored: u32, computed: u32 },
    /// A field needs more bytes than the event has.
    #[error("{field} needs {want} bytes, {have} are left")]
    Truncated { field: &'static str, want: u64, have: u64 },
    /// A field has a value that it cannot have.
    #[error("{field} cannot be {value}")]
    Invalid { field: &'static str, value: u64 },
    /// The binary log format is older than MySQL 5.0's.
    #[error("binary log format version {0} is not supported (4 is)")]
    Version(u16),
    /// A checksum algorithm that is not known.
    #[error("unknown checksum algorithm {0}")]
    ChecksumAlgorithm(u8),
    /// The event is of another type than the decoder's.
    #[error("an event of type {got} is not a {expected} event")]
    Kind { expected: &'static str, got: Kind },
    /// A status variable of a Query event that is not known: its length is not known either.
    #[error("unknown status variable {code} in a Query event")]
    StatusVar { code: u8 },
    /// A column type whose length in a row image is not known.
    #[error("column {column}: no row format is known for column type {kind}")]
    ColumnType { column: u32, kind: u8 },
    /// A rows event and its table map do not agree.
    #[error("the rows event has {rows} columns, its table map {table}")]
    Width { rows: u64, table: u64 },
    /// A text field is not UTF-8.
    #[error("{field} is not UTF-8")]
    Utf8 { field: &'static str },
    /// An event, or a compressed part of one, is longer than its reader can do with.
    #[error("{field} of {bytes} bytes: at most {limit} are held at once")]
    TooLarge { field: &'static str, bytes: u64, limit: u64 },
    /// A compressed part does not decompress to what it claims.
    #[error("compressed {field}: {why}")]
    Compression { field: &'static str, why: String },
}

impl Corruption {
    /// `what` at `offset`.
    pub fn new(offset: u64, what: CorruptionKind) -> Self {
        Self { offset, what }
    }

    /// The same with `base` added to the offset: turns an offset in an event into one in a file.
    #[must_use]
    pub fn at(mut self, base: u64) -> Self {
        self.offset = self.offset.saturating_add(base);
        self
    }
}
