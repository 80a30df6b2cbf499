//! Transactions that run alone: statements, DDL, mixed ones, and those too large to hold in memory.
//!
//! Statements that commit by themselves (DDL, account statements) can not share a transaction with the progress. Before
//! such a statement an intent is noted: which one, and a fingerprint of what it is about to change. After a
//! crash an unchanged fingerprint says that it was not executed (or that executing it again changes nothing), a
//! changed one that it was. The rest of its transaction then follows with the progress.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, DdlKind, SqlMode};
use engine::transaction::{Body, Item, StatementItem, Transaction};

use super::context::{self, ContextTarget};
use super::executed;
use super::failures::failed;
use super::fingerprint;
use super::session::MySqlSession;
use super::xa;
use crate::runtime::reread::Reread;
use crate::target::{Range, Session};

/// Which statement of which transaction was about to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    pub seq: u64,
    pub item: usize,
    pub fingerprint: u64,
}

impl Intent {
    pub fn to_text(&self) -> String {
        format!("seq={} item={} fingerprint={:016x}", self.seq, self.item, self.fingerprint)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(' ').map(|field| field.split_once('=').map(|(_, value)| value));
        let mut next = || fields.next().flatten();
        Some(Self {
            seq: next()?.parse().ok()?,
            item: next()?.parse().ok()?,
            fingerprint: u64::from_str_radix(next()?, 16).ok()?,
        })
    }
}

pub fn run(
    session: &mut MySqlSession,
    transaction: &Transaction,
    reread: &Reread,
    range: Range<'_>,
) -> Result<(), Failure> {
    if session.shared.sets_gtid()
        && let Some(gtid) = &transaction.gtid
        && executed::is_executed(&mut session.connection, gtid)?
    {
        // By an earlier run, which did not come to note it.
        return session.note_beside(range);
    }
    match &transaction.body {
        Body::Spilled => run_spilled(session, transaction, reread, range),
        Body::Items(items) => run_items(session, transaction, items, range),
    }
}

/// Applies the transaction's events piece by piece as they are read again.
fn run_spilled(
    session: &mut MySqlSession,
    transaction: &Transaction,
    reread: &Reread,
    range: Range<'_>,
) -> Result<(), Failure> {
    session.begin(transaction)?;
    reread.pieces(transaction, &mut |piece| apply_items(session, piece))?;
    session.finish(range)
}

/// All items of a piece, in order.
fn apply_items(session: &mut MySqlSession, piece: &Transaction) -> Result<(), Failure> {
    for (index, item) in piece.items().iter().enumerate() {
        match item {
            Item::Rows(_) => apply_rows(session, piece, index)?,
            Item::Statement(statement) => execute(session, statement)?,
        }
    }
    session.script.send(&mut session.connection).map(|_| ())
}

/// The rows of one item, in their order.
fn apply_rows(session: &mut MySqlSession, transaction: &Transaction, index: usize) -> Result<(), Failure> {
    let Some(Item::Rows(rows)) = transaction.items().get(index) else { return Ok(()) };
    session.push(&[engine::compact::whole_event(rows)])
}

fn run_items(
    session: &mut MySqlSession,
    transaction: &Transaction,
    items: &[Item],
    range: Range<'_>,
) -> Result<(), Failure> {
    if session.shared.sets_gtid() && session.shared.info.log_bin {
        executed::check_not_mixed(transaction, items)?;
    }
    let done_before = session.shared.take_intent(transaction.seq);
    if let Some(xid) = xa::prepared_by(items) {
        let once = Once { transaction, item: 0, range, done_before: done_before.as_ref() };
        let prepared = once.run(
            session,
            |session| Ok(u64::from(xa::is_prepared(&mut session.connection, xid)?)),
            |session| xa::prepare(session, transaction, xid),
        );
        return prepared
            .and_then(|()| note_progress(session, transaction, items, range))
            .map_err(|failure| at_transaction(failure, transaction));
    }
    let atomic = match items.first() {
        Some(Item::Statement(statement)) => starts_transaction(statement) && can_create_atomically(session),
        _ => false,
    };
    if session.shared.sets_gtid() && !atomic && items.len() > 1 && items.iter().any(is_own_commit) {
        return Err(Failure::new(
            FailureKind::Refused,
            "CREATE TABLE … SELECT, one GTID for a statement and rows, can not be applied with --gtids preserve: only MySQL from 8.0.21 on can \
             do both in one transaction",
        )
        .at(transaction.place())
        .remedy("use --gtids local, or create the table by hand and go on after it"));
    }
    for (index, item) in items.iter().enumerate() {
        let outcome = match item {
            Item::Statement(statement) if atomic && index == 0 => {
                let once = Once { transaction, item: index, range, done_before: done_before.as_ref() };
                create_with_rows(session, &once, statement, 1..items.len())
            }
            _ if atomic => Ok(()),
            Item::Statement(statement) if commits_by_itself(statement) => {
                let once = Once { transaction, item: index, range, done_before: done_before.as_ref() };
                run_own_commit(session, &once, statement)
            }
            // Was committed with, or rolled back by, the statement that came after it.
            _ if done_before.as_ref().is_some_and(|intent| index < intent.item) => Ok(()),
            // MySQL before 8.0.13 refuses these inside a transaction when GTIDs are on. A crash takes the table with it.
            Item::Statement(statement) if !session.open && is_temporary_ddl(statement) => execute(session, statement),
            Item::Statement(statement) => {
                session.begin(transaction)?;
                execute(session, statement)
            }
            Item::Rows(_) => {
                session.begin(transaction)?;
                apply_rows(session, transaction, index)
            }
        };
        outcome.map_err(|failure| place_statement(failure, transaction, item))?;
    }
    note_progress(session, transaction, items, range).map_err(|failure| at_transaction(failure, transaction))
}

