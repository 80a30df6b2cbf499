//! What all streams of a server share, and the errors that end a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wire::server::{PeerError, ServerError};

use crate::group::GroupMismatch;
use crate::inventory::{Inventory, ReadError};
use crate::semisync::replies::ReplyRequest;

/// What all streams of a server share, and the flag that ends this one.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub inventory: &'a Inventory,
    /// Another connection of the same replica has come.
    pub is_replaced: &'a AtomicBool,
    /// Set if the replica is semi-synchronous.
    pub(crate) replying: Option<&'a ReplyRequest<'a>>,
    /// The name of the replica, the same each time it attaches. `None`: it has no name, or will not attach again.
    pub replica: Option<&'a str>,
    /// Records how far the replica was sent the log.
    pub progress: &'a dyn Progress,
}

/// Records how far a replica was sent the log.
pub trait Progress: std::fmt::Debug + Sync {
    /// Everything before this was sent; `timestamp`: the last event's, by the source's clock.
    fn sent(&self, file: &Arc<str>, offset: u64, timestamp: u32);
}

impl Context<'_> {
    pub(super) fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Relaxed)
    }
}

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The replica is told.
    #[error("{0}")]
    Refused(ServerError),
    /// It is gone.
    #[error("{0}")]
    Gone(PeerError),
    /// The replica is told.
    #[error("{0}")]
    Unreadable(ReadError),
}

impl DumpError {
    /// The error for the replica. `Err`: its connection is lost.
    pub fn told(self) -> Result<ServerError, PeerError> {
        match self {
            Self::Refused(error) => Ok(error),
            Self::Unreadable(error) => Ok(fatal_error(error.to_string())),
            Self::Gone(error) => Err(error),
        }
    }
}

impl From<PeerError> for DumpError {
    fn from(error: PeerError) -> Self {
        Self::Gone(error)
    }
}

impl From<GroupMismatch> for DumpError {
    fn from(error: GroupMismatch) -> Self {
        fatal(error.to_string())
    }
}

impl From<ReadError> for DumpError {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error)
    }
}

/// The servers' words.
pub(crate) const NO_SUCH_FILE: &str = "Could not find first log file name in binary log index file";

/// The replica is told, and stops.
pub(crate) fn fatal(message: impl Into<String>) -> DumpError {
    DumpError::Refused(fatal_error(message))
}

/// `ER_MASTER_FATAL_ERROR_READING_BINLOG`: a replica that gets it stops.
fn fatal_error(message: impl Into<String>) -> ServerError {
    ServerError::new(1236, "HY000", message)
}
