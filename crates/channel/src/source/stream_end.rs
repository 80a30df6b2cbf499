//! Why one connection's stream ended, and whether another try is of use.

use engine::failure::Failure;

use super::remedies;
use crate::flow::memory::event_memory::EventMemory;

#[derive(Debug)]
pub enum StreamEnd {
    /// The run stops.
    Stopped,
    /// Worth another try.
    Lost(String),
    /// An event came damaged. On the way: asking again helps. In the source's log: it comes damaged each time.
    Damaged(String),
    Failed(Failure),
}

/// What an error of the connection to the source means.
pub fn of_error(error: &wire::Error, memory: EventMemory) -> StreamEnd {
    if error.is_transient_network() || matches!(error, wire::Error::DumpEnded | wire::Error::ShutDown) {
        return StreamEnd::Lost(error.to_string());
    }
    StreamEnd::Failed(remedies::of_stream(error, memory))
}