/// Commits what is open together with the progress.
fn note_progress(
    session: &mut MySqlSession,
    transaction: &Transaction,
    items: &[Item],
    range: Range<'_>,
) -> Result<(), Failure> {
    if !session.shared.sets_gtid() {
        session.begin(transaction)?;
        return session.finish(range);
    }
    // When its GTID went with a statement, what follows must not be taken for a transaction that was executed already.
    if items.iter().any(is_own_commit) {
        return session.note_beside(range);
    }
    session.begin(transaction)?;
    session.script.send(&mut session.connection)?;
    if let Some(gtid) = &transaction.gtid
        && executed::may_be_logged_early(items)
        && executed::is_executed(&mut session.connection, gtid)?
    {
        session.connection.execute("COMMIT").map_err(failed)?;
        session.after_own_commit()?;
        return session.note_beside(range);
    }
    session.finish(range)
}

fn is_own_commit(item: &Item) -> bool {
    matches!(item, Item::Statement(statement) if commits_by_itself(statement))
}

fn at_transaction(failure: Failure, transaction: &Transaction) -> Failure {
    if failure.place.is_empty() { failure.at(transaction.place()) } else { failure }
}

fn place_statement(failure: Failure, transaction: &Transaction, item: &Item) -> Failure {
    if !failure.place.is_empty() {
        return failure;
    }
    let Item::Statement(statement) = item else { return failure.at(transaction.place()) };
    // An account statement can hold a password.
    let text = match &statement.class.class {
        Class::Ddl { kind } if kind.is_account() => "an account statement (text not shown)".to_owned(),
        _ => String::from_utf8_lossy(&statement.query.sql).chars().take(500).collect(),
    };
    failure.at(format!("{}, statement: {text}", transaction.place()))
}

fn commits_by_itself(statement: &StatementItem) -> bool {
    match &statement.class.class {
        Class::Dml { .. }
        | Class::Begin
        | Class::Commit
        | Class::Rollback
        | Class::Savepoint
        | Class::RollbackTo
        | Class::Release
        | Class::SetStatement => false,
        Class::Ddl { kind } => !is_temporary(*kind),
        Class::XaStart { .. } | Class::XaEnd | Class::XaPrepare | Class::XaCommit { .. } | Class::XaRollback => true,
        Class::Unknown => true,
    }
}

/// Temporary tables do not end the transaction.
fn is_temporary(kind: DdlKind) -> bool {
    matches!(kind, DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. })
}

fn is_temporary_ddl(statement: &StatementItem) -> bool {
    matches!(&statement.class.class, Class::Ddl { kind } if is_temporary(*kind))
}

/// What to do once, and how to tell whether it was done.
struct Once<'a> {
    transaction: &'a Transaction,
    /// Index of the item.
    item: usize,
    range: Range<'a>,
    done_before: Option<&'a Intent>,
}

impl Once<'_> {
    /// Notes the intent, then runs it, unless an earlier run did.
    fn run(
        &self,
        session: &mut MySqlSession,
        probe: impl Fn(&mut MySqlSession) -> Result<u64, Failure>,
        run: impl Fn(&mut MySqlSession) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let now = probe(session)?;
        match self.done_before {
            Some(intent) if self.item < intent.item => return Ok(()),
            Some(intent) if self.item == intent.item && now != intent.fingerprint => {
                let place = self.transaction.place();
                tracing::info!(
                    "a statement that was under way when the connection or heddle ended had been executed: {place}"
                );
                return Ok(());
            }
            _ => {}
        }
        let intent = Intent { seq: self.transaction.seq, item: self.item, fingerprint: now };
        let before = (!self.range.island).then_some(self.range.before);
        let noted = session.shared.statements().intend(before, &intent.to_text());
        session.bookkeeping(&noted)?;
        if let Err(failure) = run(session) {
            if failure.kind == FailureKind::ConnectionLost {
                session.shared.keep_intent(intent);
            } else {
                // The server says that it was not executed: what an operator changes now must not be taken for its effect.
                session.rollback()?;
                let cleared = session.shared.statements().intend(before, "");
                session.bookkeeping(&cleared)?;
            }
            return Err(failure);
        }
        session.after_own_commit()
    }
}

