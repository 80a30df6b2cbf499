//! What is asked of a comparison.

use super::chunks::Pace;
use super::repair::Repair;
use super::report::ShowValues;
use super::state::StateRequest;

pub struct Request {
    pub source: wire::ConnectOptions,
    pub target: wire::ConnectOptions,
    /// Heddle's or the target's own; `None`: the only one.
    pub channel: Option<String>,
    /// The first of two numbers under which the source's log is read.
    pub server_id: u32,
    pub pace: Pace,
    /// Rows of one table that are named; behind these the rest of the table is left.
    pub differences_max: usize,
    pub show_values: ShowValues,
    /// `None`: nothing is repaired.
    pub repair: Option<Repair>,
    /// `None`: an interrupted comparison begins anew.
    pub state: Option<StateRequest>,
}
