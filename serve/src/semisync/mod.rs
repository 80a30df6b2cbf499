//! Semi-synchronous replication, both ways: when the source is told that a commit is durable here, and what replicas say of theirs.
//!
//! | File | Is |
//! |---|---|
//! | `ack.rs` | what was asked for: `--ack` (pure) |
//! | `quorum.rs` | which other mirrors have what, and what is thereby confirmed (pure) |
//! | `acks.rs` | the quorum between sessions, which bring replies, and the mirror, which waits for them; its members are kept on disk |
//! | `due.rs` | what the source has asked for, and what it is to be told next (pure) |
//! | `acknowledging.rs` | the mirror's part: how it attaches, and that it tells the source |
//! | `identity.rs` | by what a mirror is known, in its folder |
//! | `kept.rs` | small files in the mirror's folder |
//! | `lease.rs` | a lock on the source: of two mirrors with one identity only one is attached |
//! | `replies.rs` | a session's part: what a replica's stream asks for, and its replies |
//! | `wake.rs` | wakes who waits for a socket |
//!
//! A source that is attached to takes everything before the place that is asked for as acknowledged (`sql/semisync_master.cc`, `plugin/semisync/semisync_source_plugin.cc`). So a
//! mirror attaches as a semi-synchronous replica only from a place up to which all is confirmed.
//!
//! Nothing here reads or writes a log, and nothing delays what comes or is sent.

mod ack;
pub(crate) mod acknowledging;
mod acks;
mod due;
mod identity;
mod kept;
mod lease;
mod quorum;
pub(crate) mod replies;
pub(crate) mod wake;

pub use self::ack::Ack;
pub use self::acks::Acks;
