//! Prepares the XA branches that were deferred and whose ends have not come: at the beginning of a run, and at its end. Ends those that it has prepared
//! without the target having logged it.
//!
//! A branch is deferred where its end comes soon: then its rows are applied with its end, and it is never prepared on the target
//! (`progress/branches`).

use std::sync::{Arc, Mutex};

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, Statement, Xid};
use engine::transaction::Transaction;
use wire::Connection;

use super::connections::Branches;
use super::end::{end_unlogged, is_end};
use super::prepare::{LogEntry, Origin, is_prepared, prepare};
use crate::Range;
use crate::mysql::progress::branches::kept_branches::{self, forget};
use crate::mysql::progress::branches::open_branches::{self, OpenBranch, PREPARED};
use crate::mysql::progress::executed_gtids;
use crate::mysql::progress::tables::SCHEMA;
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
    let name = channel.lease.channel();
    let kept = kept_branches::read(control, name)?;
    let mut open = open_branches::read(control, name)?;
    open.retain(|branch| !branch.is_prepared());
    if kept.is_empty() && open.is_empty() {
        return Ok(None);
    }
    tracing::info!("{} XA branches whose end was not reached are prepared on the target now", kept.len() + open.len());
    let mut connection = ChannelConnection::open(channel, STATEMENTS)?;
    for branch in &kept {
        let origin = Origin { logged_as: LogEntry::Own, server_id: branch.server_id, runs_statements: false };
        prepare_one(&mut connection, branches, origin, &branch.xid, &branch.rows)
            .map_err(|failure| failure.at(format!("XA branch {}, kept in {SCHEMA}.kept_branches", branch.name)))?;
        connection.execute(forget(name, &branch.xid))?;
    }
    for branch in &open {
        prepare_open(&mut connection, branches, branch)
            .map_err(|failure| failure.at(format!("XA branch {}, kept in {SCHEMA}.open_branches", branch.name)))?;
    }
    Ok(Some(connection))
}

fn prepare_one(
    by: &mut ChannelConnection,
    branches: &Mutex<Branches>,
    origin: Origin<'_>,
    xid: &Xid,
    rows: &str,
) -> Result<(), Failure> {
    prepare(by, branches, origin, xid, &|branch| {
        branch.write_stored_rows(rows)?;
        Ok(())
    })
}

/// MySQL: under the GTID of the transaction that prepared it on the source, which is not executed before. MariaDB: its position is past that one
/// already, so nothing is logged.
fn prepare_open(by: &mut ChannelConnection, branches: &Mutex<Branches>, open: &OpenBranch) -> Result<(), Failure> {
    let channel = Arc::clone(by.channel_context());
    if by.info().flavour == Flavour::MariaDb {
        let origin = Origin { logged_as: LogEntry::Nothing, server_id: open.server_id, runs_statements: false };
        prepare_one(by, branches, origin, &open.xid, &open.rows)?;
        return channel.run_unlogged(&[open_branches::set_end(channel.lease.channel(), open, PREPARED)]);
    }
    let gtid = by.gtids().preserved(open.gtid.as_ref())?;
    let is_executed = match gtid {
        Some(gtid) => executed_gtids::is_executed(&mut by.wire, gtid)?,
        None => false,
    };
    if !is_executed {
        let origin = Origin {
            logged_as: gtid.map_or(LogEntry::Own, LogEntry::Source),
            server_id: open.server_id,
            runs_statements: false,
        };
        prepare_one(by, branches, origin, &open.xid, &open.rows)?;
    }
    channel.run_unlogged(&[open_branches::forget(channel.lease.channel(), open)])
}

/// The branch that the statement ends, if the target has not logged that it is prepared.
pub fn ended_by(by: &mut ChannelConnection, statement: &Statement) -> Result<Option<OpenBranch>, Failure> {
    let Some(xid) = statement.xid.as_ref().filter(|_| is_end(&statement.class)) else { return Ok(None) };
    if by.info().flavour != Flavour::MariaDb {
        return Ok(None);
    }
    let channel = by.channel().to_owned();
    open_branches::find(&mut by.wire, &channel, xid)
}

/// Ends such a branch as if it had never been prepared: its rows, if it commits, are those of the transaction that ends it.
///
/// Whatever a crash leaves, the branch's rows are still recorded until that transaction commits with the progress.
pub fn end(
    by: &mut ChannelConnection,
    branches: &Mutex<Branches>,
    open: &OpenBranch,
    statement: &Statement,
    transaction: &Transaction,
    range: Range<'_>,
) -> Result<(), Failure> {
    let channel = Arc::clone(by.channel_context());
    let is_prepared = is_prepared(&mut by.wire, &open.xid)?;
    if open.is_prepared() {
        if !is_prepared {
            let message = format!(
                "branch {} was prepared on the target by heddle, and is not any more: it was ended there by somebody else",
                open.name
            );
            return Err(Failure::new(FailureKind::Refused, message).remedy(
                "see whether its rows are as on the source, and go on behind this transaction with a new --channel and --start",
            ));
        }
        channel.run_unlogged(&[open_branches::set_end(channel.lease.channel(), open, transaction.seq)])?;
    }
    if is_prepared {
        end_unlogged(by, branches, &open.xid, "ROLLBACK")?;
    }
    by.begin(transaction)?;
    if !matches!(statement.class, Class::XaRollback) {
        by.write_stored_rows(&open.rows)?;
    }
    by.record_and_commit(range)
}
