//! XA transactions that are prepared and committed apart.
//!
//! The rows of one are in the log where it was prepared, its COMMIT or ROLLBACK is a transaction of its own. The prepare runs on a
//! connection that is closed afterwards: the servers then keep the branch for any other connection to end (MySQL 5.7,
//! MariaDB 10.5 and later). Neither can share a transaction with the progress, so each is announced by an intent, and after a
//! crash `XA RECOVER` tells what became of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::Flavour;
use engine::compact::whole_event;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, Statement, Xid};
use engine::transaction::{Item, Transaction};
use wire::Connection;

use super::failures::{code, failed};
use super::session::MySqlSession;

/// `XAER_NOTA`: there is no such branch, or another connection still has it.
const UNKNOWN_XID: u16 = 1397;
/// How long a server may take to let go of the branch of a connection that was closed.
const DETACH_TIMEOUT: Duration = Duration::from_secs(60);
const DETACH_POLL: Duration = Duration::from_micros(500);

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
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("X'{}',X'{}',{}", hex(&xid.global), hex(&xid.branch), xid.format)
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

/// Prepares the branch with what `fill` puts in, on a connection of its own.
pub fn prepare(
    session: &mut MySqlSession,
    transaction: &Transaction,
    xid: &Xid,
    fill: &dyn Fn(&mut MySqlSession) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let shared = Arc::clone(&session.shared);
    let keeps = match shared.info.flavour {
        Flavour::MySql => shared.info.version >= (5, 7, 7),
        Flavour::MariaDb => shared.info.version >= (10, 5, 0),
    };
    if !keeps {
        return Err(Failure::new(
            FailureKind::Refused,
            "the target rolls a prepared XA transaction back when its connection ends, so it can not be prepared here",
        )
        .remedy("upgrade the target (MySQL 5.7, MariaDB 10.5 or later), or commit in one phase on the source"));
    }
    let mut branch = MySqlSession::open(shared, super::session::XA)?;
    if is_prepared(&mut branch.connection, xid)? {
        // By the connection before, whose end was waited for.
        return Ok(());
    }
    if let Some(set) = branch.shared.set_gtid(transaction.gtid.as_ref())? {
        branch.connection.execute(set).map_err(failed)?;
    }
    branch.encoder.set_server_id(transaction.server_id);
    let xid = text(xid);
    branch.script.statement(format!("XA START {xid}"));
    fill(&mut branch)?;
    branch.script.statement(format!("XA END {xid}"));
    branch.script.statement(format!("XA PREPARE {xid}"));
    branch.script.send(&mut branch.connection)?;
    let id = branch.connection.server().connection_id;
    branch.connection.close();
    wait_for_the_end(session, id)
}

/// The branch is free for others once the connection that prepared it is no more. MySQL 5.7 uses up a GTID for an XA ROLLBACK that comes earlier, and fails.
fn wait_for_the_end(session: &mut MySqlSession, connection_id: u64) -> Result<(), Failure> {
    let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID={connection_id}");
    let since = Instant::now();
    while session.connection.scalar(&sql).map_err(failed)?.as_deref() != Some("0") && since.elapsed() < DETACH_TIMEOUT {
        std::thread::sleep(DETACH_POLL);
    }
    Ok(())
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
    session.connection.execute("SET SESSION sql_log_bin=0").map_err(failed)?;
    let ended = end(session, statement);
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
                    super::statement::execute(branch, statement)?;
                }
            },
        }
    }
    branch.script.send(&mut branch.connection).map(|_| ())
}

/// XA COMMIT or XA ROLLBACK of a branch that was prepared before.
pub fn end(session: &mut MySqlSession, statement: &Statement) -> Result<(), Failure> {
    let Some(xid) = &statement.xid else {
        return Err(Failure::new(FailureKind::Refused, "an XA statement without its identifier"));
    };
    let verb = if matches!(statement.class, Class::XaRollback) { "ROLLBACK" } else { "COMMIT" };
    let since = Instant::now();
    loop {
        match session.connection.execute(format!("XA {verb} {}", text(xid))) {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some(UNKNOWN_XID) => {
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