fn is_xa(class: &Class) -> bool {
    matches!(
        class,
        Class::XaStart { .. } | Class::XaEnd | Class::XaPrepare | Class::XaCommit { .. } | Class::XaRollback
    )
}

fn run_own_commit(session: &mut MySqlSession, once: &Once<'_>, statement: &StatementItem) -> Result<(), Failure> {
    let class = &statement.class;
    once.run(
        session,
        |session| match is_xa(&class.class) {
            true => xa::fingerprint(&mut session.connection, class),
            false => fingerprint::take(&mut session.connection, class),
        },
        |session| {
            if let Some(set) = session.shared.set_gtid(once.transaction.gtid.as_ref())? {
                session.connection.execute(set).map_err(failed)?;
            }
            match is_xa(&class.class) {
                true => xa::end(&mut session.connection, class),
                false => execute(session, statement),
            }
        },
    )
}

/// One statement with its session state; the session is itself again afterwards.
pub(super) fn execute(session: &mut MySqlSession, statement: &StatementItem) -> Result<(), Failure> {
    execute_text(session, statement, text(statement, false).as_ref())?;
    session.reset()
}

/// Leaves the session with the statement's state.
fn execute_text(session: &mut MySqlSession, statement: &StatementItem, sql: &[u8]) -> Result<(), Failure> {
    session.script.send(&mut session.connection)?;
    let info = &session.shared.info;
    let target = ContextTarget { flavour: info.flavour, version: info.version };
    for set in context::statements(statement, target)? {
        session.connection.query(&set).map_err(failed)?;
    }
    let outcome = match &statement.file {
        None => session.connection.query(sql).map(|_| ()),
        Some(file) => {
            let sql = load_data_text(statement, file);
            session.connection.query_with_local_infile(&sql, &mut file.data.as_slice()).map(|_| ())
        }
    };
    let expected = statement.query.error_code;
    match outcome {
        Err(error) if error.code().is_some_and(|code| code == expected) => Ok(()),
        Err(error) if error.code() == Some(UNKNOWN_TABLE) && is_half_drop(statement) => Ok(()),
        Ok(()) if expected != 0 && !is_kill(expected) => Err(Failure::new(
            FailureKind::Divergence,
            format!("the statement failed with error {expected} on the source, but not on the target"),
        )
        .remedy("compare the tables of this statement on source and target")),
        other => other.map_err(failed),
    }
}

/// `ER_BAD_TABLE_ERROR`
const UNKNOWN_TABLE: u16 = 1051;

/// A DROP TABLE that the server wrote itself, of several tables of which some were missing: MariaDB logs it with error code 0, and it fails
/// again after it has dropped the others.
fn is_half_drop(statement: &StatementItem) -> bool {
    let is_drop = matches!(&statement.class.class, Class::Ddl { kind: DdlKind::DropTable { .. } });
    is_drop
        && statement.class.tables.len() > 1
        && statement.query.sql.trim_ascii_end().ends_with(b"/* generated by server */")
}

/// Error codes that say "it was killed", which a target does not repeat.
fn is_kill(code: u16) -> bool {
    matches!(code, 1053 | 1317 | 1927)
}

/// The statement's text. MySQL's atomic CREATE TABLE … SELECT, logged as `CREATE TABLE … START TRANSACTION` and the rows, runs without
/// these words where it cannot be atomic: its rows follow in a transaction of their own, together with the progress.
fn text(statement: &StatementItem, atomic: bool) -> std::borrow::Cow<'_, [u8]> {
    let sql: &[u8] = &statement.query.sql;
    if atomic || !starts_transaction(statement) {
        return sql.into();
    }
    let mode = SqlMode::from_bits(statement.query.vars.sql_mode.unwrap_or(0));
    let at = engine::sql::start_transaction_at(sql, mode);
    let parts = at.and_then(|at| Some([sql.get(..at.start)?, sql.get(at.end..)?].concat()));
    parts.map_or(sql.into(), Into::into)
}

fn starts_transaction(statement: &StatementItem) -> bool {
    matches!(&statement.class.class, Class::Ddl { kind: DdlKind::CreateTable { start_transaction: true, .. } })
}

