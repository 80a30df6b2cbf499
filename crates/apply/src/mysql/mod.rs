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
//!      ├──▶ rows/      RowWriter: batches → SQL        binlog_statement/, or sql/ (INSERT, UPDATE, DELETE)
//!      ├──▶ progress/  the same transaction records what it has applied: statements.rs, or progress_rows.rs in the one statement
//!      ▼
//!  script/    packets of statements, and their answers ──▶ the server
//! ```
//!
//! The floors. A folder imports only folders below it:
//!
//! ```text
//!  target/      the target of one channel: opens it, gives each worker a session, watches locks
//!  operator/    what operators ask of channels, and do to one that does not run
//!  takeover/    signs of life of who has the channel, who waits for it, and who asks for it
//!  statements/  statements of the source: one by one, or many in one target transaction
//!  xa/          prepared branches, on connections of their own
//!  catalogue/   definitions of tables, for the feeder; it leaves in rows/quirks.rs what writing rows has to know of them
//!  session/     connections: settings, lease, the target transaction that is open
//!  progress/    Heddle's own tables, and the statements and rows that change them
//!  rows/        batches of rows as SQL
//!  script/      packets of statements, and their answers
//!  server/      what the target is, its errors, privileges and unsafe settings, which GTIDs it gets, how SQL is quoted
//! ```
//!
//! What the folders share comes in small structs: `ChannelContext` (how to connect, `GtidRules`, `Lease`, `TableQuirks`), `BarrierContext`, `UnfinishedStatements`.

mod catalogue;
pub mod operator;
pub mod progress;
mod rows;
mod script;
pub mod server;
mod session;
mod statements;
pub mod takeover;
mod target;
mod xa;

pub use self::rows::{CompareBefore, HiddenTriggers, RowsAs};
pub use self::server::gtids::Gtids;
pub use self::session::channel::{AccountStatements, Ddl};
pub use self::session::lease::raise_lease;
pub use self::session::settings::BinlogChoice;
pub use self::target::MySqlTarget;
pub use self::target::connect::RowsChoice;
pub use self::target::gtids::copy_gtids;
pub use self::xa::prepare::{prepared_by, shown as shown_branches};
