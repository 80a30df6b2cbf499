//! What was found: the form in which every check says it.

use serde::Serialize;

/// What stands in the way, or should be known.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// Each with what to do. Nothing is done while there is one.
    pub refused: Vec<String>,
    pub warnings: Vec<String>,
    /// What will happen that somebody might not expect.
    pub notes: Vec<String>,
}
