//! Column types and what a table map says of a column.

use std::fmt;

use bytes::Bytes;

use crate::event::Flavour;

/// A column type code (`MYSQL_TYPE_*`).
#[derive(Copy, Clone, Eq, PartialEq, Hash)]
pub struct ColumnKind(pub u8);

macro_rules! column_kinds {
    ($($name:ident = $code:literal),* $(,)?) => {
        impl ColumnKind {
            $(#[doc = concat!("Type code ", stringify!($code), ".")] pub const $name: ColumnKind = ColumnKind($code);)*

            /// The name of the constant, `UNKNOWN` for a code without one.
            pub fn name(self) -> &'static str {
                match self.0 { $($code => stringify!($name),)* _ => "UNKNOWN" }
            }
        }
    };
}

column_kinds! {
    DECIMAL = 0,
    TINY = 1,
    SHORT = 2,
    LONG = 3,
    FLOAT = 4,
    DOUBLE = 5,
    NULL = 6,
    TIMESTAMP = 7,
    LONGLONG = 8,
    INT24 = 9,
    DATE = 10,
    TIME = 11,
    DATETIME = 12,
    YEAR = 13,
    NEWDATE = 14,
    VARCHAR = 15,
    BIT = 16,
    TIMESTAMP2 = 17,
    DATETIME2 = 18,
    TIME2 = 19,
    TYPED_ARRAY = 20,
    BLOB_COMPRESSED = 140,
    VARCHAR_COMPRESSED = 141,
    VECTOR = 242,
    JSON = 245,
    NEWDECIMAL = 246,
    ENUM = 247,
    SET = 248,
    TINY_BLOB = 249,
    MEDIUM_BLOB = 250,
    LONG_BLOB = 251,
    BLOB = 252,
    VAR_STRING = 253,
    STRING = 254,
    GEOMETRY = 255,
}

impl ColumnKind {
    /// Bytes of metadata in a table map; `None` for a type that is not known.
    pub fn meta_len(self) -> Option<usize> {
        match self {
            Self::FLOAT
            | Self::DOUBLE
            | Self::TIMESTAMP2
            | Self::DATETIME2
            | Self::TIME2
            | Self::BLOB_COMPRESSED
            | Self::VECTOR
            | Self::JSON
            | Self::TINY_BLOB
            | Self::MEDIUM_BLOB
            | Self::LONG_BLOB
            | Self::BLOB
            | Self::GEOMETRY => Some(1),
            Self::VARCHAR
            | Self::VARCHAR_COMPRESSED
            | Self::BIT
            | Self::NEWDECIMAL
            | Self::ENUM
            | Self::SET
            | Self::VAR_STRING
            | Self::STRING => Some(2),
            Self::DECIMAL
            | Self::TINY
            | Self::SHORT
            | Self::LONG
            | Self::NULL
            | Self::TIMESTAMP
            | Self::LONGLONG
            | Self::INT24
            | Self::DATE
            | Self::TIME
            | Self::DATETIME
            | Self::YEAR
            | Self::NEWDATE => Some(0),
            _ => None,
        }
    }

    /// Whether the two bytes of metadata are big-endian: the real type or the precision first.
    pub(crate) fn meta_big_endian(self) -> bool {
        matches!(self, Self::NEWDECIMAL | Self::ENUM | Self::SET | Self::VAR_STRING | Self::STRING)
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "UNKNOWN" => write!(f, "UNKNOWN({})", self.0),
            name => f.write_str(name),
        }
    }
}

