//! Whose files a mirror holds: `heddle-mirror.json`, written before the first file.

use binlog::Flavour;
use serde::{Deserialize, Serialize};

pub const FILE: &str = "heddle-mirror.json";

/// The source of a mirror, for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Of this file's layout.
    version: u32,
    /// `MySQL` or `MariaDB`.
    vendor: String,
    /// `server_uuid` (MySQL), `mariadb-server-ID` (MariaDB).
    pub source: String,
}

impl Owner {
    pub fn new(flavour: Flavour, source: &str) -> Self {
        Self { version: 1, vendor: flavour.to_string(), source: source.to_owned() }
    }
}
