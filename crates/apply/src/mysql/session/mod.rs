//! Connections of the channel: how they are made, set up and leased, and the target transaction that is open on one.

pub(in crate::mysql) mod bookkeeping_guard;
pub(in crate::mysql) mod channel;
pub(in crate::mysql) mod connect;
pub(in crate::mysql) mod connection;
pub(in crate::mysql) mod grouped_gtids;
pub(in crate::mysql) mod lease;
pub(in crate::mysql) mod one_statement;
mod own_statements;
pub(in crate::mysql) mod owned_gtids;
pub(in crate::mysql) mod settings;
pub(in crate::mysql) mod state;
mod unlogged_connection;
