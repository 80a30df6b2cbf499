//! Barriers: transactions that run while nothing else does. Statements, DDL, XA, and transactions too large to hold in memory.
//!
//! Statements that commit by themselves (DDL, account statements) can not share a transaction with the progress: `exactly_once` sees to it that
//! they are executed once. The rest of their transaction follows with the progress.

use std::sync::Mutex;

use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, Xid};
use engine::transaction::{BarrierCause, Body, Item, Transaction};

use super::account_tables::{self, OwnAccountRows};
use super::accounts::{self, ExecutedPart, Tried};
use super::execute::branch_items::{apply_in_branch, runs_statements};
use super::execute::outcome;
use super::execute::text::{commits_by_itself, is_own_commit, is_rollback, is_temporary_ddl, starts_transaction};
use super::execute::{at_statement, at_transaction, execute};
use super::execute::{nontransactional, one_packet};
use super::once_statement::OnceStatement;
use super::own_commit;
use super::piece_tables::PieceTables;
use super::sequences;
use super::unfinished_statements::UnfinishedStatements;
use crate::Range;
use crate::mysql::progress::intent::Intent;
use crate::mysql::progress::{executed_gtids, tables};
use crate::mysql::server::sql::xid_text;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::xa::connections::Branches;
use crate::mysql::xa::{deferred_branches, end, prepare};
use crate::spilled_transactions::SpilledTransactions;

/// What barriers use beside their connection.
#[derive(Clone, Copy)]
pub struct BarrierContext<'a> {
    pub unfinished: &'a UnfinishedStatements,
    pub branches: &'a Mutex<Branches>,
    /// Where the items of large transactions come from.
    pub spilled: &'a dyn SpilledTransactions,
}

pub fn run(
    connection: &mut ChannelConnection,
    context: BarrierContext<'_>,
    transaction: &Transaction,
    range: Range<'_>,
) -> Result<(), Failure> {
    if let Some(gtid) = connection.gtids().preserved(transaction.gtid.as_ref())?
        && executed_gtids::is_executed(&mut connection.wire, gtid)?
    {
        // An earlier run has executed it, and ended before it recorded that.
        return finish_executed(connection, context, transaction, range);
    }
    nontransactional::check_whole(context.unfinished, transaction)?;
    refuse_interrupted(transaction, transaction.items())?;
    let done = match &transaction.body {
        Body::Spilled { .. } => run_spilled(connection, context, transaction, range),
        Body::Items(items) => run_items(connection, context, transaction, items, range),
    };
    match done {
        Err(failure) if failure.kind != FailureKind::ConnectionLost => {
            nontransactional::after_failure(connection, context.unfinished, transaction, range, failure)
        }
        done => done,
    }
}

fn refuse_interrupted(transaction: &Transaction, items: &[Item]) -> Result<(), Failure> {
    match outcome::interrupted(items) {
        Some((item, failure)) => Err(at_statement(failure, transaction, item)),
        None => Ok(()),
    }
}

fn finish_executed(
    connection: &mut ChannelConnection,
    context: BarrierContext<'_>,
    transaction: &Transaction,
    range: Range<'_>,
) -> Result<(), Failure> {
    for item in transaction.items() {
        if let Item::Statement(statement) = item {
            end::end_left_over(connection, context.branches, &statement.class)?;
        }
    }
    nontransactional::check_whole(context.unfinished, transaction)?;
    connection.record_beside(range)
}

/// Applies the transaction's events piece by piece as they are read again.
fn run_spilled(
    connection: &mut ChannelConnection,
    context: BarrierContext<'_>,
    transaction: &Transaction,
    range: Range<'_>,
) -> Result<(), Failure> {
    let mut steps = Steps::new(context, transaction, range);
    let mut tables = PieceTables::default();
    if transaction.barrier == Some(BarrierCause::Xa) {
        let xid = spilled_xid(connection, context, transaction, &mut tables)?;
        steps.prepare(connection, &xid, prepare::BranchContent::Unknown, &|branch| {
            context.spilled.pieces(transaction, &mut |piece| apply_in_branch(branch, piece))
        })?;
        return steps.commit_with_progress(connection);
    }
    context.spilled.pieces(transaction, &mut |piece| {
        tables.look_up(connection, transaction, piece.items())?;
        refuse_interrupted(transaction, piece.items())?;
        steps.apply(connection, piece)?;
        connection.send()
    })?;
    steps.commit_with_progress(connection)
}

