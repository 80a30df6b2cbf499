//! What the target remembers of a channel: its tables, the statements on them, the row that says the same, and who reads them.

pub(in crate::mysql) mod as_row;
pub(in crate::mysql) mod branches;
pub mod by_hand;
pub(in crate::mysql) mod executed;
pub(in crate::mysql) mod intent;
pub(in crate::mysql) mod load;
pub(in crate::mysql) mod retries;
pub(in crate::mysql) mod statements;
pub mod status;
pub(in crate::mysql) mod stops;
pub(in crate::mysql) mod tables;

pub use self::tables::{KEPT_GTIDS, SCHEMA, TABLES, create};
