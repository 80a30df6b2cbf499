//! Statements, and rows between them, one after the other in the source's order, many in one target transaction.
//!
//! They are sent ahead of their answers, each as a command of its own, its text as the source logged it. What is sent behind a statement that fails
//! is executed all the same, so nothing of it may commit: the connection does not commit by itself meanwhile, and `COMMIT` is only sent once all
//! answers are there.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use binlog::Flavour;
use engine::Seq;
use engine::compact::Batch;
use engine::failure::{Failure, FailureKind};
use engine::sql::ObjectName;
use engine::transaction::{Item, StatementItem};

use super::account_tables;
use super::execute::context;
use super::execute::text::{CreateTable, text, with_invoker};
use super::execute::user_locks;
use super::execute::{at_statement, at_transaction};
use crate::lock::locked;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;
use crate::mysql::session::bookkeeping_guard::is_violation;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::{one_statement, settings};
use crate::{Range, SingleTransaction};

/// The most commands whose answers are not read yet: enough to fill a network, and few enough for their answers to fit into the socket.
const AHEAD_MAX: usize = 64;
/// If a statement takes longer than this, the next one is sent only after its answer, so that a transaction ends in time.
const SLOW: Duration = Duration::from_millis(5);
/// A target transaction that has taken this long is committed. So a crash or an error rolls back no more than that, and locks are held no longer.
const COMMIT_AFTER: Duration = Duration::from_millis(250);

/// Whether the statements of a table may share a target transaction.
#[derive(Debug, Default)]
pub struct SharedTables(Mutex<HashMap<ObjectName, bool>>);

impl SharedTables {
    pub fn forget(&self) {
        locked(&self.0).clear();
    }
}