/// MariaDB names the branch at its end only: the pieces are read once for the name, and once to be applied.
fn spilled_xid(
    connection: &ChannelConnection,
    context: BarrierContext<'_>,
    transaction: &Transaction,
    tables: &mut PieceTables,
) -> Result<Xid, Failure> {
    let mut xid = None;
    context.spilled.pieces(transaction, &mut |piece| {
        tables.look_up(connection, transaction, piece.items())?;
        xid = xid.take().or_else(|| prepare::prepared_by(piece.items()).cloned());
        Ok(())
    })?;
    xid.ok_or_else(|| {
        Failure::new(FailureKind::Refused, "a large XA transaction without its identifier").at(transaction.place())
    })
}

fn run_items(
    connection: &mut ChannelConnection,
    context: BarrierContext<'_>,
    transaction: &Transaction,
    items: &[Item],
    range: Range<'_>,
) -> Result<(), Failure> {
    if let [Item::Statement(statement)] = items
        && let Some(branch) = deferred_branches::ended_by(connection, &statement.class)?
    {
        return deferred_branches::end(connection, context.branches, &branch, &statement.class, transaction, range)
            .map_err(|failure| at_transaction(failure, transaction));
    }
    nontransactional::check_tables(connection, items).map_err(|failure| at_transaction(failure, transaction))?;
    if connection.gtids().are_logged() {
        executed_gtids::check_not_mixed(transaction, items)?;
    }
    if sequences::are_changed(items) {
        return sequences::commit(connection, transaction, range);
    }
    if one_packet::run(connection, context.unfinished, transaction, range)
        .map_err(|failure| at_transaction(failure, transaction))?
    {
        return Ok(());
    }
    let mut steps = Steps::new(context, transaction, range);
    match prepare::prepared_by(items) {
        Some(xid) => {
            steps.prepare(connection, xid, prepare::content(items), &|branch| apply_in_branch(branch, transaction))?;
        }
        None => match items.first() {
            Some(item @ Item::Statement(statement))
                if starts_transaction(statement) && own_commit::can_create_with_rows(connection) =>
            {
                steps.commits_by_itself = true;
                own_commit::create_with_rows(connection, &steps.once(), statement, items.get(1..).unwrap_or_default())
                    .map_err(|failure| at_statement(failure, transaction, item))?;
            }
            _ => steps.apply(connection, transaction)?,
        },
    }
    steps.commit_with_progress(connection)
}

/// How far the items of one transaction are, which may come in pieces.
struct Steps<'a> {
    context: BarrierContext<'a>,
    transaction: &'a Transaction,
    range: Range<'a>,
    /// What an earlier run or connection had begun.
    done_before: Option<Intent>,
    /// Index of the next item.
    next: usize,
    /// One of them did: its GTID, if it is the source's, went with it.
    commits_by_itself: bool,
    /// The last of them is ROLLBACK.
    is_rolled_back: bool,
    /// One of them may be logged before the end, see `progress/executed_gtids.rs`.
    may_be_logged_early: bool,
    /// Statements of our own for after the progress: they can not be committed together with it.
    afterwards: Vec<String>,
    /// From before it changed the server's account tables.
    own_account: Option<OwnAccountRows>,
}

impl<'a> Steps<'a> {
    fn new(context: BarrierContext<'a>, transaction: &'a Transaction, range: Range<'a>) -> Self {
        Self {
            context,
            transaction,
            range,
            done_before: context.unfinished.take_intent(transaction.seq),
            next: 0,
            commits_by_itself: false,
            is_rolled_back: match &transaction.body {
                Body::Spilled { is_rolled_back, .. } => *is_rolled_back,
                Body::Items(items) => items.last().is_some_and(is_rollback),
            },
            may_be_logged_early: false,
            afterwards: Vec::new(),
            own_account: None,
        }
    }

