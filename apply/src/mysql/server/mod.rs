//! What kind of server the target is, what its errors mean, and how its SQL is quoted.

pub mod errors;
pub mod info;
pub(in crate::mysql) mod privileges;
pub mod remedies;
pub mod sql;
pub mod unsafe_settings;
