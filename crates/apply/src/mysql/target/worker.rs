//! One worker's session: which way a group goes.
//!
//! A group is one statement that commits by itself, or rows, progress and commit one after the other. Transactions with statements go to the
//! connection that all workers share for them.

use std::sync::Arc;

use binlog::TableMap;
use binlog::gtids::GtidSet;
use engine::Seq;
use engine::compact::{Batch, whole_event};
use engine::failure::{Failure, FailureKind};
use engine::transaction::{Item, Transaction};

use super::target_state::TargetState;
use crate::lock::locked;
use crate::mysql::catalogue::mismatch;
use crate::mysql::progress::executed_gtids;
use crate::mysql::progress::intent::Intents;
use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::server::errors::code;
use crate::mysql::server::sql::quote;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::one_statement::{self, StatementCapacity};
use crate::mysql::statements::barrier::{self, BarrierContext};
use crate::mysql::statements::{account_tables, definitions, pipeline};
use crate::spilled_transactions::SpilledTransactions;
use crate::{Commit, ProgressRecord, Range, Session, SingleTransaction};

pub struct WorkerSession {
    shared: Arc<TargetState>,
    connection: ChannelConnection,
    /// The last commit has failed: the next one has a statement for each step, whose errors say more.
    stepwise: bool,
    /// Of the group that was sent: the GTIDs that its commit does not log.
    sent: GtidSet,
}

impl WorkerSession {
    pub fn open(shared: Arc<TargetState>, worker: usize) -> Result<Self, Failure> {
        let connection = ChannelConnection::open(&shared.channel, worker)?;
        Ok(Self { shared, connection, stepwise: false, sent: GtidSet::default() })
    }

