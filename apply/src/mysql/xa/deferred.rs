//! Prepares the XA branches that were deferred and whose ends have not come: at the beginning of a run, and at its end.
//!
//! A branch is deferred where its end comes soon: then its rows are applied with its end, and it is never prepared on the target
//! (`progress/deferred_branches.rs`).

use std::sync::{Arc, Mutex};

use engine::failure::Failure;
use wire::Connection;

use super::connections::Branches;
use super::prepare::{Origin, prepare};
use crate::mysql::progress::deferred_branches::{self, forget};
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::lease::STATEMENTS;

/// Prepares all that are recorded. Returns the connection for statements, if it had to be opened.
///
/// A crash between a prepare and the end of its record is no harm: then the branch is found prepared.
pub fn prepare_all(
    channel: &Arc<ChannelContext>,
    branches: &Mutex<Branches>,
    control: &mut Connection,
) -> Result<Option<ChannelConnection>, Failure> {
    let found = deferred_branches::read(control, channel.lease.channel())?;
    if found.is_empty() {
        return Ok(None);
    }
    tracing::info!("{} XA branches whose end was not reached are prepared on the target now", found.len());
    let mut connection = ChannelConnection::open(channel, STATEMENTS)?;
    for deferred in &found {
        let origin = Origin { gtid: None, server_id: deferred.server_id };
        prepare(&mut connection, branches, origin, &deferred.xid, &|branch| {
            branch.write_stored_rows(&deferred.rows);
            Ok(())
        })
        .map_err(|failure| failure.at(format!("XA branch {}, kept in heddle.kept_branches", deferred.name)))?;
        connection.execute(forget(channel.lease.channel(), &deferred.xid))?;
    }
    Ok(Some(connection))
}
