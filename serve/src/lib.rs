//! The binlog server: a source's binary logs, kept exactly.
//!
//! | Folder | Is |
//! |---|---|
//! | `mirror/` | a copy of the source's files, under their names, byte for byte at the same positions; what is on disk is durable before anybody relies on it |
//! | `archive/` | the mirror goes into an object store (crate `archive`), beside everything else |
//! | `inventory/` | what can be served: the files up to where they are durable, their GTIDs, and what is known of the source |
//! | `accounts/` | who may attach |
//! | `sessions/` | who is connected: limits, commands |
//! | `queries/` | statements that replicas and tools send, and their answers |
//! | `semisync/` | acknowledgements: to the source, and from replicas and other mirrors |
//! | `group/` | consecutive transactions as one, for a replica that is behind |
//! | `dump/` | a stream of events: where it begins, what is made up, what is left out |
//! | `seen/` | where a running server is, for who looks; the socket over which a command asks |
//! | `retag/` | new tags from exact write sets: copies of files, and what replicas are sent of a mirror |
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
pub mod seen;
pub mod semisync;
pub mod sessions;
