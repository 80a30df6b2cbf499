//! The source of a mirror: questions to it, its stream, and which server can take its place. Nothing here writes.

mod connection;
pub(crate) mod history;
pub(crate) mod successor;

pub use self::connection::{Attachment, NextStep, POSITIONS_OF, StreamStart, Upstream, failed, stream};
