//! MySQL and MariaDB as the target: SQL over ordinary connections.
//!
//! A group's way from its worker to its commit enters each room once:
//!
//! ```text
//!  worker (channel) ── apply, send, commit, run_barrier, run_in_order
//!      │
//!      ▼
//!  target/    worker.rs: which way it goes
//!      │
//!      ├─ with statements, DDL, XA, or too large ──▶ statements/  barrier.rs: one transaction, exactly once
//!      │  (the one connection that all workers                    pipeline.rs: many in one target transaction
//!      │   share for them)                             │       └─▶ xa/  prepare.rs, end.rs, on connections of their own
//!      ├─ rows only                                    │
//!      ▼                                               ▼
//!  session/   connection.rs: BEGIN, rows, progress, COMMIT · one_statement.rs: all of it as one statement
//!      │
//!      ├──▶ rows/      RowWriter: batches → SQL        (binlog_statement/ is the only writer so far)
//!      ├──▶ progress/  the same transaction records what it has applied: statements.rs, or as_row.rs in the one statement
//!      ▼
//!  script/    packets of statements, and their answers ──▶ the server
//!
//!  catalogue/ definitions of tables, for the feeder; it leaves in rows/quirks.rs what writing rows has to know of them
//!  server/    what the target is, its errors, unsafe settings, privileges, how SQL is quoted
//! ```
//!
//! `target` uses all other rooms, `statements` and `xa` use `session`; `session` knows none of these. What they share comes in small structs:
//! `ChannelContext` (how to connect, `GtidRules`, `Lease`, `TableQuirks`), `BarrierContext`, `Unfinished`.

mod catalogue;
pub mod progress;
mod rows;
mod script;
pub mod server;
mod session;
mod statements;
mod target;
mod xa;

pub use self::session::channel::{AccountStatements, Ddl};
pub use self::session::gtids::Gtids;
pub use self::session::settings::Logged;
pub use self::target::MySqlTarget;
