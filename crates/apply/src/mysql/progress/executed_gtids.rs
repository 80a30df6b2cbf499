//! `--gtids preserve`: does the target have a transaction already?
//!
//! A transaction and its progress commit together, so this is asked only where they can not, and where the GTID is the progress.
//! Changes to tables without transactions are logged, under the source's GTID, when their statement ends. A server takes a GTID
//! once: MySQL silently skips whatever comes under it again.

use std::sync::Arc;

use binlog::gtids::mysql::parse_uuid;
use binlog::gtids::{Gtid, GtidState};
use engine::Seq;
use engine::failure::{Failure, FailureKind};
use engine::sql::Class;
use engine::transaction::{Item, Transaction};
use wire::Connection;

use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;

/// Whether the target's binary log (MySQL: its set of executed GTIDs) holds it. Only of one that nothing has come after.
pub fn is_executed(connection: &mut Connection, gtid: &Gtid) -> Result<bool, Failure> {
    match gtid {
        Gtid::MySql { .. } => {
            let sql = format!("SELECT GTID_SUBSET({}, @@global.gtid_executed)", quote(&gtid.to_string()));
            Ok(connection.scalar(sql).map_err(failed)?.as_deref() == Some("1"))
        }
        Gtid::MariaDb { domain, server, seq } => {
            // One GTID, the last, for each domain and server. Numbers can go back, so an earlier one may be new all the same.
            let state = connection.scalar("SELECT @@global.gtid_binlog_state").map_err(failed)?.unwrap_or_default();
            let this = Gtid::MariaDb { domain: *domain, server: *server, seq: *seq };
            Ok(state.split(',').any(|last| last.trim().parse::<Gtid>().is_ok_and(|last| last == this)))
        }
    }
}

/// MySQL's set.
pub const ALL: &str = "SELECT @@global.gtid_executed";

/// The same without the GTIDs of the target's own changes. No source's log has these, unless the servers replicate in a ring.
pub fn of_others(connection: &mut Connection) -> Result<GtidState, Failure> {
    let mut executed = parse(connection.scalar(ALL).map_err(failed)?)?;
    let own = connection.scalar("SELECT @@global.server_uuid").map_err(failed)?;
    if let (GtidState::MySql(set), Some(own)) = (&mut executed, own.as_deref().and_then(parse_uuid)) {
        set.forget(&own);
    }
    Ok(executed)
}

/// As a server says it.
pub fn parse(text: Option<String>) -> Result<GtidState, Failure> {
    let parsed = text.unwrap_or_default().parse();
    parsed.map_err(|error| Failure::new(FailureKind::Refused, format!("the target's GTIDs: {error}")))
}

/// MySQL: the last of consecutive transactions up to which all of them are executed. None if the first is not, or is a barrier: barriers
/// have their own way to find out.
pub fn executed_to(connection: &mut Connection, transactions: &[Arc<Transaction>]) -> Result<Option<Seq>, Failure> {
    let single = |transaction: &&Arc<Transaction>| transaction.barrier.is_none() && transaction.gtid.is_some();
    let singles: Vec<&Arc<Transaction>> = transactions.iter().take_while(single).collect();
    let questions: Vec<String> = singles
        .iter()
        .filter_map(|transaction| transaction.gtid.as_ref())
        .map(|gtid| format!("GTID_SUBSET({}, @@global.gtid_executed)", quote(&gtid.to_string())))
        .collect();
    if questions.is_empty() {
        return Ok(None);
    }
    let answers = connection.row(format!("SELECT {}", questions.join(","))).map_err(failed)?;
    let is_executed = |at: usize| answers.as_ref().and_then(|row| row.text(at).ok()?) == Some("1");
    let executed = singles.iter().enumerate().take_while(|&(at, _)| is_executed(at));
    Ok(executed.last().map(|(_, transaction)| transaction.seq))
}

/// Whether some of it may be logged before its end.
pub fn may_be_logged_early(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Rows(_) => !is_transactional(item),
        Item::Statement(statement) => matches!(statement.class.class, Class::Dml { .. } | Class::Unknown),
    })
}

/// Changes to tables with and without transactions under one GTID: the target would log them as two transactions.
pub fn check_not_mixed(transaction: &Transaction, items: &[Item]) -> Result<(), Failure> {
    let rows = || items.iter().filter(|item| matches!(item, Item::Rows(_)));
    if rows().all(is_transactional) || !rows().any(is_transactional) {
        return Ok(());
    }
    Err(Failure::new(
        FailureKind::Refused,
        "one transaction changes tables with and without transactions: the target cannot log both under one GTID",
    )
    .at(transaction.place())
    .remedy("use --gtids local, or move the tables to InnoDB"))
}

fn is_transactional(item: &Item) -> bool {
    match item {
        Item::Rows(rows) => rows.table.as_ref().is_none_or(|table| table.transactional),
        Item::Statement(_) => true,
    }
}
