//! The MySQL and MariaDB client protocol as Heddle needs it: blocking, pipelined, with binary log dumps.
//!
//! One [`Connection`] is one TCP or unix socket connection, optionally inside TLS. Queries are sent as they are and
//! may be of any size; several can be in flight ([`Connection::send_query`], [`Connection::read_result`]). A
//! connection turns into a [`BinlogStream`] with [`Connection::binlog_dump`].
//!
//! | Folder | Is |
//! |---|---|
//! | `codec/` | the protocol as bytes: `packet` frames, `cursor` reads fields, `handshake`, `error_packet`, `resultset` say what packets mean |
//! | `server/` | the other side: `greeting`, `login`, `auth/` over `stream`, `tls` → `connection` (commands, answers, events) |
//! | `client/` | `options`, `url`, `nodes`, `option_file`, `trusted_file` (where to connect) → `connect`, `login`, `auth/` over `socket`, `stream`, `tls` → `connection` → `query` (statements) or `dump` (binary log) |
//!
//! The other side is not trusted. What it sends before the login is bounded in size and in time, what a statement brings is bounded in size, and its
//! texts are escaped before they reach a message. It never gets a file that nobody offered, nor a password that it could only have by pretending to
//! be the server, unless the options allow it.
//!
//! This crate never retries, never reconnects, never decodes binary log events, starts no thread but the one of [`ShutdownHandle::unless_stopped`], and never prints a password.
#![warn(missing_docs)]

pub mod availability;
mod client;
mod codec;
mod error;
pub mod reach;
mod secret;
pub mod server;

pub use client::connection::Connection;
pub use client::dump::{
    BinlogStream, Checksums, DUMP_NON_BLOCK, DUMP_SEND_ANNOTATE_ROWS, DumpOptions, DumpRequest, Packet,
};
pub use client::interrupt::Interrupt;
pub use client::nodes::Nodes;
pub use client::option_file::OptionFileError;
pub use client::options::{ConnectOptions, Limits, PasswordOptions, SslMode, TlsOptions};
pub use client::query::Outcome;
pub use client::source;
pub use client::stream::ShutdownHandle;
pub use client::trusted_file::{TrustedFile, TrustedFileError};
pub use client::url::{UrlError, UrlWarnings, redacted};
pub use codec::resultset::{Column, ColumnIndex, OkInfo, ResultSet, Row};
pub use codec::server_info::ServerInfo;
pub use error::Error;
pub use secret::Secret;
