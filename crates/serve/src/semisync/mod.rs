//! Semi-synchronous replication, both ways: acknowledgements to the source, and replies of replicas and other mirrors.
//!
//! | File | Is |
//! |---|---|
//! | `ack.rs` | what `--ack` requires (pure) |
//! | `quorum.rs` | which other mirrors have which part, and what is confirmed by that (pure) |
//! | `acks.rs` | the quorum, shared by the sessions and the mirror; its members are stored on disk |
//! | `pending_ack.rs` | what the source waits for, and the next acknowledgement (pure) |
//! | `acknowledger.rs` | attaches to the source, and acknowledges |
//! | `identity.rs` | the mirror's identity, in its folder |
//! | `json_file.rs` | small files in the mirror's folder |
//! | `lease.rs` | a lock on the source: of two mirrors with one identity only one is attached |
//! | `replies.rs` | one replica's stream: which events need a reply, and the replies |
//!
//! A source takes everything before the requested start as acknowledged (`sql/semisync_master.cc`, `plugin/semisync/semisync_source_plugin.cc`). So a mirror attaches as a
//! semi-synchronous replica only at a position up to which all is confirmed.
//!
//! Nothing here reads or writes a log, or delays a stream.

mod ack;
mod acknowledger;
mod acks;
mod identity;
mod json_file;
mod lease;
mod pending_ack;
mod quorum;
pub(crate) mod replies;

pub use self::ack::Ack;
pub use self::acks::Acks;
