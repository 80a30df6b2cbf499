//! What the target remembers of a channel: its tables, the statements on them, the row that says the same, and who reads them.

pub(in crate::mysql) mod branches;
pub(in crate::mysql) mod executed_gtids;
pub(in crate::mysql) mod intent;
pub(in crate::mysql) mod load;
pub(in crate::mysql) mod progress_rows;
pub(in crate::mysql) mod retries;
pub(in crate::mysql) mod statements;
pub(in crate::mysql) mod stops;
pub(in crate::mysql) mod switches;
pub(in crate::mysql) mod tables;

pub use self::tables::{
    BookkeepingSchema, COPY_TABLES, ENDING, HOLE_TABLE, KEPT_GTIDS, SCHEMA, SWITCHED, SWITCHES, TABLES, copy_lock_name,
    create, create_switches,
};
