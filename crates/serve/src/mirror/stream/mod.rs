//! What an event of the source's stream is to a file of the mirror. Pure: nothing here opens a file or a connection.

mod continuity;
mod receive;

pub use self::continuity::{Continuity, GtidBreak};
pub use self::receive::{Arrival, EventReceiver, FileEnding, Refusal, follows};