/// The target knows `CREATE TABLE … START TRANSACTION`: MySQL from 8.0.21 on.
fn can_create_atomically(session: &MySqlSession) -> bool {
    let info = &session.shared.info;
    info.flavour == Flavour::MySql && info.version >= (8, 0, 21)
}

/// The table and its rows in one transaction. Nothing but rows and COMMIT may follow such a CREATE TABLE, so the progress comes
/// after it: that the table is there says that all is.
fn create_with_rows(
    session: &mut MySqlSession,
    once: &Once<'_>,
    statement: &StatementItem,
    rows: std::ops::Range<usize>,
) -> Result<(), Failure> {
    once.run(
        session,
        |session| fingerprint::take(&mut session.connection, &statement.class),
        |session| {
            if let Some(set) = session.shared.set_gtid(once.transaction.gtid.as_ref())? {
                session.connection.execute(set).map_err(failed)?;
            }
            execute_text(session, statement, text(statement, true).as_ref())?;
            for index in rows.clone() {
                apply_rows(session, once.transaction, index)?;
            }
            session.script.statement("COMMIT");
            session.script.send(&mut session.connection)?;
            session.reset()
        },
    )
}

/// LOAD DATA INFILE 'its temporary name' … → LOAD DATA LOCAL INFILE 'heddle' [IGNORE|REPLACE] INTO …
fn load_data_text(statement: &StatementItem, file: &engine::transaction::LoadFile) -> Vec<u8> {
    let sql = &statement.query.sql;
    let mut text = Vec::with_capacity(sql.len() + 32);
    let (before, after) = (sql.get(..file.name_range.start), sql.get(file.name_range.end..));
    text.extend_from_slice(before.unwrap_or_default());
    text.extend_from_slice(b" LOCAL INFILE 'heddle'");
    text.extend_from_slice(match file.duplicates {
        1 => b" IGNORE".as_slice(),
        2 => b" REPLACE".as_slice(),
        _ => b"".as_slice(),
    });
    text.extend_from_slice(b" INTO");
    text.extend_from_slice(after.unwrap_or_default());
    text
}

impl MySqlSession {
    /// A statement of our own beside a transaction, not in the target's binary log when GTIDs are the source's.
    fn bookkeeping(&mut self, sql: &str) -> Result<(), Failure> {
        self.script.send(&mut self.connection)?;
        if self.shared.sets_gtid() {
            self.connection.execute("SET SESSION sql_log_bin=0").map_err(failed)?;
        }
        let done = self.connection.execute(sql).map_err(failed);
        if self.shared.sets_gtid() {
            self.connection.execute("SET SESSION sql_log_bin=1").map_err(failed)?;
        }
        match done?.affected {
            // The same intent again, after a retry, changes nothing.
            0 | 1 => Ok(()),
            more => Err(Failure::new(FailureKind::Refused, format!("{more} rows of progress for one channel"))),
        }
    }

    /// The progress outside the transaction that it is about.
    fn note_beside(&mut self, range: Range<'_>) -> Result<(), Failure> {
        let statement = match range.island {
            true => self.shared.statements().island(range.first, range.mark.seq),
            false => self.shared.statements().advance(range.before, range.mark),
        };
        self.bookkeeping(&statement)
    }

    /// The statement has ended the transaction that was open, if any.
    fn after_own_commit(&mut self) -> Result<(), Failure> {
        self.open = false;
        if self.shared.sets_gtid() && self.shared.info.flavour == Flavour::MySql {
            self.connection.execute("SET SESSION gtid_next='AUTOMATIC'").map_err(failed)?;
        }
        Ok(())
    }

    /// After a statement with its own context: the session's settings again.
    fn reset(&mut self) -> Result<(), Failure> {
        for statement in super::session::set_up(&self.shared) {
            // These end an open transaction or are not allowed inside it, and no statement's context changes them.
            if statement.contains("autocommit=1")
                || statement.contains("ISOLATION")
                || statement.contains("binlog_format")
                || statement.contains("sql_log_bin")
            {
                continue;
            }
            self.connection.execute(&statement).map_err(failed)?;
        }
        self.connection
            .execute(
                "SET SESSION foreign_key_checks=1, unique_checks=1, sql_auto_is_null=0, timestamp=DEFAULT, \
                 time_zone=DEFAULT, lc_time_names=DEFAULT, auto_increment_increment=DEFAULT, auto_increment_offset=DEFAULT, \
                 collation_server=DEFAULT",
            )
            .map(|_| ())
            .map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intent_round_trip() {
        let intent = Intent { seq: 7, item: 2, fingerprint: 0xabc };
        assert_eq!(Intent::parse(&intent.to_text()), Some(intent));
        assert_eq!(Intent::parse("nonsense"), None);
    }
}
