//! A stream of events for one replica: where it begins, what is made up in between, what is left out, and the sending itself.
//!
//! It does what the source would do (`sql/rpl_binlog_sender.cc`, `sql/sql_repl.cc`): a replica can not tell the two apart. One thing differs. A replica that comes from the
//! source may be ahead of the mirror for a moment, so what is not here yet is waited for before it is refused.

mod context;
mod filter;
mod grouped;
mod made_up;
mod old_replica;
mod passed_on;
mod request;
mod send;
mod start;

use wire::server::Peer;

pub(crate) use self::context::fatal;
pub use self::context::{Context, DumpError, Progress};
pub use self::grouped::{Grouped, GroupsSent};
pub use self::request::{By, MariaDbStart, Marked, OF_SOURCE, Request, Waiting};

/// Sends until the replica leaves, or, when it does not want to wait, up to the end. The caller tells the replica of an error.
///
/// `grouped`: the replica is sent groups of transactions.
pub fn run(
    peer: &mut Peer,
    request: &Request,
    context: Context<'_>,
    grouped: Option<Grouped>,
) -> Result<(), DumpError> {
    let start = start::find(peer, request, context)?;
    send::run(peer, request, context, start, grouped)
}
