//! Transactions that run alone: statements, DDL, mixed ones, and those too large to hold in memory.
//!
//! Statements that commit by themselves (DDL, account statements) can not share a transaction with the progress: `intent` sees to it that
//! they are executed once. The rest of their transaction follows with the progress.

use std::sync::Arc;

use binlog::{Flavour, RowsKind};
use engine::compact::{Batch, whole_event, whole_events};
use engine::failure::{Failure, FailureKind};
use engine::schema::{Alone, Catalogue};
use engine::sql::{Class, DdlKind, Xid};
use engine::transaction::{BarrierCause, Body, Item, RowsItem, StatementItem, Transaction};

use crate::mysql::catalogue::MySqlCatalogue;
use crate::mysql::progress::executed;
use crate::mysql::progress::statements;
use crate::mysql::rows::sequences::{self, Completed};
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::sql::{identifier, quote};
use crate::mysql::session::MySqlSession;
use crate::mysql::session::one_statement::{self, Room};
use crate::mysql::statements::exactly_once::{Intent, Once};
use crate::mysql::statements::fingerprint;
use crate::mysql::statements::nontransactional;
use crate::mysql::statements::statement::{
    at_statement, commits_by_itself, execute, execute_text, is_temporary_ddl, starts_transaction, text,
};
use crate::mysql::xa::prepare;
use crate::spilled::SpilledTransactions;
use crate::{Range, Session};

pub fn run(
    session: &mut MySqlSession,
    transaction: &Transaction,
    spilled: &dyn SpilledTransactions,
    range: Range<'_>,
) -> Result<(), Failure> {
    if let Some(gtid) = session.shared.kept_gtid(transaction.gtid.as_ref())?
        && executed::is_executed(&mut session.connection, gtid)?
    {
        for item in transaction.items() {
            if let Item::Statement(statement) = item {
                prepare::end_left_over(session, &statement.class)?;
            }
        }
        nontransactional::check_whole(session, transaction)?;
        // By an earlier run, which did not come to note it.
        return session.note_beside(range);
    }
    let done = match &transaction.body {
        Body::Spilled { .. } => run_spilled(session, transaction, spilled, range),
        Body::Items(items) => run_items(session, transaction, items, range),
    };
    match done {
        Err(failure) if session.shared.sets_gtid() && failure.kind != FailureKind::ConnectionLost => {
            nontransactional::after(session, transaction, range, failure)
        }
        done => done,
    }
}

/// Applies the transaction's events piece by piece as they are read again.
fn run_spilled(
    session: &mut MySqlSession,
    transaction: &Transaction,
    spilled: &dyn SpilledTransactions,
    range: Range<'_>,
) -> Result<(), Failure> {
    let mut steps = Steps::new(session, transaction, range);
    let mut tables = Tables::default();
    if transaction.barrier == Some(BarrierCause::Xa) {
        let xid = spilled_xid(session, transaction, spilled, &mut tables)?;
        steps.prepare(session, &xid, prepare::Content::Unknown, &|branch| {
            spilled.pieces(transaction, &mut |piece| prepare::apply(branch, piece))
        })?;
        return steps.note_progress(session);
    }
    spilled.pieces(transaction, &mut |piece| {
        tables.look_up(session, transaction, piece.items())?;
        steps.apply(session, piece)?;
        session.script.send(&mut session.connection).map(|_| ())
    })?;
    steps.note_progress(session)
}

/// MariaDB names the branch at its end only: the pieces are read once for the name, and once to be applied.
fn spilled_xid(
    session: &MySqlSession,
    transaction: &Transaction,
    spilled: &dyn SpilledTransactions,
    tables: &mut Tables,
) -> Result<Xid, Failure> {
    let mut xid = None;
    spilled.pieces(transaction, &mut |piece| {
        tables.look_up(session, transaction, piece.items())?;
        xid = xid.take().or_else(|| prepare::prepared_by(piece.items()).cloned());
        Ok(())
    })?;
    xid.ok_or_else(|| {
        Failure::new(FailureKind::Refused, "a large XA transaction without its identifier").at(transaction.place())
    })
}

