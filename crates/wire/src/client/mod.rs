//! The client's side: where to connect, connecting, logging in, statements, binary log dumps.
//!
//! It never retries, starts no thread but the one that ends a connection when it is time to stop, and never prints a password.

mod auth;
mod connect;
pub(crate) mod connection;
pub(crate) mod dump;
pub(crate) mod interrupt;
mod io_error;
mod login;
pub(crate) mod nodes;
pub(crate) mod option_file;
pub(crate) mod options;
pub(crate) mod query;
mod raw;
mod replica_uuid;
mod socket;
pub mod source;
pub(crate) mod stream;
mod tls;
mod tls_errors;
pub(crate) mod trusted_file;
pub(crate) mod url;
mod wait;
