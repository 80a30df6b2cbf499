//! Prepares XA branches, and tells which are prepared.
//!
//! The prepare runs on a connection of its own, which ends the branch if it can (`connections.rs`). A connection that is closed before leaves the
//! branch to the server, for any other connection to end (MySQL 5.7, MariaDB 10.5 and later). A prepare can not share a transaction with the
//! progress, so an intent announces it, and after a crash `XA RECOVER` tells what became of it.

use std::sync::Mutex;

use binlog::Flavour;
use binlog::gtids::Gtid;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, Statement, Xid};
use engine::transaction::Item;
use wire::Connection;

use super::connections::Branches;
use crate::lock::locked;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::xid_text;
use crate::mysql::session::connection::ChannelConnection;

/// The branch that a transaction prepares. MySQL logs XA START and XA END, MariaDB only XA END.
pub fn prepared_by(items: &[Item]) -> Option<&Xid> {
    items.iter().find_map(|item| match item {
        Item::Statement(statement) if matches!(statement.class.class, Class::XaStart { .. } | Class::XaEnd) => {
            statement.class.xid.as_ref()
        }
        _ => None,
    })
}

/// What is known of the changes in a branch before it is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchContent {
    /// MariaDB logs branches that changed nothing, too.
    Nothing,
    Rows,
    /// Statements, which may find no row.
    Unknown,
}

pub fn content(items: &[Item]) -> BranchContent {
    let mut content = BranchContent::Nothing;
    for item in items {
        match item {
            Item::Rows(_) => return BranchContent::Rows,
            Item::Statement(statement) if matches!(statement.class.class, Class::XaStart { .. } | Class::XaEnd) => {}
            Item::Statement(_) => content = BranchContent::Unknown,
        }
    }
    content
}

/// Whether the branch is marked: it changed nothing, or it was committed and its mark with it.
pub fn is_marked(connection: &mut ChannelConnection, xid: &Xid) -> Result<bool, Failure> {
    let question = connection.progress().is_branch_marked(&xid_text(xid));
    match connection.wire.scalar(question) {
        Ok(count) => Ok(count.as_deref() == Some("1")),
        // A channel of an earlier version.
        Err(error) if error.code() == Some(code::NO_SUCH_TABLE) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Whether the target has the branch, prepared.
pub fn is_prepared(connection: &mut Connection, xid: &Xid) -> Result<bool, Failure> {
    Ok(prepared(connection)?.contains(xid))
}

/// All that the target has, prepared.
pub fn prepared(connection: &mut Connection) -> Result<Vec<Xid>, Failure> {
    let mut found = Vec::new();
    for row in connection.rows("XA RECOVER").map_err(failed)? {
        let format: u64 = row.required(0).map_err(failed)?;
        let global: usize = row.required(1).map_err(failed)?;
        let (global, branch) = row.get(3).and_then(|data| data.split_at_checked(global)).unwrap_or_default();
        found.push(Xid { global: global.to_vec(), branch: branch.to_vec(), format });
    }
    Ok(found)
}

/// MySQL 8.0 says "XAER_RMERR: Fatal error occurred in the transaction branch" to an account without `XA_RECOVER_ADMIN`, and the privilege in a warning only.
const RMERR: u16 = 1401;

/// The same on a server whose account need not be shown them; `None`: it is not.
///
/// # Errors
/// The server's, but for the missing privilege.
pub fn shown(connection: &mut Connection) -> Result<Option<Vec<Xid>>, Failure> {
    match prepared(connection) {
        Err(failure) if matches!(failure.code, Some(RMERR | code::SPECIFIC_ACCESS_DENIED)) => {
            tracing::debug!("XA RECOVER: {failure}");
            Ok(None)
        }
        answer => answer.map(Some),
    }
}

/// A number that changes when the statement has been executed.
pub fn fingerprint(connection: &mut Connection, statement: &Statement) -> Result<u64, Failure> {
    match &statement.xid {
        Some(xid) => Ok(u64::from(is_prepared(connection, xid)?)),
        None => Err(Failure::new(FailureKind::Refused, "an XA statement without its identifier")),
    }
}

/// Whether the target keeps a prepared branch when its connection ends.
pub fn keeps_prepared(info: &TargetInfo) -> bool {
    match info.flavour {
        Flavour::MySql => info.version >= (5, 7, 7),
        Flavour::MariaDb => info.version >= (10, 5, 0),
    }
}

/// How the target logs that a branch is prepared.
#[derive(Clone, Copy, Debug)]
pub enum LogEntry<'a> {
    /// Under a GTID of the target's own.
    Own,
    Source(&'a Gtid),
    /// Not at all.
    Nothing,
}

/// What the target's binary log says of a branch: its GTID, and the server that changed its rows.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    pub logged_as: LogEntry<'a>,
    pub server_id: u32,
    /// Statements of the source are executed in it, as they were there.
    pub runs_statements: bool,
}

/// Takes back what is in a branch that failed. Whether something of it stays, for it is in tables without transactions; an error says nothing.
fn leaves_a_part(branch: &mut ChannelConnection, name: &str) -> bool {
    branch.script.clear();
    let _ = branch.wire.execute(format!("XA END {name}"));
    let warned = branch.wire.execute(format!("XA ROLLBACK {name}")).is_ok_and(|done| done.warnings > 0);
    warned && branch.warns_of_a_rest().unwrap_or(true)
}

/// Prepares the branch with what `fill` puts in, on a connection of its own.
pub fn prepare(
    by: &mut ChannelConnection,
    branches: &Mutex<Branches>,
    origin: Origin<'_>,
    xid: &Xid,
    fill: &dyn Fn(&mut ChannelConnection) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !keeps_prepared(by.info()) {
        return Err(Failure::new(
            FailureKind::Refused,
            "the target rolls a prepared XA transaction back when its connection ends, so it can not be prepared here",
        )
        .remedy("upgrade the target (MySQL 5.7, MariaDB 10.5 or later), or commit in one phase on the source"));
    }
    let mut branches = locked(branches);
    let mut branch = branches.open(by)?;
    if is_prepared(&mut branch.wire, xid)? {
        // By a connection before.
        branches.give_back(branch);
        return Ok(());
    }
    match origin.logged_as {
        LogEntry::Own => {}
        LogEntry::Source(gtid) => {
            if let Some(set) = by.gtids().statement(Some(gtid))? {
                branch.execute(set)?;
            }
        }
        LogEntry::Nothing => branch.execute_despite_interruption("SET SESSION sql_log_bin=0")?,
    }
    branch.rows().set_server_id(origin.server_id);
    let name = xid_text(xid);
    if origin.runs_statements {
        // Also for the guard of Heddle's tables, which needs one snapshot.
        branch.script.statement("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    }
    branch.script.statement(format!("XA START {name}"));
    if let Err(failure) = fill(&mut branch).and_then(|()| branch.send()) {
        by.has_left_a_part |= leaves_a_part(&mut branch, &name);
        return Err(failure);
    }
    branch.script.statement(format!("XA END {name}"));
    branch.script.statement(format!("XA PREPARE {name}"));
    branch.send()?;
    if matches!(origin.logged_as, LogEntry::Nothing) || !by.gtids().let_branches_end_on_their_connection() {
        return branches.leave(by, xid, branch);
    }
    branches.keep(xid, branch);
    Ok(())
}