/// The rows of one item, in their order.
fn apply_rows(session: &mut MySqlSession, transaction: &Transaction, index: usize) -> Result<(), Failure> {
    let Some(Item::Rows(rows)) = transaction.items().get(index) else { return Ok(()) };
    if alone(rows) == Some(Alone::HistoryPartitions) && rows.event.kind != RowsKind::Write {
        look_for_a_partition(session, rows);
    }
    session.push(&[whole_event(rows)])
}

fn alone(rows: &RowsItem) -> Option<Alone> {
    rows.table.as_ref().and_then(|table| table.alone)
}

/// For the history that rows are about to leave: `BINLOG` does not look for one itself, any DML does.
fn look_for_a_partition(session: &mut MySqlSession, rows: &RowsItem) {
    let (schema, table) = (identifier(&rows.map.schema), identifier(&rows.map.table));
    let time = rows.timestamp;
    session.script.statement(format!("SET STATEMENT timestamp={time} FOR DELETE FROM {schema}.{table} WHERE FALSE"));
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
    if has_sequences(items) {
        return with_sequences(session, transaction, range);
    }
    let mut steps = Steps::new(session, transaction, range);
    match prepare::prepared_by(items) {
        Some(xid) => {
            steps.prepare(session, xid, prepare::content(items), &|branch| prepare::apply(branch, transaction))?;
        }
        None => match items.first() {
            Some(item @ Item::Statement(statement))
                if starts_transaction(statement) && can_create_atomically(session) =>
            {
                steps.commits_by_itself = true;
                create_with_rows(session, &steps.once(), statement, 1..items.len())
                    .map_err(|failure| at_statement(failure, transaction, item))?;
            }
            _ => steps.apply(session, transaction)?,
        },
    }
    steps.note_progress(session)
}

/// Where GTIDs are kept.
fn has_sequences(items: &[Item]) -> bool {
    items.iter().any(|item| matches!(item, Item::Rows(rows) if alone(rows) == Some(Alone::Sequence)))
}

/// One statement that commits by itself: the target logs a sequence's row with the others of the statement, under one GTID. Between `BEGIN` and
/// `COMMIT` it would be logged at once, and the rest under a second one.
fn with_sequences(session: &mut MySqlSession, transaction: &Transaction, range: Range<'_>) -> Result<(), Failure> {
    let mut batches = whole_events(transaction.items());
    let completed = completed_sequences(session, &batches)?;
    for (batch, completed) in batches.iter_mut().zip(&completed) {
        if let Some(completed) = completed {
            *batch = completed.batch(batch);
        }
    }
    let rolls_back =
        |item: &Item| matches!(item, Item::Rows(rows) if rows.table.as_ref().is_some_and(|table| table.transactional));
    let fits = batches.len() == transaction.items().len() && transaction.items().iter().all(rolls_back);
    let room = Room::of_server(session);
    if fits && one_statement::send_group(session, transaction, &batches, range, &room)? {
        return one_statement::answer(session).map_err(|failure| at_transaction(failure, transaction));
    }
    Err(too_large_for_a_sequence(transaction))
}

/// The whole rows of those that lack columns: each is that of the one before with other values, which are all in the log.
fn completed_sequences(session: &mut MySqlSession, batches: &[Batch<'_>]) -> Result<Vec<Option<Completed>>, Failure> {
    let shared = Arc::clone(&session.shared);
    let complete = |batch: &Batch<'_>| {
        let lacks = sequences::lacks_columns(batch) && shared.sequences.get(batch.map).is_some();
        lacks.then(|| sequences::complete(batch, |sql| session.connection.rows(sql))).transpose()
    };
    batches.iter().map(complete).collect()
}

fn too_large_for_a_sequence(transaction: &Transaction) -> Failure {
    Failure::new(
        FailureKind::Refused,
        "a transaction that changes a sequence can not be one statement (it is too large for that, or the sequence is in an engine without \
         transactions): the target would log it under two GTIDs",
    )
    .at(transaction.place())
    .remedy("use --gtids local; a transaction of up to 16 MiB also goes where max_allowed_packet is raised on the target")
}

/// The tables of a transaction that comes in pieces, whose definitions nobody has read.
#[derive(Default)]
struct Tables(Option<MySqlCatalogue>);

