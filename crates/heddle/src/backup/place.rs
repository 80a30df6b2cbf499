//! The place that a file names, and its parts as text.

use anyhow::{Context, Result};
use binlog::LogPosition;
use binlog::gtids::GtidState;

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub position: Option<LogPosition>,
    pub gtids: Option<GtidState>,
}

/// A set as tools break it over lines. Empty: none.
pub fn gtids(text: &str) -> Result<Option<GtidState>> {
    let text: String = text.replace("\\n", "").split_whitespace().collect();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| anyhow::anyhow!("GTIDs {text:?}: {error}"))
}

pub fn position(file: &str, offset: &str) -> Result<LogPosition> {
    let offset = offset.parse().with_context(|| format!("position {offset:?}"))?;
    Ok(LogPosition::new(file, offset))
}
