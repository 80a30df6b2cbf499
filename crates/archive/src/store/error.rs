//! Why a store did not do what it was asked for. It holds no credentials: what a store says is escaped where it is taken in.

/// Why a store did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another try does not help: the URL, the rights, the store's abilities.
    #[error("{0}")]
    Refused(String),
    /// There is no such object.
    #[error("there is no such object")]
    NotFound,
    /// It may work later.
    #[error("{0}")]
    Failed(String),
    /// The process is to end.
    #[error("stopped")]
    Stopped,
}
