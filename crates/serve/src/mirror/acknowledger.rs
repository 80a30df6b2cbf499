//! What the mirror needs from the code that acknowledges to its source. `semisync` implements it, and decides what is acknowledged and when.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use binlog::LogPosition;
use engine::failure::Failure;
use relay::fs::Fs;
use wire::{BinlogStream, ConnectOptions, Connection};

use super::source::Attachment;
use crate::inventory::SourceFacts;

/// Whether and how a mirror acknowledges: what `--ack` says.
pub trait AckPolicy: Debug + Sync {
    /// What acknowledges for the mirror in this folder, which this process has locked. `None`: nothing is acknowledged.
    ///
    /// # Errors
    /// Its files in the folder cannot be read or written.
    fn acknowledger<'a>(
        &'a self,
        fs: &Arc<dyn Fs>,
        dir: &Path,
        server_id: Option<u32>,
    ) -> Result<Option<Box<dyn Acknowledger + 'a>>, Failure>;
}

/// Acknowledges to the source of one mirror.
pub trait Acknowledger {
    /// The mirror's `server_id` at its source. Each folder has its own.
    fn server_id(&self) -> u32;

    /// Takes the lock that only one mirror of this identity has, before the source is asked for a stream: that would end another mirror's stream.
    ///
    /// # Errors
    /// Another mirror has the lock; or the source does not answer.
    fn lease(&mut self, connection: &mut Connection) -> Result<(), Failure>;

    /// How to ask for the log from this position on. The source takes all before it as acknowledged, so it has to be confirmed.
    fn attach(&mut self, at: &LogPosition, facts: &SourceFacts, options: &ConnectOptions) -> Attachment;

    /// Other mirrors have to confirm, too. What they confirm are positions in one source's files.
    fn waits_for_others(&self) -> bool;

    /// The source waits for the event that ends at this position.
    fn asked(&mut self, behind: Option<&LogPosition>);

    /// The source waits.
    fn is_waited_for(&self) -> bool;

    /// Acknowledges what may be acknowledged now.
    ///
    /// # Errors
    /// The connection is lost.
    fn acknowledge(&mut self, stream: &mut BinlogStream, durable: Option<&LogPosition>) -> Result<(), Failure>;

    /// Waits for the next event, or until more may be acknowledged. False: the latter.
    fn event_comes_first(&self, stream: &mut BinlogStream) -> bool;

    /// The source has loaded its semi-synchronous plugin since this connection began. It waits only for replicas that attach from now on.
    fn plugin_has_come(&mut self) -> bool;

    /// The mirror is not attached as a semi-synchronous replica, and now could be.
    fn can_attach(&self, durable: Option<&LogPosition>) -> bool;
}
