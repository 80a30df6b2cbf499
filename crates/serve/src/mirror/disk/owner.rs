//! The owner of a mirror's folder: the source whose files it has. The file is `heddle-mirror.json`, written before the first log file.

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
    /// The end of the former source's folder, if this source has replaced another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seam>,
}

/// The end of a folder whose source was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seam {
    /// The identity of the former source.
    pub source: String,
    /// The end of the last whole transaction.
    pub position: String,
    /// All GTIDs of the mirror at that position.
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

/// Parses the owner's file. `None`: there is none yet.
pub fn parse(found: Option<&[u8]>, dir: &Path) -> Result<Option<Owner>, Failure> {
    let Some(found) = found else { return Ok(None) };
    serde_json::from_slice(found).map(Some).map_err(|error| {
        Failure::new(FailureKind::Refused, format!("{FILE} in {}: {error}", dir.display()))
            .remedy("restore the file from a copy, or mirror into a new --dir")
    })
}
