//! The status of a running server: one snapshot for `heddle status`, metrics and log lines; and the socket in the mirror's folder, over which a command of the same machine asks.
//!
//! It reads what the other floors offer: the mirror's state, the inventory, the progress of new tags, the clients. No other folder imports it, and it waits for no replica.

pub mod control;
mod folder;
mod snapshot;
mod source_end;
mod view;

pub use self::folder::status_of_folder;
pub use self::snapshot::{
    Lag, LinkState, ListenerStatus, MirrorStatus, ReceivedStatus, ReplicaStatus, RetagStatus, Snapshot, SourceStatus,
    StandbyStatus,
};
pub use self::view::{Detail, View};