impl Tables {
    /// Notes what sessions have to know of them; refuses those that can not be in such a transaction.
    fn look_up(&mut self, session: &MySqlSession, transaction: &Transaction, items: &[Item]) -> Result<(), Failure> {
        let shared = &session.shared;
        let keeps_gtids = shared.sets_gtid() && shared.info.log_bin;
        if !keeps_gtids && shared.info.flavour == Flavour::MySql {
            return Ok(());
        }
        for item in items {
            let Item::Rows(rows) = item else { continue };
            let catalogue = match &mut self.0 {
                Some(catalogue) => catalogue,
                none => none.insert(crate::mysql::catalogue_of(shared)?),
            };
            let table = catalogue
                .table(&rows.map)
                .map_err(|error| Failure::new(FailureKind::Refused, error.to_string()).at(transaction.place()))?;
            if keeps_gtids && table.alone == Some(Alone::Sequence) {
                return Err(too_large_for_a_sequence(transaction));
            }
            if keeps_gtids && !table.transactional {
                return Err(nontransactional::too_large(transaction));
            }
        }
        Ok(())
    }
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
    /// Statements of our own for after the progress: it can not be committed together with them.
    afterwards: Vec<String>,
}

impl<'a> Steps<'a> {
    fn new(session: &MySqlSession, transaction: &'a Transaction, range: Range<'a>) -> Self {
        let done_before = session.shared.take_intent(transaction.seq);
        Self {
            transaction,
            range,
            done_before,
            next: 0,
            commits_by_itself: false,
            may_be_logged_early: false,
            afterwards: Vec::new(),
        }
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
        content: prepare::Content,
        fill: &dyn Fn(&mut MySqlSession) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let place = self.transaction;
        let mark = session.shared.statements().mark_branch(&prepare::text(xid));
        if content != prepare::Content::Rows {
            session.bookkeeping(&statements::create_branches()).map_err(|failure| at_transaction(failure, place))?;
        }
        if content == prepare::Content::Nothing {
            return self.beside_progress(session, mark).map_err(|failure| at_transaction(failure, place));
        }
        self.commits_by_itself = true;
        let mark = (content == prepare::Content::Unknown).then_some(mark);
        self.once()
            .run(
                session,
                |session| Ok(u64::from(prepare::is_prepared(&mut session.connection, xid)?)),
                |session| {
                    prepare::prepare(session, place.gtid.as_ref(), place.server_id, xid, &|branch| {
                        fill(branch)?;
                        mark.iter().for_each(|mark| branch.script.statement(mark));
                        Ok(())
                    })
                },
            )
            .map_err(|failure| at_transaction(failure, place))
    }

    /// A statement of our own that is committed with the progress, or right after it: before it, a crash in between would let the transaction be
    /// done again without what the statement takes away.
    fn beside_progress(&mut self, session: &mut MySqlSession, statement: String) -> Result<(), Failure> {
        if session.shared.sets_gtid() && self.commits_by_itself {
            self.afterwards.push(statement);
            return Ok(());
        }
        session.begin(self.transaction)?;
        session.script.statement(statement);
        Ok(())
    }

    /// Commits what is open together with the progress.
    fn note_progress(&self, session: &mut MySqlSession) -> Result<(), Failure> {
        let done = self
            .progress(session)
            .and_then(|()| self.afterwards.iter().try_for_each(|statement| session.bookkeeping(statement).map(|_| ())));
        done.map_err(|failure| at_transaction(failure, self.transaction))
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
        let alone = items.len() == 1 && !matches!(self.transaction.body, Body::Spilled { .. });
        if session.shared.sets_gtid() && !alone && items.iter().any(is_own_commit) {
            return Err(Failure::new(
                FailureKind::Refused,
                "CREATE TABLE … SELECT, one GTID for a statement and rows, can not be applied with --gtids preserve: only MySQL from 8.0.21 on \
                 can do both in one transaction",
            )
            .at(self.transaction.place())
            .remedy("use --gtids local, or create the table by hand and go on after it"));
        }
        if nontransactional::is_one_statement(&session.shared, items) {
            session.begin(self.transaction)?;
            nontransactional::push(session, self.transaction, items)?;
            self.next += items.len();
            return Ok(());
        }
        for (index, item) in items.iter().enumerate() {
            self.item(session, piece, index, item).map_err(|failure| at_statement(failure, self.transaction, item))?;
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
                    Some(xid) if prepare::is_marked(session, xid)? => {
                        let statement = session.shared.statements().forget_branch(&prepare::text(xid));
                        self.beside_progress(session, statement)
                    }
                    _ => Ok(()),
                }
            }
            // Was committed with, or rolled back by, the statement that came after it.
            _ if self.done_before.as_ref().is_some_and(|intent| self.next < intent.item) => Ok(()),
            // MySQL before 8.0.13 refuses these inside a transaction when GTIDs are on. A crash takes the table with it.
            Item::Statement(statement) if !session.open && is_temporary_ddl(statement) => {
                session.be_server_of(self.transaction)?;
                execute(session, statement)
            }
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
            true => prepare::fingerprint(&mut session.connection, class),
            false => fingerprint::take(&mut session.connection, &session.shared.info, class),
        },
        |session| execute_own_commit(session, once.transaction, statement),
        |session| complete(session, once.transaction, statement),
    )
}

