//! The binlog server: a source's binary logs, kept exactly.
//!
//! Each floor imports floors above it in this table, never one below:
//!
//! | Folder | Is |
//! |---|---|
//! | `inventory/` | what can be served: the files up to where they are durable, their GTIDs, the source's facts |
//! | `mirror/` | writes a copy of the source's files: under their names, byte for byte at the same positions; nothing counts before it is durable |
//! | `archive/` | puts the mirror into an object store (crate `archive`), on a thread of its own |
//! | `accounts/` | the accounts that may attach |
//! | `semisync/` | acknowledgements: to the source, and from replicas and other mirrors |
//! | `retag/` | new tags from exact write sets: in copies of files, and in the stream that replicas get |
//! | `group/` | makes one transaction of several consecutive ones, for a replica that is behind |
//! | `queries/` | statements of replicas and tools, and their answers |
//! | `dump/` | a replica's stream of events: where it begins, artificial events, filters |
//! | `sessions/` | one connection of a client: login, commands |
//! | `standby/` | of two mirrors one lets replicas attach: looks at the other one |
//! | `server/` | the listener, and all connections |
//! | `status/` | the status of a running server, and the socket over which a command asks for it |
//!
//! A mirror is of one source for ever. A source that was reset, restored from a copy, or lost the end of its log is recognised, and the mirror stops: two
//! histories never stand in one folder.
//!
//! This crate never applies anything, never changes an event but for what the servers themselves clear in a file that is closed (and the tags in
//! what `retag/` makes; `group/` leaves rows as they are), and never decides what a replica may skip.

pub mod accounts;
pub mod archive;
pub mod dump;
pub mod group;
pub mod inventory;
pub mod mirror;
pub mod queries;
pub mod retag;
pub mod semisync;
pub mod server;
pub mod sessions;
pub mod standby;
pub mod status;