    /// On the connection that all workers share for statements. After a failure nothing is open there.
    fn on_statements(
        &mut self,
        source_starts: u32,
        spilled: &dyn SpilledTransactions,
        run: impl FnOnce(&mut ChannelConnection, BarrierContext<'_>) -> Result<(), Failure>,
        explain: impl FnOnce(&mut ChannelConnection, Result<(), Failure>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let shared = &*self.shared;
        shared.statements.run(&shared.channel, source_starts, |connection| {
            // They may make or change a table.
            shared.sharing.forget();
            let context = BarrierContext { unfinished: &shared.unfinished, branches: &shared.branches, spilled };
            let done = run(connection, context);
            if let Err(failure) = &done
                && failure.kind != FailureKind::ConnectionLost
            {
                connection.rollback()?;
            }
            explain(connection, done)
        })
    }

    /// What the target says was under way: this process may not know how far it has come.
    fn read_intent(&mut self) -> Result<(), Failure> {
        let channel = quote(self.connection.channel());
        let text = self.connection.scalar(format!("SELECT intent FROM {SCHEMA}.progress WHERE channel={channel}"))?;
        let intents = text.as_deref().map(Intents::required).transpose()?;
        self.shared.unfinished.set_intents(intents.unwrap_or_default());
        Ok(())
    }

    fn send_and_commit(
        &mut self,
        named_by: &Transaction,
        batches: &[Batch<'_>],
        range: Range<'_>,
    ) -> Result<Commit, Failure> {
        if self.send(named_by, batches, range)? {
            return self.answer();
        }
        let others = self.connection.gtids().to_be_added(range.transactions, named_by)?;
        self.stepwise = true;
        self.connection.write_and_commit(named_by, batches, range)?;
        self.stepwise = false;
        self.shared.gtid_adder.add(others);
        Ok(Commit::Durable)
    }

    /// Up to where the target says that the range is committed.
    fn read_committed(&mut self, range: Range<'_>) -> Result<Seq, Failure> {
        let channel = quote(self.connection.channel());
        let sql = match range.recorded_as {
            ProgressRecord::LowWater => format!("SELECT seq FROM {SCHEMA}.progress WHERE channel={channel} FOR UPDATE"),
            ProgressRecord::CommittedRange => format!(
                "SELECT COALESCE(MAX(last_seq),{before}) FROM {SCHEMA}.islands WHERE channel={channel} \
                 AND first_seq>={first} AND last_seq<={last}",
                before = range.first - 1,
                first = range.first,
                last = range.mark.seq
            ),
        };
        let text = self.connection.scalar(sql)?;
        text.and_then(|text| text.parse().ok()).ok_or_else(|| {
            Failure::new(FailureKind::Fenced, format!("{SCHEMA}.progress has no row for channel {channel} any more"))
        })
    }
}

/// After an error that names neither table nor column: the columns of these tables that are of other types than the source's.
fn explained<'a, T>(
    connection: &mut ChannelConnection,
    outcome: Result<T, Failure>,
    maps: impl Iterator<Item = &'a TableMap>,
) -> Result<T, Failure> {
    outcome.map_err(|failure| match failure.code {
        Some(code::UNKNOWN) => match mismatch::named(&mut connection.wire, maps) {
            named if named.is_empty() => failure,
            named => Failure { message: format!("{}; {named}", failure.message), ..failure },
        },
        _ => failure,
    })
}

impl Session for WorkerSession {
    fn apply(&mut self, named_by: &Transaction, batches: &[Batch<'_>]) -> Result<(), Failure> {
        let Self { shared, connection, .. } = self;
        let done = shared.interruptible.while_running(connection.number(), || {
            connection.begin(named_by)?;
            connection.write_rows(batches)?;
            connection.send()
        });
        explained(connection, done, batches.iter().map(|batch| &**batch.map))
    }

    fn commit(&mut self, named_by: &Transaction, batches: &[Batch<'_>], range: Range<'_>) -> Result<Commit, Failure> {
        let done = self.send_and_commit(named_by, batches, range);
        explained(&mut self.connection, done, batches.iter().map(|batch| &**batch.map))
    }

    fn send(&mut self, named_by: &Transaction, batches: &[Batch<'_>], range: Range<'_>) -> Result<bool, Failure> {
        if self.stepwise || self.connection.is_open() || !range.branches.is_empty() {
            return Ok(false);
        }
        self.sent = self.connection.gtids().to_be_added(range.transactions, named_by)?;
        let room = StatementCapacity::usual(&self.connection);
        let sent = one_statement::send_group(&mut self.connection, named_by, batches, range, room);
        self.stepwise = !matches!(sent, Ok(false));
        sent
    }

    fn answer(&mut self) -> Result<Commit, Failure> {
        one_statement::answer(&mut self.connection)?;
        self.stepwise = false;
        self.shared.gtid_adder.add(std::mem::take(&mut self.sent));
        Ok(Commit::Durable)
    }

    fn commit_each(&mut self, singles: &[SingleTransaction<'_>], committed_to: &mut Seq) -> Result<Commit, Failure> {
        one_statement::commit_each(&mut self.connection, singles, committed_to)?;
        Ok(Commit::Durable)
    }

    fn run_barrier(
        &mut self,
        transaction: &Transaction,
        spilled: &dyn SpilledTransactions,
        range: Range<'_>,
    ) -> Result<(), Failure> {
        self.on_statements(
            transaction.source_starts,
            spilled,
            |connection, context| barrier::run(connection, context, transaction, range),
            |connection, done| {
                let rows = transaction.items().iter().filter_map(|item| match item {
                    Item::Rows(rows) => Some(&**whole_event(rows).map),
                    Item::Statement(_) => None,
                });
                explained(connection, done, rows)
            },
        )
    }

    fn run_in_order(
        &mut self,
        singles: &[SingleTransaction<'_>],
        spilled: &dyn SpilledTransactions,
        committed_to: &mut Seq,
    ) -> Result<Commit, Failure> {
        let starts =
            |single: Option<&SingleTransaction<'_>>| single.map_or(0, |single| single.transaction.source_starts);
        let source_starts = starts(singles.first());
        let shared = Arc::clone(&self.shared);
        let is_definition = singles.first().is_some_and(|single| single.transaction.is_definition());
        // These are taken back where they concern Heddle's own account, one by one.
        let changes_accounts = singles.iter().any(|single| account_tables::are_changed(single.transaction.items()));
        if is_definition
            && !changes_accounts
            && !self.connection.gtids().are_preserved()
            && source_starts == starts(singles.last())
        {
            self.on_statements(
                source_starts,
                spilled,
                |connection, context| definitions::run(connection, context, singles, committed_to),
                |_, done| done,
            )?;
            return Ok(Commit::Durable);
        }
        // Which of them share a target transaction is known only when it commits, and its GTID comes first.
        if self.connection.gtids().are_preserved()
            || is_definition
            || source_starts != starts(singles.last())
            || !pipeline::may_all_share(&shared.sharing, &mut self.connection, singles)?
        {
            return self.run_serially(singles, spilled, committed_to);
        }
        shared
            .statements
            .run(&shared.channel, source_starts, |connection| pipeline::run(connection, singles, committed_to))?;
        Ok(Commit::Durable)
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.connection.rollback()
    }

    fn recover(&mut self, transactions: &[Arc<Transaction>], range: Range<'_>) -> Result<Seq, Failure> {
        locked(&self.shared.branches).leave_all();
        self.connection.reconnect()?;
        self.shared.statements.reconnect_if_lost()?;
        self.read_intent()?;
        // A target that has crashed may have lost what was added to its GTIDs.
        self.shared.gtid_adder.complete_on(&mut self.connection.wire)?;
        let recorded = self.read_committed(range)?;
        if range.is_committed_range() && self.connection.gtids().are_progress() {
            Ok(recorded.max(executed_gtids::executed_to(&mut self.connection.wire, transactions)?.unwrap_or(0)))
        } else {
            Ok(recorded)
        }
    }
}