impl fmt::Debug for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a table map says of a column. `None`: the optional metadata does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Type as logged: ENUM, SET and CHAR are all `STRING`; see [`Column::real_kind`].
    pub kind: ColumnKind,
    /// Metadata, by type. VARCHAR: longest value in bytes. STRING, ENUM, SET: real type in the high byte, length in the
    /// low one (see [`Column::max_len`]). NEWDECIMAL: precision high, scale low. BIT: whole bytes high, further bits
    /// low. BLOB, JSON, GEOMETRY, VECTOR: bytes of the length prefix. FLOAT, DOUBLE: length of the value. TIME2,
    /// DATETIME2, TIMESTAMP2: fractional digits.
    pub meta: u16,
    /// May be NULL.
    pub nullable: bool,
    /// For numbers.
    pub unsigned: Option<bool>,
    /// Collation id, for strings, blobs, enums and sets; 63 is binary.
    pub collation: Option<u16>,
    /// Name (`binlog_row_metadata=FULL`).
    pub name: Option<String>,
    /// `false` for an invisible column (MySQL 8.0.23+).
    pub visible: Option<bool>,
    /// The strings of an ENUM or SET, in the column's character set (`binlog_row_metadata=FULL`).
    pub values: Option<Vec<Bytes>>,
    /// Geometry type: 0 any, 1 point …
    pub geometry_type: Option<u16>,
    /// Dimensions of a VECTOR.
    pub vector_dimensions: Option<u32>,
}

impl Column {
    /// A column of which only this is known.
    pub fn new(kind: ColumnKind, meta: u16, nullable: bool) -> Column {
        Column {
            kind,
            meta,
            nullable,
            unsigned: None,
            collation: None,
            name: None,
            visible: None,
            values: None,
            geometry_type: None,
            vector_dimensions: None,
        }
    }

    /// The type behind `STRING`: ENUM, SET or STRING itself.
    pub fn real_kind(&self) -> ColumnKind {
        if self.kind != ColumnKind::STRING {
            return self.kind;
        }
        let high = (self.meta >> 8) as u8;
        match ColumnKind(high) {
            ColumnKind::ENUM => ColumnKind::ENUM,
            ColumnKind::SET => ColumnKind::SET,
            _ => ColumnKind::STRING,
        }
    }

    /// Longest value in bytes, of STRING, VARCHAR, VAR_STRING and their like; for ENUM and SET the length of a value.
    pub fn max_len(&self) -> u32 {
        match self.kind {
            ColumnKind::STRING | ColumnKind::VAR_STRING => {
                let (high, low) = (u32::from(self.meta >> 8), u32::from(self.meta & 0xff));
                // Lengths from 256 on hide bits 8 and 9, inverted, in the type.
                if high & 0x30 == 0x30 { low } else { low | ((high & 0x30) ^ 0x30) << 4 }
            }
            ColumnKind::ENUM | ColumnKind::SET => u32::from(self.meta & 0xff),
            _ => u32::from(self.meta),
        }
    }

    /// Whether the optional metadata counts the column as a number (it has a sign).
    pub(crate) fn is_numeric(&self) -> bool {
        matches!(
            self.kind,
            ColumnKind::TINY
                | ColumnKind::SHORT
                | ColumnKind::INT24
                | ColumnKind::LONG
                | ColumnKind::LONGLONG
                | ColumnKind::NEWDECIMAL
                | ColumnKind::FLOAT
                | ColumnKind::DOUBLE
                | ColumnKind::YEAR
        )
    }

    /// Whether the optional metadata counts the column as one with a character set (ENUM and SET have their own). MariaDB's counts GEOMETRY, as
    /// binary (seen: 10.11, 11.4, 11.8); MySQL's does not.
    pub(crate) fn is_character(&self, flavour: Flavour) -> bool {
        let geometry = self.kind == ColumnKind::GEOMETRY && flavour == Flavour::MariaDb;
        geometry || self.is_text_or_bytes()
    }

    fn is_text_or_bytes(&self) -> bool {
        matches!(
            self.real_kind(),
            ColumnKind::STRING
                | ColumnKind::VAR_STRING
                | ColumnKind::VARCHAR
                | ColumnKind::BLOB
                | ColumnKind::VARCHAR_COMPRESSED
                | ColumnKind::BLOB_COMPRESSED
                | ColumnKind::TINY_BLOB
                | ColumnKind::MEDIUM_BLOB
                | ColumnKind::LONG_BLOB
                | ColumnKind::VECTOR
        )
    }

    /// Whether the column is an ENUM or a SET.
    pub(crate) fn is_enum_or_set(&self) -> bool {
        matches!(self.real_kind(), ColumnKind::ENUM | ColumnKind::SET)
    }
}
