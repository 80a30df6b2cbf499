//! What a stream is made of, and what ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wire::server::{PeerError, ServerError};

use crate::group::NotTheSame;
use crate::inventory::{Inventory, ReadError};
use crate::semisync::replies::Replying;

/// What all dumps of a server share, and what ends this one.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub inventory: &'a Inventory,
    /// Another connection of the same replica has come.
    pub is_replaced: &'a AtomicBool,
    /// It is a semi-synchronous replica.
    pub(crate) replying: Option<&'a Replying<'a>>,
    /// Told where the replica is.
    pub progress: &'a dyn Progress,
}

/// Who wants to know how far a replica is.
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
    /// What the replica is told; `Err`: it is gone.
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

impl From<NotTheSame> for DumpError {
    fn from(error: NotTheSame) -> Self {
        fatal(error.to_string())
    }
}

impl From<ReadError> for DumpError {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error)
    }
}

/// The replica is told, and stops.
pub(crate) fn fatal(message: impl Into<String>) -> DumpError {
    DumpError::Refused(fatal_error(message))
}

/// `ER_MASTER_FATAL_ERROR_READING_BINLOG`: a replica that gets it stops.
fn fatal_error(message: impl Into<String>) -> ServerError {
    ServerError::new(1236, "HY000", message)
}
