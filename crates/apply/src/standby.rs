//! Who waits for a channel that another process has, and what the two see of each other on the target.

use serde::Serialize;

/// What the process that has the channel says of itself, again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceContact {
    #[default]
    Reached,
    /// It does not hear its source.
    Lost,
}

/// A sign of life. The next one is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The connection that gives it.
    pub connection: u64,
    pub phase: usize,
    pub source: SourceContact,
}

/// What a process that waits sees of the channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelView {
    /// The connection that holds the channel's lock; `None`: no process has the channel.
    pub holder: Option<u64>,
    /// The last sign of life; `None`: there is none, as of a process of an earlier version.
    pub sign: Option<Sign>,
    /// Somebody asks that another process takes the channel.
    pub is_asked: bool,
    /// How often the channel was taken so far.
    pub epoch: u64,
    /// The last transaction that is recorded.
    pub applied: u64,
    /// Who has the channel may be at a node of the target that does not answer.
    pub is_partial: bool,
}

/// What a process that waits says of itself: `heddle status` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StandbyReport {
    /// FILE:OFFSET up to where it has received the source's log; empty: nothing yet.
    pub received: String,
    /// What the source's log has behind that.
    pub behind_bytes: Option<u64>,
    /// How old the last event was when it came; 0: it has all.
    pub behind_ms: Option<u64>,
    /// Why it would not take the channel now; empty: it would.
    pub obstacle: String,
}

/// One process that waits for a channel, for `heddle status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StandbyStatus {
    pub host: String,
    pub pid: u32,
    /// Since when it waits, microseconds since 1970.
    pub since_us: u64,
    /// FILE:OFFSET up to where it has received the source's log; null: nothing yet.
    pub received_position: Option<String>,
    /// Bytes of the source's log that it has not received; null: not known.
    pub behind_bytes: Option<u64>,
    /// How old the last event was when it came, in seconds; 0: it has all; null: not known.
    pub behind_seconds: Option<f64>,
    /// Why it would not take the channel now; null: it would.
    pub obstacle: Option<String>,
    /// Since it has said so, in seconds.
    pub seen_seconds: f64,
}
