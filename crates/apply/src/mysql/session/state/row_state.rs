//! What of a session matters to rows.

use std::sync::Arc;

use engine::row_session::RowSession;

/// What of a session matters to rows.
#[derive(Debug, PartialEq, Eq)]
pub struct RowState {
    /// The source's.
    pub session: Option<Arc<RowSession>>,
    /// Literals of TIMESTAMP columns are in UTC.
    pub has_timestamps: bool,
}
