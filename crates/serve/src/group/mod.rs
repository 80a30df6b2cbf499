//! Makes one transaction of several consecutive ones, for a replica that is behind.
//!
//! A group has the rows events of its transactions, unchanged and in their order, and the GTID of the last one. The replica commits it once. Nothing else changes, so no table
//! definition is needed.
//!
//! | File | Is |
//! |---|---|
//! | `member.rs` | whether a transaction can be in a group, and its parts |
//! | `statement.rs` | which rows events the servers may take as one statement |
//! | `open_group.rs` | a group, and its events |
//! | `clock.rs` | MySQL: `last_committed` and `sequence_number` of what is sent |
//! | `group_builder.rs` | event by event: what is held, what is sent |
//! | `window.rs` | MariaDB, several domains: groups wait until enough of the log behind them is known |
//! | `group_log.rs` | the log of groups that a replica was sent: a file |
//! | `settle.rs` | MySQL: makes the other GTIDs of a group known to the replica, in the stream |
//!
//! Two rules keep it exact. First, a group is recorded, durably, before a byte of it is sent: a replica that reports the GTID of a group has all of it. Second, a MariaDB replica that
//! lost its connection inside a group counts the events that it has and takes the rest, so it is sent the same group again.
//!
//! This module does not decide where a stream begins, and applies nothing.

mod clock;
mod group_builder;
mod group_log;
mod member;
mod open_group;
mod settle;
mod statement;
mod window;

pub use self::group_builder::{Domains, FirstTransaction, GroupBuilder, GroupMismatch, Replica};
pub use self::group_log::{GroupLog, of_another, others, unsaid};
pub use self::open_group::{FormedGroup, Limits};
pub use self::settle::settle;
