//! Event type codes of MySQL (0–42) and MariaDB (160–171).
//!
//! Source: the type tables in the MySQL and MariaDB documentation of the replication protocol.

use std::fmt;

/// An event type code. Any byte is a valid `Kind`: unknown types are carried on.
#[derive(Copy, Clone, Eq, PartialEq, Hash, PartialOrd, Ord)]
pub struct Kind(pub u8);

macro_rules! kinds {
    ($($name:ident = $code:literal),* $(,)?) => {
        impl Kind {
            $(#[doc = concat!("Type code ", stringify!($code), ".")] pub const $name: Kind = Kind($code);)*

            /// The name of the constant, `UNKNOWN` for a code without one.
            pub fn name(self) -> &'static str {
                match self.0 { $($code => stringify!($name),)* _ => "UNKNOWN" }
            }
        }
    };
}

kinds! {
    START_V3 = 1,
    QUERY = 2,
    STOP = 3,
    ROTATE = 4,
    INTVAR = 5,
    LOAD = 6,
    SLAVE = 7,
    CREATE_FILE = 8,
    APPEND_BLOCK = 9,
    EXEC_LOAD = 10,
    DELETE_FILE = 11,
    NEW_LOAD = 12,
    RAND = 13,
    USER_VAR = 14,
    FORMAT_DESCRIPTION = 15,
    XID = 16,
    BEGIN_LOAD_QUERY = 17,
    EXECUTE_LOAD_QUERY = 18,
    TABLE_MAP = 19,
    WRITE_ROWS_V0 = 20,
    UPDATE_ROWS_V0 = 21,
    DELETE_ROWS_V0 = 22,
    WRITE_ROWS_V1 = 23,
    UPDATE_ROWS_V1 = 24,
    DELETE_ROWS_V1 = 25,
    INCIDENT = 26,
    HEARTBEAT = 27,
    IGNORABLE = 28,
    ROWS_QUERY = 29,
    WRITE_ROWS = 30,
    UPDATE_ROWS = 31,
    DELETE_ROWS = 32,
    GTID = 33,
    ANONYMOUS_GTID = 34,
    PREVIOUS_GTIDS = 35,
    TRANSACTION_CONTEXT = 36,
    VIEW_CHANGE = 37,
    XA_PREPARE = 38,
    PARTIAL_UPDATE_ROWS = 39,
    TRANSACTION_PAYLOAD = 40,
    HEARTBEAT_V2 = 41,
    GTID_TAGGED = 42,
    ANNOTATE_ROWS = 160,
    BINLOG_CHECKPOINT = 161,
    MARIADB_GTID = 162,
    MARIADB_GTID_LIST = 163,
    START_ENCRYPTION = 164,
    QUERY_COMPRESSED = 165,
    WRITE_ROWS_COMPRESSED_V1 = 166,
    UPDATE_ROWS_COMPRESSED_V1 = 167,
    DELETE_ROWS_COMPRESSED_V1 = 168,
    WRITE_ROWS_COMPRESSED = 169,
    UPDATE_ROWS_COMPRESSED = 170,
    DELETE_ROWS_COMPRESSED = 171,
}

impl Kind {
    /// Whether this is a rows event that [`crate::RowsEvent`] decodes.
    pub fn is_rows(self) -> bool {
        matches!(
            self,
            Kind::WRITE_ROWS_V1
                | Kind::UPDATE_ROWS_V1
                | Kind::DELETE_ROWS_V1
                | Kind::WRITE_ROWS
                | Kind::UPDATE_ROWS
                | Kind::DELETE_ROWS
                | Kind::PARTIAL_UPDATE_ROWS
        ) || self.is_compressed_rows()
    }

    /// Whether this is one of MariaDB's compressed rows events.
    pub fn is_compressed_rows(self) -> bool {
        (Kind::WRITE_ROWS_COMPRESSED_V1.0..=Kind::DELETE_ROWS_COMPRESSED.0).contains(&self.0)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "UNKNOWN" => write!(f, "UNKNOWN({})", self.0),
            name => f.write_str(name),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
