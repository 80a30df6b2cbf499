//! Who holds what a channel waits for on the target, for observers.

/// One session that holds a lock for which a connection of the channel waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockHolder {
    /// Whose connection waits; `None`: the one that runs statements and DDL for all workers.
    pub worker: Option<usize>,
    /// The holder's number on the target, as in SHOW PROCESSLIST; 0: the target does not say who it is.
    pub session: u64,
    /// It is a connection of this channel.
    pub is_own: bool,
    /// `user@host`
    pub account: String,
    /// What it runs now; empty: it is idle in a transaction, or the account may not see it.
    pub statement: String,
    /// Since its last statement began, or ended.
    pub seconds: u64,
}
