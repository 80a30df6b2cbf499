//! The server's side: greeting, TLS, logging a client in, its commands, the answers to them, and streams of events.
//!
//! A client is not trusted. Until it has logged in, the size of its packets and the time that it has are bounded; afterwards the size of its statements. A
//! connection is one thread's; nothing here starts a thread, looks up an account (the caller gives [`Accounts`]) or knows what a statement means.

mod answer;
mod auth;
mod connection;
pub mod fuzzed;
mod greeting;
mod login;
mod options;
mod stream;
mod tls;

pub use answer::{Cell, ColumnKind, Rows, ServerError};
pub use auth::{Account, Accounts, Line, Plugin, RsaKey, Sha2Hash, Verifier};
pub use connection::{Closer, EventReply, Peer, refuse};
pub use greeting::login_is_read;
pub use options::{Identity, PeerError, PeerOptions};
pub use tls::{ServerTls, TlsFiles, certificate_end, server_tls};

pub use crate::codec::command::{Command, CommandError, DumpPlace, Registration, RegistrationField, ReportedText};
pub use crate::codec::semi_sync::Reply;
