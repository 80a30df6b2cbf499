//! XA transactions that are prepared and committed apart.
//!
//! The rows of one are in the log where it was prepared, its COMMIT or ROLLBACK is a transaction of its own. The prepare runs on a
//! connection of its own, which ends the branch if it can (`branches`); one that is closed before leaves it to the server for any other
//! connection to end (MySQL 5.7, MariaDB 10.5 and later). Neither can share a transaction with the progress, so each is announced by an intent, and after a
//! crash `XA RECOVER` tells what became of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::Flavour;
use binlog::gtids::Gtid;
use engine::compact::whole_event;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, Statement, Xid};
use engine::transaction::{Item, Transaction};
use wire::Connection;

use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::TargetInfo;
use crate::mysql::session::MySqlSession;
use crate::mysql::xa::connections::DETACH_TIMEOUT;
use crate::mysql::{Shared, locked};

/// `XAER_NOTA`: there is no such branch, or another connection still has it.
const UNKNOWN_XID: u16 = 1397;

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
pub enum Content {
    /// MariaDB logs branches that changed nothing, too.
    Nothing,
    Rows,
    /// Statements, which may find no row.
    Unknown,
}

pub fn content(items: &[Item]) -> Content {
    let mut content = Content::Nothing;
    for item in items {
        match item {
            Item::Rows(_) => return Content::Rows,
            Item::Statement(statement) if matches!(statement.class.class, Class::XaStart { .. } | Class::XaEnd) => {}
            Item::Statement(_) => content = Content::Unknown,
        }
    }
    content
}

