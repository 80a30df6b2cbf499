//! What `heddle inspect` finds in a log, in few words: for those who show it beside other things.

use serde::{Deserialize, Serialize};

use super::InspectReport;
use output::numbers::percent;

/// Something in the log that holds replicas back.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogCause {
    pub cause: String,
    /// Of the longest chain; null where it is not measured by that.
    pub share: Option<f64>,
    /// Where to change something: `source`, `replica`, `application`, `heddle`.
    pub server: String,
    /// What to change, in a few words.
    pub change: String,
}

impl LogCause {
    /// The worst first.
    pub fn of(report: &InspectReport, most: usize) -> Vec<Self> {
        let causes = report.findings.iter().map(|found| Self {
            cause: found.title.clone(),
            share: found.critical_share,
            server: found.server.to_owned(),
            // Who shows this reads definitions from a server, and has no --schema.
            change: match found.kind.as_str() {
                "keys_unknown" | "writeset_keys_unknown" => {
                    "GRANT SELECT ON *.* TO the account that heddle uses here, so that it can read the tables' keys"
                        .to_owned()
                }
                "key_of_unknown_collation" => String::new(),
                _ => found.change.to_owned(),
            },
        });
        causes.take(most).collect()
    }

    pub fn words(&self) -> String {
        let share = self.share.map_or_else(String::new, |share| format!(" ({} of the longest chain)", percent(share)));
        let change = if self.change.is_empty() { String::new() } else { format!(": {}", self.change) };
        format!("{}{share}{change}", self.cause)
    }
}
