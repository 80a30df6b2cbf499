//! Ends XA branches that were prepared before: XA COMMIT and XA ROLLBACK are transactions of their own in the log.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, Statement, Xid};
use engine::transaction::Transaction;

use super::connections::{Branches, DETACH_TIMEOUT};
use super::prepare::{is_marked, is_prepared};
use crate::lock::locked;
use crate::mysql::server::errors::failed;
use crate::mysql::server::gtids::AUTOMATIC;
use crate::mysql::server::sql::xid_text;
use crate::mysql::session::connection::ChannelConnection;

/// `XAER_NOTA`: there is no such branch, or another connection still has it.
const UNKNOWN_XID: u16 = 1397;
const POLL: Duration = Duration::from_millis(5);

/// Ends the branch under the transaction's GTID.
pub fn end(
    by: &mut ChannelConnection,
    branches: &Mutex<Branches>,
    transaction: &Transaction,
    statement: &Statement,
) -> Result<(), Failure> {
    let Some(xid) = &statement.xid else {
        return Err(Failure::new(FailureKind::Refused, "an XA statement without its identifier"));
    };
    let set = by.gtids().statement(transaction.gtid.as_ref())?;
    let mut branches = locked(branches);
    if let Some(mut branch) = branches.take(xid) {
        match end_own(&mut branch, statement, xid, set.as_deref()) {
            Ok(()) => {
                branch.after_own_commit()?;
                branches.give_back(branch);
                return Ok(());
            }
            // It may still be executing. The next connection waits for its end.
            Err(lost) if lost.kind == FailureKind::ConnectionLost => return Err(lost),
            // The other way knows what that may mean.
            Err(failure) => {
                tracing::debug!("branch {}: {failure}", xid_text(xid));
                branches.leave(by, xid, branch)?;
            }
        }
    }
    branches.settle(by, xid)?;
    end_by_another(by, verb(statement), xid, set.as_deref())
}

/// On the connection that has prepared it. `set`: what gives its end the source's GTID.
fn end_own(branch: &mut ChannelConnection, statement: &Statement, xid: &Xid, set: Option<&str>) -> Result<(), Failure> {
    if let Some(set) = set {
        branch.execute(set)?;
    }
    branch.execute(format!("XA {} {}", verb(statement), xid_text(xid)))
}

/// For the end of a branch whose GTID is among those that the target has executed: ends the branch if it is prepared there all the same.
pub fn end_left_over(
    by: &mut ChannelConnection,
    branches: &Mutex<Branches>,
    statement: &Statement,
) -> Result<(), Failure> {
    let Some(xid) = statement.xid.as_ref().filter(|_| is_end(&statement.class)) else { return Ok(()) };
    if !is_prepared(&mut by.wire, xid)? {
        return Ok(());
    }
    tracing::warn!(
        "the target has used up the GTID of the end of branch {} and left it prepared (MySQL 5.7 does where an XA ROLLBACK fails): it is ended without being \
         logged; replicas of the target that have it prepared, too, do not hear of it",
        xid_text(xid)
    );
    end_unlogged(by, branches, xid, verb(statement))
}

/// The target does not log it. `verb`: `COMMIT` or `ROLLBACK`.
pub fn end_unlogged(
    by: &mut ChannelConnection,
    branches: &Mutex<Branches>,
    xid: &Xid,
    verb: &str,
) -> Result<(), Failure> {
    let mut branches = locked(branches);
    if let Some(branch) = branches.take(xid) {
        branches.leave(by, xid, branch)?;
    }
    branches.settle(by, xid)?;
    by.execute_despite_interruption("SET SESSION sql_log_bin=0")?;
    let ended = end_by_another(by, verb, xid, None);
    by.execute_despite_interruption("SET SESSION sql_log_bin=1")?;
    ended
}

pub fn is_end(class: &Class) -> bool {
    matches!(class, Class::XaCommit { .. } | Class::XaRollback)
}

fn verb(statement: &Statement) -> &'static str {
    if matches!(statement.class, Class::XaRollback) { "ROLLBACK" } else { "COMMIT" }
}

/// Ends a branch that was left to the server. An end that fails leaves MySQL's `gtid_next` undefined: nothing but another `SET` goes through then
/// (error 1837), so it is set back before anything is asked.
fn end_by_another(by: &mut ChannelConnection, verb: &str, xid: &Xid, set: Option<&str>) -> Result<(), Failure> {
    let since = Instant::now();
    loop {
        if let Some(set) = set {
            by.execute(set)?;
        }
        match by.wire.execute(format!("XA {verb} {}", xid_text(xid))) {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some(UNKNOWN_XID) => {
                if by.gtids().use_gtid_next() {
                    by.execute_despite_interruption(AUTOMATIC)?;
                }
                if !is_prepared(&mut by.wire, xid)? || since.elapsed() > DETACH_TIMEOUT {
                    if is_marked(by, xid)? || by.channel_context().skips_unknown_branches() {
                        return Ok(());
                    }
                    return Err(failed(error).remedy(
                        "the branch is not prepared on the target: it was ended there by somebody else, or prepared before this \
                         channel began",
                    ));
                }
                std::thread::sleep(POLL);
            }
            Err(error) => return Err(failed(error)),
        }
    }
}
