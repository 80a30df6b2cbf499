//! Consecutive transactions as one: what a replica is sent that is behind.
//!
//! A group has the rows events of its transactions as they stand in the log, in their order, and the GTID of the last one. It is one commit on the replica. Nothing else
//! changes, so no table definition is needed, and none can be wrong.
//!
//! | File | Is |
//! |---|---|
//! | `member.rs` | whether a transaction can stand in a group, and its parts |
//! | `statement.rs` | which of its statements the servers may take as one |
//! | `forming.rs` | a group, and its events |
//! | `clock.rs` | MySQL: `last_committed` and `sequence_number` of what is sent |
//! | `gather.rs` | event by event: what is held, what is sent |
//! | `told.rs` | which groups a replica was sent: a file |
//! | `settle.rs` | MySQL: the GTIDs of a group that are not its own, made known to the replica in the stream |
//!
//! Two rules keep it exact. A group is noted, durably, before a byte of it is sent: a replica that comes again with the GTID of a group is known to have all of it. And a
//! MariaDB replica that was cut off inside of a group counts the events that it has, and takes the rest: it is sent the same group again.
//!
//! This module decides nothing about where a stream begins and never applies anything.

mod clock;
mod forming;
mod gather;
mod member;
mod settle;
mod statement;
mod told;

pub use self::forming::{Formed, Limits};
pub use self::gather::{First, Gather, NotTheSame, Replica};
pub use self::settle::settle;
pub use self::told::{Told, of_another, others, unsaid};
