//! The channel that a copy is for: it applies the log of the copy's time. One that has begun already goes on meanwhile with what it takes.

use engine::failure::Failure;

use crate::bookkeeping::CopyPlace;
use crate::chunk::TableName;

/// A part of the log that is applied to the tables that are there, overwriting.
#[derive(Clone, Debug)]
pub struct LogPart {
    /// Where a channel that has applied nothing begins.
    pub from: CopyPlace,
    /// Where it ends.
    pub to: CopyPlace,
    /// The tables whose rows it takes. No definitions.
    pub tables: Vec<TableName>,
}

/// A channel to which tables are added. It takes none of them before the copy is done.
pub trait RunningChannel {
    /// It runs from here on, if it does not.
    ///
    /// # Errors
    /// It can not be started.
    fn go_on(&mut self) -> Result<(), Failure>;

    /// It does not run any more when this returns, and has left no gaps. Returns whether it ran.
    ///
    /// # Errors
    /// It stopped for a reason of its own.
    fn hold(&mut self) -> Result<bool, Failure>;

    /// It has applied all that lies before the place when this returns, and nothing behind it. It does not run.
    ///
    /// # Errors
    /// It stopped before.
    fn apply_up_to(&mut self, place: &CopyPlace) -> Result<(), Failure>;
}

/// What a copy does with its channel.
pub struct CopyChannel<'f, 'r> {
    /// Runs over a part of the log.
    pub follow: &'f mut dyn FnMut(&LogPart) -> Result<(), Failure>,
    /// `None`: the channel is new.
    pub running: Option<&'r mut dyn RunningChannel>,
}

impl CopyChannel<'_, '_> {
    pub(super) fn go_on(&mut self) -> Result<(), Failure> {
        self.running.as_mut().map_or(Ok(()), |running| running.go_on())
    }

    pub(super) fn hold(&mut self) -> Result<bool, Failure> {
        self.running.as_mut().map_or(Ok(false), |running| running.hold())
    }

    pub(super) fn apply_up_to(&mut self, place: &CopyPlace) -> Result<(), Failure> {
        self.running.as_mut().map_or(Ok(()), |running| running.apply_up_to(place))
    }
}
