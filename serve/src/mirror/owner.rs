//! Whose files a folder of a mirror holds: `heddle-mirror.json`, written before the first file.

use std::path::Path;

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use serde::{Deserialize, Serialize};

pub const FILE: &str = "heddle-mirror.json";

/// The source of a folder, for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Of this file's layout.
    version: u32,
    /// `MySQL` or `MariaDB`.
    vendor: String,
    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB).
    pub source: String,
    /// Where the folder of the source before it ends, which this one has taken the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seam>,
}

/// The end of a folder whose source was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seam {
    /// Of the source before.
    pub source: String,
    /// Behind the last whole transaction.
    pub position: String,
    /// All that the mirror had by then.
    pub gtids: String,
}

impl Owner {
    pub fn new(flavour: Flavour, source: &str) -> Self {
        Self { version: 1, vendor: flavour.to_string(), source: source.to_owned(), after: None }
    }

    #[must_use]
    pub fn after(self, seam: Seam) -> Self {
        Self { after: Some(seam), ..self }
    }

    pub fn is(&self, flavour: Flavour, source: &str) -> bool {
        self.is_flavour(flavour) && self.source == source
    }

    pub fn is_flavour(&self, flavour: Flavour) -> bool {
        self.vendor == flavour.to_string()
    }
}

/// Whose a folder is, by its file; `None`: nobody's yet.
pub fn parse(found: Option<&[u8]>, dir: &Path) -> Result<Option<Owner>, Failure> {
    let Some(found) = found else { return Ok(None) };
    serde_json::from_slice(found).map(Some).map_err(|error| {
        Failure::new(FailureKind::Refused, format!("{FILE} in {}: {error}", dir.display()))
            .remedy("restore the file from a copy, or mirror into a new --dir")
    })
}
