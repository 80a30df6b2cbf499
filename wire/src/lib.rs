//! The MySQL and MariaDB client protocol as Heddle needs it: blocking, pipelined, with binary log dumps.
//!
//! One [`Connection`] is one TCP or unix socket connection, optionally inside TLS. Queries are sent as they are and
//! may be of any size; several can be in flight ([`Connection::send_query`], [`Connection::read_result`]). A
//! connection turns into a [`BinlogStream`] with [`Connection::binlog_dump`].
//!
//! Map: `options`, `url`, `option_file` (where to connect) → `connection` (connect, log in) over `stream`, `tls`,
//! `handshake`, `auth/` → `query` and `resultset` (statements) or `dump` (binary log). `packet` frames, `cursor`
//! reads fields.
//!
//! It never retries, never reconnects, never decodes binary log events, never starts threads, and never prints a
//! password.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod auth;
mod capabilities;
mod connection;
mod cursor;
mod dump;
mod error;
mod handshake;
mod option_file;
mod options;
mod packet;
mod query;
mod resultset;
mod secret;
mod server_info;
mod stream;
mod tls;
mod url;

pub use connection::Connection;
pub use dump::{BinlogStream, DUMP_NON_BLOCK, DUMP_SEND_ANNOTATE_ROWS, DumpOptions, DumpRequest, Packet};
pub use error::Error;
pub use option_file::OptionFileError;
pub use options::{ConnectOptions, SslMode};
pub use query::Outcome;
pub use resultset::{Column, ColumnIndex, Ok, OkInfo, ResultSet, Row};
pub use secret::Secret;
pub use server_info::ServerInfo;
pub use stream::ShutdownHandle;
pub use url::{UrlError, UrlWarnings};
