//! Rows as `BINLOG` statements.

pub(in crate::mysql) mod encoder;