/// Whether all tables that the statements change can be rolled back on the target, too (what fails is executed again), and keep no history by transaction. A table with
/// triggers does not share: what they change is not known.
pub fn may_all_share(
    sharing: &SharedTables,
    connection: &mut ChannelConnection,
    singles: &[SingleTransaction<'_>],
) -> Result<bool, Failure> {
    let mut known = locked(&sharing.0);
    let items =
        singles.iter().filter(|single| single.transaction.barrier.is_some()).flat_map(|s| s.transaction.items());
    for item in items {
        let Item::Statement(statement) = item else { continue };
        if account_tables::may_change(statement) {
            return Ok(false);
        }
        connection.learn_table(statement)?;
        for table in &statement.class.tables {
            let shares = match known.get(table) {
                Some(&shares) => shares,
                None => {
                    let shares = may_share(connection, table)?;
                    known.insert(table.clone(), shares);
                    shares
                }
            };
            if !shares {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A view, or a table that is not there (a temporary one, say), is as on the source, where the transaction could be rolled back.
fn may_share(connection: &mut ChannelConnection, table: &ObjectName) -> Result<bool, Failure> {
    let place = format!("TABLE_SCHEMA={} AND TABLE_NAME={}", quote(&table.schema), quote(&table.name));
    let has_history = connection.info().flavour == Flavour::MariaDb && connection.info().version >= (10, 3, 0);
    let mut none = |sql: String| Ok::<_, Failure>(connection.scalar(sql)?.as_deref() == Some("0"));
    let rolls_back = none(format!(
        "SELECT COUNT(*) FROM information_schema.TABLES JOIN information_schema.ENGINES USING (ENGINE) WHERE {place} AND TRANSACTIONS<>'YES'"
    ))?;
    let has_no_triggers = none(format!(
        "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA={} AND EVENT_OBJECT_TABLE={}",
        quote(&table.schema),
        quote(&table.name)
    ))?;
    // See [`engine::schema::BarrierReason::TransactionHistory`].
    let numbers = "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE GENERATION_EXPRESSION='ROW START' AND DATA_TYPE='bigint'";
    Ok(rolls_back && has_no_triggers && (!has_history || none(format!("{numbers} AND {place}"))?))
}

/// After an error nothing that is not committed is left, and the connection has its own settings again.
pub fn run(
    connection: &mut ChannelConnection,
    singles: &[SingleTransaction<'_>],
    committed_to: &mut Seq,
) -> Result<(), Failure> {
    connection.execute_despite_interruption("SET SESSION autocommit=0")?;
    let done = Pipeline { connection, singles, sent: VecDeque::new(), ahead: 0, frame: None }.run(committed_to);
    if let Err(lost) = &done
        && lost.kind == FailureKind::ConnectionLost
    {
        return done;
    }
    if done.is_err() {
        connection.rollback()?;
    }
    connection.execute_despite_interruption("SET SESSION autocommit=1")?;
    done
}

/// One of these transactions has changed Heddle's tables. Which one shows when each is executed by itself.
fn changes_bookkeeping(failure: Failure, first: &SingleTransaction<'_>, last: &SingleTransaction<'_>) -> Failure {
    if !is_violation(&failure) {
        return failure;
    }
    if first.transaction.seq == last.transaction.seq {
        return at_transaction(failure, last.transaction);
    }
    Failure::new(FailureKind::Conflict, failure.message)
}

/// A command whose answer is not read yet.
struct Sent<'a> {
    /// How many it is of.
    statements: usize,
    /// What it executes; `None`: settings of our own.
    of: Option<AnsweredItem<'a>>,
}

#[derive(Clone, Copy)]
enum AnsweredItem<'a> {
    Statement(&'a SingleTransaction<'a>, &'a Item),
    Rows,
}

/// Transactions one behind the other.
struct Pipeline<'a> {
    connection: &'a mut ChannelConnection,
    singles: &'a [SingleTransaction<'a>],
    sent: VecDeque<Sent<'a>>,
    /// How many of these there may be: grows while the answers are quick.
    ahead: usize,
    /// The session state that is set, and the statement that takes it back.
    frame: Option<(String, String)>,
}

impl<'a> Pipeline<'a> {
    fn run(&mut self, committed_to: &mut Seq) -> Result<(), Failure> {
        let done = self.transactions(committed_to);
        if done.is_err() {
            // What was sent behind it.
            while !self.sent.is_empty() && !self.connection.wire.is_broken() {
                let _ = self.answer();
            }
            if let Some((_, reset)) = self.frame.take() {
                // The first error says more than another one would. Who uses the connection next finds out if it is lost.
                let _ = self.connection.wire.execute(reset);
            }
        }
        done
    }

    fn transactions(&mut self, committed_to: &mut Seq) -> Result<(), Failure> {
        let singles = self.singles;
        let mut begun: Option<(&SingleTransaction<'_>, Instant)> = None;
        for (at, single) in singles.iter().enumerate() {
            let (first, since) = *begun.get_or_insert_with(|| (single, Instant::now()));
            self.connection.begin(first.transaction)?;
            self.transaction(single)?;
            if at + 1 == singles.len() || since.elapsed() > COMMIT_AFTER {
                self.own_settings()?;
                self.answers(0)?;
                let range = Range { first: first.range.first, before: first.range.before, ..single.range };
                self.connection
                    .record_and_commit(range)
                    .map_err(|failure| changes_bookkeeping(failure, first, single))?;
                *committed_to = single.range.mark.seq;
                begun = None;
            }
        }
        Ok(())
    }

    fn transaction(&mut self, single: &'a SingleTransaction<'a>) -> Result<(), Failure> {
        if single.transaction.barrier.is_none() {
            return self.rows(single, &single.batches);
        }
        for item in single.transaction.items() {
            match item {
                Item::Statement(statement) => {
                    let at = |failure| at_statement(failure, single.transaction, item);
                    self.statement(single, item, statement).map_err(at)?;
                }
                Item::Rows(rows) => self.rows(single, &[engine::compact::whole_event(rows)])?,
            }
        }
        Ok(())
    }

    fn rows(&mut self, single: &SingleTransaction<'_>, batches: &[Batch<'_>]) -> Result<(), Failure> {
        self.own_settings()?;
        if one_statement::gather(self.connection, single.transaction, batches)? {
            return self.send_gathered(Some(AnsweredItem::Rows));
        }
        // Many, or rows that take questions: answers are read in between.
        self.answers(0)?;
        self.connection.rows().set_server_id(single.transaction.server_id);
        self.connection.write_rows(batches)
    }

    fn statement(
        &mut self,
        single: &'a SingleTransaction<'a>,
        item: &'a Item,
        statement: &StatementItem,
    ) -> Result<(), Failure> {
        self.connection.guard_bookkeeping(statement, self.sent.is_empty())?;
        self.send_gathered(None)?;
        let info = self.connection.info();
        let frame = context::frame(statement, info)?;
        let state = frame.text(None);
        if self.frame.as_ref().is_none_or(|(known, _)| *known != state) {
            let own_again = settings::reset(info, statement.query.vars.default_table_encryption);
            self.own_settings()?;
            // First, so that they are taken back whatever comes of what was sent before.
            self.frame = Some((state.clone(), own_again));
            self.send(&state, None)?;
        }
        self.send(&frame.own, None)?;
        let text = text(statement, CreateTable::BeforeItsRows);
        let text = with_invoker(statement, &text, self.connection.info().flavour)?;
        self.send(&text, Some(AnsweredItem::Statement(single, item)))?;
        if let Some(own_again) = user_locks::own_again(self.connection, statement) {
            self.send(own_again, None)?;
        }
        // User variables are set in Heddle's own character set, and their values are this statement's only.
        if !frame.variables.is_empty() {
            self.own_settings()?;
        }
        Ok(())
    }

    /// As rows need it, and texts of our own.
    fn own_settings(&mut self) -> Result<(), Failure> {
        let Some((_, reset)) = &self.frame else { return Ok(()) };
        let reset = reset.clone();
        self.make_room(reset.len())?;
        self.frame = None;
        self.send(&reset, None)
    }

    /// What waits in the session's script.
    fn send_gathered(&mut self, of: Option<AnsweredItem<'a>>) -> Result<(), Failure> {
        self.make_room(self.connection.script.packet_bytes())?;
        let ChannelConnection { script, wire, .. } = &mut *self.connection;
        match script.send_ahead(wire).map_err(failed)? {
            0 => Ok(()),
            statements => self.on_its_way(Sent { statements, of }),
        }
    }

    fn send(&mut self, sql: impl AsRef<[u8]>, of: Option<AnsweredItem<'a>>) -> Result<(), Failure> {
        self.make_room(sql.as_ref().len())?;
        self.connection.wire.send_query(sql.as_ref()).map_err(failed)?;
        self.on_its_way(Sent { statements: 1, of })
    }

    /// So much may be sent behind what is not answered yet: more would hide from the connection that the target is gone.
    fn make_room(&mut self, bytes: usize) -> Result<(), Failure> {
        while !self.sent.is_empty() && !self.connection.wire.takes_ahead(bytes) {
            self.answer()?;
        }
        Ok(())
    }

    fn on_its_way(&mut self, sent: Sent<'a>) -> Result<(), Failure> {
        self.sent.push_back(sent);
        self.answers(self.ahead)
    }

    /// Until no more than so many are open.
    fn answers(&mut self, open: usize) -> Result<(), Failure> {
        while self.sent.len() > open {
            self.answer()?;
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<(), Failure> {
        let Some(Sent { statements, of }) = self.sent.pop_front() else { return Ok(()) };
        let since = Instant::now();
        let done = self.connection.wire.read_statements(statements).map(|_| ()).map_err(failed);
        if of.is_some() {
            self.ahead = if since.elapsed() > SLOW { 0 } else { (2 * self.ahead + 1).min(AHEAD_MAX) };
        }
        match of {
            Some(AnsweredItem::Statement(single, item)) => {
                done.map_err(|failure| at_statement(failure, single.transaction, item))
            }
            Some(AnsweredItem::Rows) | None => done,
        }
    }
}
