//! Facts about the source besides its logs: what a replica asks a server for. The mirror reads them when it connects, and stores them beside the files, so that replicas get answers
//! while the source is away.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wire::{Connection, Error};

/// The file that keeps it.
pub const FILE: &str = "heddle-source.json";

/// Facts about a source, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFacts {
    /// The version as its greeting has it.
    pub greeting: String,
    /// Number of the collation in its greeting.
    pub charset: u8,
    /// Major, minor, patch.
    pub version: (u16, u16, u16),
    /// `SHOW GLOBAL VARIABLES`, by their names in lower case.
    pub variables: BTreeMap<String, String>,
}

/// The vendor and version family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionFamily {
    MySql,
    MariaDb,
}

impl SourceFacts {
    /// Asks the source.
    pub fn ask(connection: &mut Connection) -> Result<Self, Error> {
        let server = connection.server().clone();
        let mut variables = BTreeMap::new();
        for row in connection.rows("SHOW GLOBAL VARIABLES")? {
            let name = row.required_text(0)?.to_ascii_lowercase();
            // A value may be any bytes, such as a path's.
            let value = String::from_utf8_lossy(row.get(1).unwrap_or_default()).into_owned();
            variables.insert(name, value);
        }
        Ok(Self { greeting: server.greeting, charset: server.charset, version: server.version, variables })
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    pub fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// The contents of [`FILE`].
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec_pretty(self)
    }

    pub fn family(&self) -> VersionFamily {
        if self.greeting.to_ascii_lowercase().contains("mariadb") {
            VersionFamily::MariaDb
        } else {
            VersionFamily::MySql
        }
    }

    pub fn is_mariadb(&self) -> bool {
        self.family() == VersionFamily::MariaDb
    }

    pub fn at_least(&self, major: u16, minor: u16, patch: u16) -> bool {
        self.version >= (major, minor, patch)
    }

    /// Whether the version's texts say "replica" and "source".
    pub fn says_replica(&self) -> bool {
        !self.is_mariadb() && self.at_least(8, 0, 26)
    }

    /// A variable's value, as SHOW VARIABLES has it.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The source's `server_id`.
    pub fn server_id(&self) -> u32 {
        self.variable("server_id").and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}
