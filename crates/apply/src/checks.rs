//! What is found out before a run: for `--dry-run` (filled by the target and by who looks at the source, worded by the command), and what a target holds
//! that a new channel has to fit to.

use binlog::Flavour;
use engine::progress::Mark;
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
    /// `None`: the target's are not compared with them, as they are still to be copied.
    pub tables: Option<Definitions>,
}

impl SourceFacts {
    /// For people: `MySQL 9.7.0`.
    pub fn describe(&self) -> String {
        format!("{} {}", self.flavour, self.version_text)
    }
}

/// A foreign key by which a change of a parent's row changes rows of the child (CASCADE, SET NULL, SET DEFAULT).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cascade {
    pub name: String,
    /// Schema and name.
    pub child: (String, String),
    pub parent: (String, String),
}

/// What a target holds that no channel of this name has written.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    /// Schema and name of tables that have rows, a few of them.
    pub filled: Vec<(String, String)>,
    /// It has tables, with rows or without.
    pub has_tables: bool,
    /// Other channels that have begun.
    pub channels: Vec<OtherChannel>,
}

#[derive(Clone, Debug)]
pub struct OtherChannel {
    pub name: String,
    pub mark: Mark,
    /// As the channel has recorded its source.
    pub source: String,
    pub is_running: bool,
    /// The part of its source that it takes; `None`: all.
    pub part: Option<String>,
}
