//! The stream of events for one replica: where it begins, artificial events, filters, and sending.
//!
//! It does what the source would do (`sql/rpl_binlog_sender.cc`, `sql/sql_repl.cc`): a replica cannot tell the two apart. There is one difference. A replica that comes from the
//! source may be ahead of the mirror for a moment, so the server waits for a missing position before it refuses it.

mod artificial_events;
mod context;
mod filter;
mod group_sender;
mod old_replica;
mod outgoing_events;
mod request;
mod send;
mod start;

use wire::server::Peer;

pub use self::context::{Context, DumpError, Progress};
pub(crate) use self::context::{NO_SUCH_FILE, fatal};
pub use self::group_sender::{GroupCounter, GroupCounts, GroupSender};
pub use self::request::{DumpStart, MariaDbStart, MarkedEvents, Request, WaitMode};

/// Sends until the replica leaves, or, when it does not want to wait, up to the end. The caller tells the replica of an error.
///
/// `groups`: the replica is sent groups of transactions.
pub fn run(
    peer: &mut Peer,
    request: &Request,
    context: Context<'_>,
    groups: Option<GroupSender>,
) -> Result<(), DumpError> {
    let start = start::find(peer, request, context)?;
    send::run(peer, request, context, start, groups)
}
