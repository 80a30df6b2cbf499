//! Transactions that run alone: statements, DDL, mixed ones, and those too large to hold in memory.
//!
//! Statements that commit by themselves (DDL, account statements) can not share a transaction with the progress. Before
//! such a statement an intent is noted: which one, and a fingerprint of what it is about to change. After a
//! crash an unchanged fingerprint says that it was not executed (or that executing it again changes nothing), a
//! changed one that it was. The rest of its transaction then follows with the progress.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, DdlKind, SqlMode, Xid};
use engine::transaction::{BarrierCause, Body, Item, StatementItem, Transaction};

use super::context::{self, ContextTarget};
use super::executed;
use super::failures::failed;
use super::fingerprint;
use super::progress;
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

    /// As the target has it, where anything else than an intent can not be gone on from.
    pub fn required(text: &str) -> Result<Self, Failure> {
        Self::parse(text).ok_or_else(|| {
            Failure::new(FailureKind::Refused, format!("heddle.progress: intent {text:?} is not understood"))
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
    let mut steps = Steps::new(session, transaction, range);
    if transaction.barrier == Some(BarrierCause::Xa) {
        let xid = spilled_xid(transaction, reread)?;
        steps.prepare(session, &xid, xa::Content::Unknown, &|branch| {
            reread.pieces(transaction, &mut |piece| xa::apply(branch, piece))
        })?;
        return steps.note_progress(session);
    }
    reread.pieces(transaction, &mut |piece| {
        steps.apply(session, piece)?;
        session.script.send(&mut session.connection).map(|_| ())
    })?;
    steps.note_progress(session)
}

/// MariaDB names the branch at its end only: the pieces are read once for the name, and once to be applied.
fn spilled_xid(transaction: &Transaction, reread: &Reread) -> Result<Xid, Failure> {
    let mut xid = None;
    reread.pieces(transaction, &mut |piece| {
        xid = xid.take().or_else(|| xa::prepared_by(piece.items()).cloned());
        Ok(())
    })?;
    xid.ok_or_else(|| {
        Failure::new(FailureKind::Refused, "a large XA transaction without its identifier").at(transaction.place())
    })
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
    let mut steps = Steps::new(session, transaction, range);
    match xa::prepared_by(items) {
        Some(xid) => {
            steps.prepare(session, xid, xa::content(items), &|branch| xa::apply(branch, transaction))?;
        }
        None => match items.first() {
            Some(item @ Item::Statement(statement))
                if starts_transaction(statement) && can_create_atomically(session) =>
            {
                steps.commits_by_itself = true;
                create_with_rows(session, &steps.once(), statement, 1..items.len())
                    .map_err(|failure| place_statement(failure, transaction, item))?;
            }
            _ => steps.apply(session, transaction)?,
        },
    }
    steps.note_progress(session)
}

/// How far the items of one transaction are, which may come in pieces.
struct Steps<'a> {
    transaction: &'a Transaction,
    range: Range<'a>,
    /// What an earlier run or connection had begun.
    done_before: Option<Intent>,
    /// Index of the next item.
    next: usize,
    /// One of them did: its GTID, if it is the source's, went with it.
    commits_by_itself: bool,
    /// One of them may be logged before the end, see `executed`.
    may_be_logged_early: bool,
}

impl<'a> Steps<'a> {
    fn new(session: &MySqlSession, transaction: &'a Transaction, range: Range<'a>) -> Self {
        let done_before = session.shared.take_intent(transaction.seq);
        Self { transaction, range, done_before, next: 0, commits_by_itself: false, may_be_logged_early: false }
    }

    fn once(&self) -> Once<'_> {
        Once {
            transaction: self.transaction,
            item: self.next,
            range: self.range,
            done_before: self.done_before.as_ref(),
        }
    }

    /// Prepares a branch with what `fill` puts in. MariaDB forgets a branch that changed nothing when its connection ends: what is sure
    /// to be one is only marked, and what may be one gets a change of ours.
    fn prepare(
        &mut self,
        session: &mut MySqlSession,
        xid: &Xid,
        content: xa::Content,
        fill: &dyn Fn(&mut MySqlSession) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let place = self.transaction;
        let mark = session.shared.statements().mark_branch(&xa::text(xid));
        if content != xa::Content::Rows {
            session.bookkeeping(&progress::create_branches()).map_err(|failure| at_transaction(failure, place))?;
        }
        if content == xa::Content::Nothing {
            return self.beside_progress(session, &mark).map_err(|failure| at_transaction(failure, place));
        }
        self.commits_by_itself = true;
        let mark = (content == xa::Content::Unknown).then_some(mark);
        self.once()
            .run(
                session,
                |session| Ok(u64::from(xa::is_prepared(&mut session.connection, xid)?)),
                |session| {
                    xa::prepare(session, place, xid, &|branch| {
                        fill(branch)?;
                        mark.iter().for_each(|mark| branch.script.statement(mark));
                        Ok(())
                    })
                },
            )
            .map_err(|failure| at_transaction(failure, place))
    }

    /// A statement of our own that is committed with the progress, or right before it.
    fn beside_progress(&self, session: &mut MySqlSession, statement: &str) -> Result<(), Failure> {
        if session.shared.sets_gtid() && self.commits_by_itself {
            return session.bookkeeping(statement);
        }
        session.begin(self.transaction)?;
        session.script.statement(statement);
        Ok(())
    }

    /// Commits what is open together with the progress.
    fn note_progress(&self, session: &mut MySqlSession) -> Result<(), Failure> {
        self.progress(session).map_err(|failure| at_transaction(failure, self.transaction))
    }

    fn progress(&self, session: &mut MySqlSession) -> Result<(), Failure> {
        let (transaction, range) = (self.transaction, self.range);
        if !session.shared.sets_gtid() {
            session.begin(transaction)?;
            return session.finish(range);
        }
        // When its GTID went with a statement, what follows must not be taken for a transaction that was executed already.
        if self.commits_by_itself {
            return session.note_beside(range);
        }
        session.begin(transaction)?;
        session.script.send(&mut session.connection)?;
        if let Some(gtid) = &transaction.gtid
            && self.may_be_logged_early
            && executed::is_executed(&mut session.connection, gtid)?
        {
            session.connection.execute("COMMIT").map_err(failed)?;
            session.after_own_commit()?;
            return session.note_beside(range);
        }
        session.finish(range)
    }

    /// All items of a transaction, or of a piece of it, in order.
    fn apply(&mut self, session: &mut MySqlSession, piece: &Transaction) -> Result<(), Failure> {
        let items = piece.items();
        self.may_be_logged_early |= executed::may_be_logged_early(items);
        let alone = items.len() == 1 && !matches!(self.transaction.body, Body::Spilled);
        if session.shared.sets_gtid() && !alone && items.iter().any(is_own_commit) {
            return Err(Failure::new(
                FailureKind::Refused,
                "CREATE TABLE … SELECT, one GTID for a statement and rows, can not be applied with --gtids preserve: only MySQL from 8.0.21 on \
                 can do both in one transaction",
            )
            .at(self.transaction.place())
            .remedy("use --gtids local, or create the table by hand and go on after it"));
        }
        for (index, item) in items.iter().enumerate() {
            self.item(session, piece, index, item)
                .map_err(|failure| place_statement(failure, self.transaction, item))?;
            self.next += 1;
        }
        Ok(())
    }

    fn item(
        &mut self,
        session: &mut MySqlSession,
        piece: &Transaction,
        index: usize,
        item: &Item,
    ) -> Result<(), Failure> {
        match item {
            // What is left of XA in a branch that was committed in one phase: known only at its end, when pieces are read.
            Item::Statement(statement)
                if !matches!(piece.barrier, Some(BarrierCause::Xa | BarrierCause::Unknown))
                    && matches!(statement.class.class, Class::XaStart { .. } | Class::XaEnd) =>
            {
                Ok(())
            }
            Item::Statement(statement) if commits_by_itself(statement) => {
                self.commits_by_itself = true;
                run_own_commit(session, &self.once(), statement)?;
                match &statement.class.xid {
                    Some(xid) if xa::is_marked(session, xid)? => {
                        let statement = session.shared.statements().forget_branch(&xa::text(xid));
                        self.beside_progress(session, &statement)
                    }
                    _ => Ok(()),
                }
            }
            // Was committed with, or rolled back by, the statement that came after it.
            _ if self.done_before.as_ref().is_some_and(|intent| self.next < intent.item) => Ok(()),
            // MySQL before 8.0.13 refuses these inside a transaction when GTIDs are on. A crash takes the table with it.
            Item::Statement(statement) if !session.open && is_temporary_ddl(statement) => execute(session, statement),
            Item::Statement(statement) => {
                session.begin(self.transaction)?;
                execute(session, statement)
            }
            Item::Rows(_) => {
                session.begin(self.transaction)?;
                apply_rows(session, piece, index)
            }
        }
    }
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
    let failure = match failure.code {
        Some(NO_SUCH_TABLE) => failure.remedy(TABLE_OF_STATEMENT_GONE),
        _ => failure,
    };
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
        self.run_or_complete(session, probe, run, |_| Ok(()))
    }

    /// As `run`; `again` is called when an earlier run had begun it, for what can be executed in part.
    fn run_or_complete(
        &self,
        session: &mut MySqlSession,
        probe: impl Fn(&mut MySqlSession) -> Result<u64, Failure>,
        run: impl Fn(&mut MySqlSession) -> Result<(), Failure>,
        again: impl Fn(&mut MySqlSession) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let now = probe(session)?;
        match self.done_before {
            Some(intent) if self.item < intent.item => return Ok(()),
            Some(intent) if self.item == intent.item && now != intent.fingerprint => {
                let place = self.transaction.place();
                tracing::info!(
                    "a statement that was under way when the connection or heddle ended had been executed: {place}"
                );
                return again(session);
            }
            _ => {}
        }
        let intent = Intent { seq: self.transaction.seq, item: self.item, fingerprint: now };
        let before = (!self.range.island).then_some(self.range.before);
        let noted = session.shared.statements().intend(before, &intent.to_text());
        session.bookkeeping(&noted)?;
        if let Err(failure) = run(session) {
            // A lost connection says nothing: the intent is read again with the next one.
            if failure.kind != FailureKind::ConnectionLost {
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
    once.run_or_complete(
        session,
        |session| match is_xa(&class.class) {
            true => xa::fingerprint(&mut session.connection, class),
            false => fingerprint::take(&mut session.connection, &session.shared.info, class),
        },
        |session| {
            if let Some(set) = session.shared.set_gtid(once.transaction.gtid.as_ref())? {
                session.connection.execute(set).map_err(failed)?;
            }
            match is_xa(&class.class) {
                true => xa::end(session, class),
                false => execute(session, statement),
            }
        },
        |session| complete(session, statement),
    )
}

/// A DROP of several things that a crash has cut: servers other than MySQL 8 drop one after the other.
fn complete(session: &mut MySqlSession, statement: &StatementItem) -> Result<(), Failure> {
    let drops_many = match &statement.class.class {
        Class::Ddl { kind: DdlKind::DropTable { .. } } => statement.class.tables.len() > 1,
        Class::Ddl { kind: DdlKind::DropDatabase } => true,
        _ => false,
    };
    if !drops_many {
        return Ok(());
    }
    match execute(session, statement) {
        Err(failure) if matches!(failure.code, Some(UNKNOWN_TABLE | UNKNOWN_DATABASE)) => Ok(()),
        done => done,
    }
}

/// One statement with its session state; the session is itself again afterwards.
pub(super) fn execute(session: &mut MySqlSession, statement: &StatementItem) -> Result<(), Failure> {
    let outcome = execute_text(session, statement, text(statement, false).as_ref());
    // Also after an error that ends the attempt: the next statement must not run in this one's session state.
    match outcome {
        Err(lost) if lost.kind == FailureKind::ConnectionLost => Err(lost),
        outcome => {
            let reset = session.reset();
            outcome.and(reset)
        }
    }
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

/// `ER_NO_SUCH_TABLE`
const NO_SUCH_TABLE: u16 = 1146;
const TABLE_OF_STATEMENT_GONE: &str = "the target lacks a table that the statement names. Load the source's schema and data as of the \
    start position first; or, if it was a temporary table, it has ended with the connection or the heddle that made it: do by hand what the \
    statements on it would do, and go on behind them with a new --channel and --start";

/// `ER_BAD_TABLE_ERROR`
const UNKNOWN_TABLE: u16 = 1051;
/// `ER_DB_DROP_EXISTS`
const UNKNOWN_DATABASE: u16 = 1008;

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
///
/// A scheduled event does not run here: what it does on the source is in the source's log.
fn text(statement: &StatementItem, atomic: bool) -> std::borrow::Cow<'_, [u8]> {
    let sql: &[u8] = &statement.query.sql;
    let mode = SqlMode::from_bits(statement.query.vars.sql_mode.unwrap_or(0));
    let (at, instead) = match &statement.class.class {
        Class::Ddl { kind: DdlKind::Event } => (engine::sql::enabled_at(sql, mode), b" DISABLE ON SLAVE ".as_slice()),
        _ if starts_transaction(statement) && !atomic => (engine::sql::start_transaction_at(sql, mode), b"".as_slice()),
        _ => (None, b"".as_slice()),
    };
    let edited = at.and_then(|at| Some([sql.get(..at.start)?, instead, sql.get(at.end..)?].concat()));
    edited.map_or(sql.into(), Into::into)
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
        |session| fingerprint::take(&mut session.connection, &session.shared.info, &statement.class),
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
            // The same again, after a retry, changes nothing.
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