/// Whether the branch is marked: it changed nothing, or it was committed and its mark with it.
pub fn is_marked(session: &mut MySqlSession, xid: &Xid) -> Result<bool, Failure> {
    match session.connection.scalar(session.shared.statements().is_branch_marked(&text(xid))) {
        Ok(count) => Ok(count.as_deref() == Some("1")),
        // A channel of an earlier version.
        Err(error) if error.code() == Some(code::NO_SUCH_TABLE) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// As the servers write it: hexadecimal strings and a number.
pub fn text(xid: &Xid) -> String {
    format!("X'{}',X'{}',{}", hex::encode(&xid.global), hex::encode(&xid.branch), xid.format)
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

/// Prepares the branch with what `fill` puts in, on a connection of its own.
pub fn prepare(
    session: &mut MySqlSession,
    gtid: Option<&Gtid>,
    server_id: u32,
    xid: &Xid,
    fill: &dyn Fn(&mut MySqlSession) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let shared = Arc::clone(&session.shared);
    if !keeps_prepared(&shared.info) {
        return Err(Failure::new(
            FailureKind::Refused,
            "the target rolls a prepared XA transaction back when its connection ends, so it can not be prepared here",
        )
        .remedy("upgrade the target (MySQL 5.7, MariaDB 10.5 or later), or commit in one phase on the source"));
    }
    let mut branches = locked(&shared.branches);
    let mut branch = branches.open(session)?;
    if is_prepared(&mut branch.connection, xid)? {
        // By a connection before.
        branches.give_back(branch);
        return Ok(());
    }
    if let Some(set) = gtid.map_or(Ok(None), |gtid| shared.set_gtid(Some(gtid)))? {
        branch.connection.execute(set).map_err(failed)?;
    }
    branch.encoder.set_server_id(server_id);
    let name = text(xid);
    branch.script.statement(format!("XA START {name}"));
    fill(&mut branch)?;
    branch.script.statement(format!("XA END {name}"));
    branch.script.statement(format!("XA PREPARE {name}"));
    branch.script.send(&mut branch.connection)?;
    if !ends_its_own(&shared) {
        return branches.leave(session, xid, branch);
    }
    branches.keep(xid, branch);
    Ok(())
}

/// MariaDB takes no GTID on a connection with a prepared branch (error 1953).
fn ends_its_own(shared: &Shared) -> bool {
    !(shared.sets_gtid() && shared.info.flavour == Flavour::MariaDb)
}

/// The source's GTID of an XA COMMIT or XA ROLLBACK is among those that the target has executed: is its branch prepared there all the same?
pub fn end_left_over(session: &mut MySqlSession, statement: &Statement) -> Result<(), Failure> {
    let Some(xid) = statement.xid.as_ref().filter(|_| is_end(&statement.class)) else { return Ok(()) };
    if !is_prepared(&mut session.connection, xid)? {
        return Ok(());
    }
    tracing::warn!(
        "the target has used up the GTID of the end of branch {} and left it prepared (MySQL 5.7 does where an XA ROLLBACK fails): it is ended without being \
         logged; replicas of the target that have it prepared, too, do not hear of it",
        text(xid)
    );
    let shared = Arc::clone(&session.shared);
    let mut branches = locked(&shared.branches);
    if let Some(branch) = branches.take(xid) {
        branches.leave(session, xid, branch)?;
    }
    branches.settle(session, xid)?;
    session.connection.execute("SET SESSION sql_log_bin=0").map_err(failed)?;
    let ended = end_by_another(session, statement, xid, None);
    session.connection.execute("SET SESSION sql_log_bin=1").map_err(failed)?;
    ended
}

fn is_end(class: &Class) -> bool {
    matches!(class, Class::XaCommit { .. } | Class::XaRollback)
}

/// The items of a transaction, or of a piece of it, in the branch that has begun.
pub fn apply(branch: &mut MySqlSession, transaction: &Transaction) -> Result<(), Failure> {
    for item in transaction.items() {
        match item {
            Item::Rows(rows) => branch.push(&[whole_event(rows)])?,
            Item::Statement(statement) => match statement.class.class {
                Class::XaStart { .. } | Class::XaEnd => {}
                _ => {
                    branch.script.send(&mut branch.connection)?;
                    crate::mysql::statements::statement::execute(branch, statement)?;
                }
            },
        }
    }
    branch.script.send(&mut branch.connection).map(|_| ())
}

/// XA COMMIT or XA ROLLBACK of a branch that was prepared before, under the transaction's GTID.
pub fn end(session: &mut MySqlSession, transaction: &Transaction, statement: &Statement) -> Result<(), Failure> {
    let Some(xid) = &statement.xid else {
        return Err(Failure::new(FailureKind::Refused, "an XA statement without its identifier"));
    };
    let shared = Arc::clone(&session.shared);
    let set = shared.set_gtid(transaction.gtid.as_ref())?;
    let mut branches = locked(&shared.branches);
    if let Some(mut branch) = branches.take(xid) {
        let name = text(xid);
        let mut run = |sql: &str| branch.connection.execute(sql).map(|_| ()).map_err(failed);
        match set.as_deref().map_or(Ok(()), &mut run).and_then(|()| run(&format!("XA {} {name}", verb(statement)))) {
            Ok(()) => {
                branch.after_own_commit()?;
                branches.give_back(branch);
                return Ok(());
            }
            // Where it is in this nobody knows: who connects anew waits for its end.
            Err(lost) if lost.kind == FailureKind::ConnectionLost => return Err(lost),
            // The other way knows what that may mean.
            Err(failure) => {
                tracing::debug!("branch {name}: {failure}");
                branches.leave(session, xid, branch)?;
            }
        }
    }
    branches.settle(session, xid)?;
    end_by_another(session, statement, xid, set.as_deref())
}

fn verb(statement: &Statement) -> &'static str {
    if matches!(statement.class, Class::XaRollback) { "ROLLBACK" } else { "COMMIT" }
}

/// The branch is the server's. `set`: what gives its end the source's GTID. An end that fails leaves MySQL's `gtid_next` undefined: nothing but another
/// `SET` goes through then (error 1837), so it is taken back before anything is asked.
fn end_by_another(
    session: &mut MySqlSession,
    statement: &Statement,
    xid: &Xid,
    set: Option<&str>,
) -> Result<(), Failure> {
    let since = Instant::now();
    loop {
        if let Some(set) = set {
            session.connection.execute(set).map_err(failed)?;
        }
        match session.connection.execute(format!("XA {} {}", verb(statement), text(xid))) {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some(UNKNOWN_XID) => {
                if session.shared.sets_gtid_next() {
                    session.surely("SET SESSION gtid_next='AUTOMATIC'")?;
                }
                if !is_prepared(&mut session.connection, xid)? || since.elapsed() > DETACH_TIMEOUT {
                    if is_marked(session, xid)? {
                        return Ok(());
                    }
                    return Err(failed(error).remedy(
                        "the branch is not prepared on the target: it was ended there by somebody else, or prepared before this \
                         channel began",
                    ));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xid_text() {
        let xid = Xid { global: vec![0, 0xff], branch: Vec::new(), format: 7 };
        assert_eq!(text(&xid), "X'00ff',X'',7");
    }
}
