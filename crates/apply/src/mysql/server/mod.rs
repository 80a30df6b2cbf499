//! What kind of server the target is, what its errors mean, and how its SQL is quoted.

pub mod account_tables;
pub mod bookkeeping;
pub mod cluster;
pub(in crate::mysql) mod error_codes;
pub mod errors;
pub(in crate::mysql) mod fixed_settings;
pub(in crate::mysql) mod gtids;
pub(in crate::mysql) mod host;
pub mod info;
pub(in crate::mysql) mod node;
pub(in crate::mysql) mod privilege_probe;
pub(in crate::mysql) mod privileges;
pub mod remedies;
pub(in crate::mysql) mod row_check;
pub(in crate::mysql) mod shown_triggers;
pub mod sql;
pub mod unsafe_settings;

pub use self::privileges::Grants;