    fn once(&self) -> OnceStatement<'_> {
        OnceStatement {
            transaction: self.transaction,
            item: self.next,
            range: self.range,
            done_before: self.done_before.as_ref(),
            unfinished: self.context.unfinished,
        }
    }

    /// Prepares a branch with what `fill` puts in. MariaDB forgets a branch that changed nothing when its connection ends. So a branch that is
    /// sure to have changed nothing is only marked, and one that may have changed nothing gets a change of ours.
    fn prepare(
        &mut self,
        connection: &mut ChannelConnection,
        xid: &Xid,
        content: prepare::BranchContent,
        fill: &dyn Fn(&mut ChannelConnection) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (place, branches) = (self.transaction, self.context.branches);
        let mark = connection.progress().mark_branch(&xid_text(xid));
        if content != prepare::BranchContent::Rows {
            connection
                .execute_unlogged(&tables::create_branches())
                .map_err(|failure| at_transaction(failure, place))?;
        }
        if content == prepare::BranchContent::Nothing {
            return self.beside_progress(connection, mark).map_err(|failure| at_transaction(failure, place));
        }
        self.commits_by_itself = true;
        let mark = (content == prepare::BranchContent::Unknown).then_some(mark);
        self.once()
            .run(
                connection,
                |connection, _| Ok(u64::from(prepare::is_prepared(&mut connection.wire, xid)?)),
                |connection| {
                    connection.send()?;
                    let logged_as = place.gtid.as_ref().map_or(prepare::LogEntry::Own, prepare::LogEntry::Source);
                    let runs_statements = content != prepare::BranchContent::Nothing && runs_statements(place);
                    let origin = prepare::Origin { logged_as, server_id: place.server_id, runs_statements };
                    prepare::prepare(connection, branches, origin, xid, &|branch| {
                        fill(branch)?;
                        mark.iter().for_each(|mark| branch.script.statement(mark));
                        Ok(())
                    })
                },
            )
            .map_err(|failure| at_transaction(failure, place))
    }

    /// A statement of our own that is committed with the progress, or right after it. Before it, a crash in between would let the transaction be
    /// done again without what the statement takes away.
    fn beside_progress(&mut self, connection: &mut ChannelConnection, statement: String) -> Result<(), Failure> {
        if connection.gtids().are_preserved() && self.commits_by_itself {
            self.afterwards.push(statement);
            return Ok(());
        }
        connection.begin(self.transaction)?;
        connection.check_bookkeeping();
        connection.script.statement(statement);
        Ok(())
    }

    /// Commits what is open together with the progress.
    fn commit_with_progress(&self, connection: &mut ChannelConnection) -> Result<(), Failure> {
        if account_tables::have_transactions(connection.info()) {
            connection.send()?;
            self.restore_own_account(connection)?;
        }
        let done =
            self.record_progress(connection).and_then(|()| self.restore_own_account(connection)).and_then(|()| {
                self.afterwards.iter().try_for_each(|statement| connection.execute_unlogged(statement).map(|_| ()))
            });
        done.map_err(|failure| at_transaction(failure, self.transaction))?;
        self.context.unfinished.take_intent(self.transaction.seq);
        Ok(())
    }

    /// Where the server's account tables were changed.
    fn restore_own_account(&self, connection: &mut ChannelConnection) -> Result<(), Failure> {
        let Some(rows) = &self.own_account else { return Ok(()) };
        if rows.restore(connection)? {
            tracing::warn!(
                "the source changes the account that heddle uses on the target ({}) in the tables of the schema mysql: taken back ({})",
                connection.info().account.name(),
                self.transaction.place()
            );
        }
        Ok(())
    }

    fn record_progress(&self, connection: &mut ChannelConnection) -> Result<(), Failure> {
        let (transaction, range) = (self.transaction, self.range);
        if !connection.gtids().are_preserved() {
            connection.begin(transaction)?;
            return connection.record_and_commit(range);
        }
        connection.check_bookkeeping();
        // When its GTID went with a statement, what follows must not be taken for a transaction that was executed already.
        if self.commits_by_itself {
            return connection.record_beside(range);
        }
        connection.begin(transaction)?;
        connection.send()?;
        if self.may_be_logged_early && self.is_executed(connection)? {
            connection.use_own_server()?;
            connection.execute("COMMIT")?;
            connection.after_own_commit()?;
            return connection.record_beside(range);
        }
        connection.record_and_commit(range)
    }

    /// All items of a transaction, or of a piece of it, in order.
    fn apply(&mut self, connection: &mut ChannelConnection, piece: &Transaction) -> Result<(), Failure> {
        let items = piece.items();
        self.may_be_logged_early |= executed_gtids::may_be_logged_early(items);
        if self.own_account.is_none() && account_tables::are_changed(items) {
            connection.send()?;
            self.own_account = Some(OwnAccountRows::read(connection)?);
        }
        let done = self.apply_items(connection, piece);
        if let Err(failure) = &done
            && failure.kind != FailureKind::ConnectionLost
            && self.own_account.is_some()
        {
            // What has no transactions stays as the failed statement left it, and so does what is changed here.
            connection.script.clear();
            self.restore_own_account(connection)?;
        }
        done
    }

    fn apply_items(&mut self, connection: &mut ChannelConnection, piece: &Transaction) -> Result<(), Failure> {
        let items = piece.items();
        let is_only_item = items.len() == 1 && !matches!(self.transaction.body, Body::Spilled { .. });
        if connection.gtids().are_preserved() && !is_only_item && items.iter().any(is_own_commit) {
            return Err(Failure::new(
                FailureKind::Refused,
                "CREATE TABLE … SELECT, one GTID for a statement and rows, can not be applied with --gtids preserve: only MySQL from 8.0.21 on \
                 can do both in one transaction",
            )
            .at(self.transaction.place())
            .remedy("use --gtids local, or create the table by hand and go on after it"));
        }
        if nontransactional::is_one_statement(connection.gtids(), items) {
            self.begin(connection)?;
            nontransactional::write(connection, self.transaction, items)?;
            self.next += items.len();
            return Ok(());
        }
        for item in items {
            self.item(connection, piece.barrier, item)
                .map_err(|failure| at_statement(failure, self.transaction, item))?;
            self.next += 1;
        }
        Ok(())
    }

    fn item(
        &mut self,
        connection: &mut ChannelConnection,
        barrier: Option<BarrierCause>,
        item: &Item,
    ) -> Result<(), Failure> {
        match item {
            // What is left of XA in a branch that was committed in one phase: known only at its end, when pieces are read.
            Item::Statement(statement)
                if !matches!(barrier, Some(BarrierCause::Xa | BarrierCause::Unknown))
                    && matches!(statement.class.class, Class::XaStart { .. } | Class::XaEnd) =>
            {
                Ok(())
            }
            Item::Statement(statement) if commits_by_itself(statement) => {
                let tried = if self.done_before.is_some() { Tried::Perhaps } else { Tried::No };
                let kept = accounts::kept(connection, statement, self.transaction, tried)?;
                let statement = match &kept {
                    ExecutedPart::Nothing => return Ok(()),
                    ExecutedPart::Whole => statement,
                    ExecutedPart::Edited(edited) => edited,
                };
                self.commits_by_itself = true;
                // It ends the transaction that is open.
                connection.check_bookkeeping();
                connection.send()?;
                own_commit::run(connection, self.context.branches, &self.once(), statement)
                    .map_err(|failure| accounts::explained(failure, statement, connection.info()))?;
                match &statement.class.xid {
                    Some(xid) if prepare::is_marked(connection, xid)? => {
                        let statement = connection.progress().forget_branch(&xid_text(xid));
                        self.beside_progress(connection, statement)
                    }
                    _ => Ok(()),
                }
            }
            // Was committed with, or rolled back by, the statement that came after it.
            _ if self.done_before.as_ref().is_some_and(|intent| self.next < intent.item) => Ok(()),
            // MySQL before 8.0.13 refuses these inside a transaction when GTIDs are on. A crash takes the table with it.
            Item::Statement(statement) if !connection.is_open() && is_temporary_ddl(statement) => {
                connection.use_server_of(self.transaction)?;
                execute(connection, statement)
            }
            item if is_rollback(item) => self.roll_back(connection),
            Item::Statement(statement) => {
                self.begin(connection)?;
                connection.guard_bookkeeping(statement, true)?;
                execute(connection, statement)
            }
            Item::Rows(rows) => {
                self.begin(connection)?;
                connection.write_event(rows)
            }
        }
    }

    fn begin(&self, connection: &mut ChannelConnection) -> Result<(), Failure> {
        let begins = !connection.is_open();
        connection.begin(self.transaction)?;
        if begins && self.is_rolled_back {
            connection.script.statement(format!("SAVEPOINT {BEGINNING}"));
        }
        Ok(())
    }

    /// The end of a transaction that is in the log for its changes to tables without transactions only, or for a function that it calls. Goes back to the
    /// beginning, so that the progress can commit in the same transaction, under the same GTID.
    fn roll_back(&mut self, connection: &mut ChannelConnection) -> Result<(), Failure> {
        if !connection.is_open() {
            return Ok(());
        }
        connection.send()?;
        if !self.may_be_logged_early || !self.is_executed(connection)? {
            connection.execute(format!("ROLLBACK TO SAVEPOINT {BEGINNING}"))?;
            // MariaDB logs what it can not take back (a temporary table that was dropped) here, and not with what follows.
            if !self.is_executed(connection)? {
                return Ok(());
            }
        }
        self.commits_by_itself = true;
        connection.rollback()
    }

    /// Whether the source's GTID is used up.
    fn is_executed(&self, connection: &mut ChannelConnection) -> Result<bool, Failure> {
        match connection.gtids().preserved(self.transaction.gtid.as_ref())? {
            Some(gtid) => executed_gtids::is_executed(&mut connection.wire, gtid),
            None => Ok(false),
        }
    }
}

/// Of our own, at the beginning of a transaction of the source.
const BEGINNING: &str = "heddle_transaction";
