//! What `--dry-run` finds out before a run: filled by the target and by who looks at the source, worded by the command.

use binlog::Flavour;
use serde::Serialize;

use crate::definitions::Definitions;

#[derive(Debug, Default, Serialize)]
pub struct Checks {
    /// Of the run.
    pub workers: usize,
    /// What would work as it is.
    pub ok: Vec<String>,
    /// What may hurt, but does not stop the channel.
    pub warnings: Vec<String>,
    /// What would stop it, with what to do.
    pub problems: Vec<String>,
}

/// What a target compares itself with: a live source that could be asked.
pub struct SourceFacts {
    pub flavour: Flavour,
    pub version: (u16, u16, u16),
    pub version_text: String,
    pub tables: Definitions,
}

impl SourceFacts {
    /// For people: `MySQL 9.7.0`.
    pub fn describe(&self) -> String {
        format!("{} {}", self.flavour, self.version_text)
    }
}