fn execute_own_commit(
    session: &mut MySqlSession,
    transaction: &Transaction,
    statement: &StatementItem,
) -> Result<(), Failure> {
    if is_xa(&statement.class.class) {
        return prepare::end(session, transaction, &statement.class);
    }
    if let Some(set) = session.shared.set_gtid(transaction.gtid.as_ref())? {
        session.connection.execute(set).map_err(failed)?;
    }
    execute(session, statement)
}

/// What a crash may have cut: it is there in part, or whole.
fn complete(session: &mut MySqlSession, transaction: &Transaction, statement: &StatementItem) -> Result<(), Failure> {
    match &statement.class.class {
        // Servers other than MySQL 8 drop one after the other.
        Class::Ddl { kind: DdlKind::DropTable { .. } } if statement.class.tables.len() > 1 => {
            drop_the_rest(session, transaction, statement)
        }
        Class::Ddl { kind: DdlKind::DropDatabase } => drop_the_rest(session, transaction, statement),
        // The table is there before its rows: MySQL before 8.0.21, MariaDB before 10.6.
        Class::Ddl { kind: DdlKind::CreateTable { select: true, temporary: false, .. } } => {
            fill_anew(session, transaction, statement)
        }
        // OR REPLACE drops before it makes: MariaDB before 10.6.
        Class::Ddl { kind: DdlKind::CreateTable { temporary: false, .. } }
            if !made_one_is_there(session, statement)? =>
        {
            execute_own_commit(session, transaction, statement).and_then(|()| session.after_own_commit())
        }
        _ => Ok(()),
    }
}

fn drop_the_rest(
    session: &mut MySqlSession,
    transaction: &Transaction,
    statement: &StatementItem,
) -> Result<(), Failure> {
    match execute_own_commit(session, transaction, statement) {
        Err(failure) if matches!(failure.code, Some(code::BAD_TABLE | code::DB_DROP_EXISTS)) => {
            session.rollback()?;
            Ok(())
        }
        done => done.and_then(|()| session.after_own_commit()),
    }
}

/// The table was not there before the statement, or not as it is now, and nothing else has changed it since: so it may go, whatever of its rows it has.
fn fill_anew(session: &mut MySqlSession, transaction: &Transaction, statement: &StatementItem) -> Result<(), Failure> {
    let Some(table) = statement.class.tables.first() else { return Ok(()) };
    tracing::warn!("{}.{} may lack rows: it is dropped and filled once more", table.schema, table.name);
    // Logged where the statement may have been, for replicas of the target; with the source's GTIDs it was not, or would have been found executed.
    session.bookkeeping(&format!("DROP TABLE IF EXISTS {}.{}", identifier(&table.schema), identifier(&table.name)))?;
    execute_own_commit(session, transaction, statement)?;
    session.after_own_commit()
}

fn made_one_is_there(session: &mut MySqlSession, statement: &StatementItem) -> Result<bool, Failure> {
    let Some(table) = statement.class.tables.first() else { return Ok(true) };
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA={} AND TABLE_NAME={}",
        quote(&table.schema),
        quote(&table.name)
    );
    Ok(session.connection.scalar(sql).map_err(failed)?.as_deref() != Some("0"))
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
            session.reset_after(statement)
        },
    )
}

/// The target knows `CREATE TABLE … START TRANSACTION`: MySQL from 8.0.21 on.
fn can_create_atomically(session: &MySqlSession) -> bool {
    let info = &session.shared.info;
    info.flavour == Flavour::MySql && info.version >= (8, 0, 21)
}
