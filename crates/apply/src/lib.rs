//! Where transactions are applied: two traits, `Target` and `Session`, and one folder for each target.
//!
//! A [`Target`] is the shared side (what is applied already, table definitions, the lease), a [`Session`] one worker's
//! own connection. Progress is written in the same target transaction as the rows: after any crash it says exactly
//! what was applied.

pub mod checks;
pub mod definitions;
mod lock;
pub mod locks;
pub mod mysql;
pub mod retry;
pub mod row_text;
pub mod spilled_transactions;
pub mod standby;
pub mod status;
pub mod store;

use std::sync::Arc;
use std::time::Duration;

use binlog::gtids::GtidState;
use engine::Seq;
use engine::compact::Batch;
use engine::failure::{Culprit, Failure, FailureKind};
use engine::intake::Selection;
use engine::policy::CommitOrder;
use engine::progress::Mark;
use engine::schema::Catalogue;
use engine::sql::Xid;
use engine::transaction::Transaction;

use crate::checks::{Checks, Holdings, SourceFacts};
use crate::spilled_transactions::SpilledTransactions;
use crate::standby::{ChannelView, SourceContact, StandbyReport};

/// The longest name of a channel, in bytes. The servers' locks have names of at most 64 bytes, with the channel's name in them.
pub const CHANNEL_BYTES_MAX: usize = 50;

/// The channel that applies the log to tables which are being added to a channel. No name of a channel that a user gives ends so.
pub fn added_tables_channel(channel: &str) -> String {
    format!("{channel}+")
}

/// What this process takes without any large events, and what its allocator keeps.
const PROCESS_BYTES: u64 = 36 << 20;

/// The most workers, and with them sessions, of a channel.
pub const WORKERS_MAX: usize = 512;

/// What a target knows of a channel when it is opened.
#[derive(Clone, Debug, Default)]
pub struct ChannelRecord {
    /// `None`: the channel has never applied anything.
    pub mark: Option<Mark>,
    /// Committed ranges above the mark, left by a run with relaxed order.
    pub committed_ranges: Vec<(Seq, Seq)>,
    /// Where the target takes the source's GTIDs: the GTIDs of other servers that it has executed, whoever did it. It would skip them.
    /// Transactions of the source above the mark that are among them are committed.
    pub executed: GtidState,
    /// The source that the channel was fed from, as the channel says it.
    pub source: Option<String>,
    /// The part of the source that the channel takes, as [`engine::intake::Filter`] says it; `None`: all.
    pub part: Option<String>,
    /// Branches that are prepared on it, if it may be asked.
    pub prepared: Vec<Xid>,
    /// It can store the rows of deferred XA branches ([`engine::branches`]).
    pub keeps_branches: bool,
    /// A statement that can not be rolled back was under way; the target finds out what became of it.
    pub intent: Option<String>,
    /// Its rows are being copied (`replicate --copy`), and are not all there.
    pub is_copying: bool,
    /// Transactions that an operator wants left out: each by its number, and by its GTID or position.
    pub skips: Vec<Culprit>,
}

pub trait Target: Send + Sync {
    /// For people: server version and address, or the store's path. Never a password.
    fn describe(&self) -> String;

    /// The server that it is, as [`info::machine`] says it; `None`: none.
    fn machine(&self) -> Result<Option<String>, Failure>;

    /// Takes the channel over: refuses when another Heddle holds it, fences off what is left of an earlier one,
    /// and only then reads what is applied.
    fn open(&self) -> Result<ChannelRecord, Failure>;

    /// What [`Target::open`] would find. Takes and changes nothing.
    fn peek(&self) -> Result<ChannelRecord, Failure>;

    /// Records where a new channel starts, before anything is applied.
    fn start_at(&self, mark: &Mark, source: &str) -> Result<(), Failure>;

    /// Records the part of the source that the channel takes from here on; `None`: all.
    fn record_part(&self, part: Option<&str>) -> Result<(), Failure>;

    fn catalogue(&self) -> Result<Box<dyn Catalogue + Send>, Failure>;

    fn session(&self, worker: usize) -> Result<Box<dyn Session>, Failure>;

    /// With relaxed order: everything up to the mark is committed. Forgets the committed ranges below it.
    fn checkpoint(&self, mark: &Mark) -> Result<(), Failure>;

    /// Foreign keys of its tables that cascade.
    fn cascades(&self) -> Result<Vec<checks::Cascade>, Failure> {
        Ok(Vec::new())
    }

    /// What of a log it takes: not what would change Heddle's own tables, if it has any.
    fn selection(&self) -> Selection {
        Selection::sent()
    }

    /// Whether more sessions at a time make it faster while it reads from its disk.
    fn reads_in_parallel(&self) -> bool {
        false
    }

    /// Pages that it has read from its disk so far, whoever needed them. Asked only where it [reads in parallel](Target::reads_in_parallel).
    fn pages_read(&self) -> Result<u64, Failure> {
        Ok(0)
    }

    /// Pairs (waiting worker, blocking worker) among this channel's sessions, from the target's own lock information.
    fn lock_waits(&self) -> Result<Vec<(usize, usize)>, Failure>;

    /// Who holds what the channel's sessions wait for, for observers.
    fn lock_holders(&self) -> Result<Vec<locks::LockHolder>, Failure> {
        Ok(Vec::new())
    }

    /// Interrupts the worker's session if it is applying rows ahead of their turn. Its transaction then fails with a conflict.
    fn interrupt(&self, worker: usize) -> Result<(), Failure>;

    /// For how long to try to reach it when it is gone.
    fn reconnect_for(&self) -> Duration {
        retry::RECONNECT_FOR
    }

    /// Whether the channel can go on at another node when this one is gone: then the run ends, and another begins there.
    fn has_other_nodes(&self) -> bool {
        false
    }

    /// This node is given up: what waits for it ends after a grace. Only where there are others.
    fn give_up(&self) {}

    /// Whether sessions lock the rows that they change until they commit, and wait for each other's locks.
    fn locks_rows(&self) -> bool;

    /// Whether one sync of the disk makes commits of several sessions durable although each has its place in the source's order.
    fn syncs_for_several(&self) -> bool;

    /// Whether a target transaction takes the source's transactions of one domain and server only.
    fn groups_by_origin(&self) -> bool {
        false
    }

    /// What this process takes for it.
    fn footprint(&self) -> Footprint;

    /// Whether transactions may commit in this order: a failure says what keeps the target from it.
    fn takes_order(&self, _: CommitOrder) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether this process still has the channel: [`engine::failure::FailureKind::Fenced`] if another Heddle has taken it over.
    fn still_held(&self) -> Result<(), Failure>;

    /// Says that this process lives, to those that wait for its channel. True: somebody asks that another process takes it.
    ///
    /// # Errors
    /// [`engine::failure::FailureKind::Fenced`]: another process has the channel. Others: it could not be said now.
    fn give_sign(&self, _: SourceContact) -> Result<bool, Failure> {
        Ok(false)
    }

    /// A place among those that wait for the channel; `None`: nobody can.
    fn standby(&self) -> Option<Box<dyn Standby>> {
        None
    }

    /// Lets `heddle status` say what the channel waits for, or that it goes on.
    fn show_waits(&self, _: status::Waits) {}

    /// Lets `heddle status` say what is tried again, or that nothing is any more.
    ///
    /// # Errors
    /// The target does not take it now. Nothing depends on it.
    fn record_retry(&self, _: Option<&status::RetryStatus>) -> Result<(), Failure> {
        Ok(())
    }

    /// Remembers why the channel stops, so that `heddle status` can say it later. If that fails, only the log says it.
    fn record_stop(&self, _: &Failure) {}

    /// Once all is applied: waits until what the target says of the source's GTIDs is complete.
    ///
    /// # Errors
    /// It is not, and nobody works on it any more.
    fn complete_gtids(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Gives the channel back.
    fn close(&self);

    /// What keeps a run from its start, whatever its source is. Changes nothing; [`Target::open`] may refuse for more, such as another Heddle.
    fn refusals(&self) -> Vec<Failure> {
        Vec::new()
    }

    /// Whether it has such a table, or view; true where that can not be told.
    fn has_table(&self, _schema: &str, _table: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    /// What a new channel has to fit to. A target that says nothing of it is not looked at.
    fn holdings(&self) -> Result<Holdings, Failure> {
        Ok(Holdings::default())
    }

    /// For `--dry-run`: what would work, what may hurt, what would stop the channel. Changes nothing.
    /// `source`: a live one that could be asked.
    fn check(&self, source: Option<&SourceFacts>, report: &mut Checks);
}

/// A place among those that wait for the channel. Dropping it leaves it.
pub trait Standby: Send {
    /// # Errors
    /// The target cannot be asked now: the next call connects again.
    fn look(&mut self) -> Result<ChannelView, Failure>;

    /// What the target knows of the channel.
    ///
    /// # Errors
    /// As [`Standby::look`].
    fn channel(&mut self) -> Result<ChannelRecord, Failure>;

    /// Process and host that have the channel, or had it last.
    ///
    /// # Errors
    /// As [`Standby::look`].
    fn owner(&mut self) -> Result<String, Failure>;

    /// Why the channel stopped last, if it ever did.
    ///
    /// # Errors
    /// As [`Standby::look`].
    fn last_stop(&mut self) -> Result<Option<status::LastError>, Failure>;

    /// `heddle switch` ends the channel: nobody is to take it over.
    ///
    /// # Errors
    /// As [`Standby::look`].
    fn is_being_switched(&mut self) -> Result<bool, Failure>;

    /// Lets `heddle status` say that it waits.
    ///
    /// # Errors
    /// The target does not take it now. Nothing depends on it.
    fn show(&mut self, report: &StandbyReport) -> Result<(), Failure>;

    /// Ends the connection that held the channel's lock when it was seen last: its process gives no sign of life.
    ///
    /// # Errors
    /// As [`Standby::look`].
    fn end_holder(&mut self, holder: u64) -> Result<(), Failure>;

    /// Asks the process that has the channel to hand it over. It is asked until this place is left.
    ///
    /// # Errors
    /// As [`Standby::look`].
    fn ask(&mut self) -> Result<(), Failure>;

    /// Asks no more.
    fn withdraw(&mut self);

    /// Takes what it has said of itself from the target.
    fn leave(&mut self);
}

/// What a target takes of this process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The whole process, without any events.
    pub base_bytes: u64,
    /// How many more times a large event is in memory while it is applied.
    pub event_copies: u64,
}

/// How far a commit is when [`Session::commit`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    Durable,
    /// Its place in the order is taken and its rows can be seen; [`Session::wait_durable`] waits for the disk.
    Ordered,
}

/// One worker's connection. At most one transaction is open at a time.
pub trait Session: Send {
    /// Begins a target transaction and applies the batches in it. `named_by`: its last source transaction, whose GTID and server it is of.
    fn apply(&mut self, named_by: &Transaction, batches: &[Batch<'_>]) -> Result<(), Failure>;

    /// The group is not granted yet. Its deferred rows, its commit or a rollback come next.
    fn waits_for_grant(&mut self) {}

    /// Applies the batches (beginning the transaction if `apply` did not), records the progress in the same transaction
    /// and commits. After an error nothing of the group is applied, except with [`engine::failure::FailureKind::ConnectionLost`].
    fn commit(&mut self, named_by: &Transaction, batches: &[Batch<'_>], range: Range<'_>) -> Result<Commit, Failure>;

    /// Sends what [`Session::commit`] would have sent, if that is one statement, and does not wait. Then [`Session::answer`] comes next.
    /// False: nothing was sent.
    fn send(&mut self, named_by: &Transaction, batches: &[Batch<'_>], range: Range<'_>) -> Result<bool, Failure> {
        let _ = (named_by, batches, range);
        Ok(false)
    }

    /// Waits for the answer to what [`Session::send`] has sent. Returns what [`Session::commit`] would have returned.
    fn answer(&mut self) -> Result<Commit, Failure> {
        Err(Failure::new(FailureKind::Refused, "nothing was sent that could be answered: this is a bug in heddle"))
    }

    fn wait_durable(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Applies and commits transactions one after the other, each by itself, in as few round trips as the target allows.
    /// After an error `committed_to` is the last that is committed and durable, if any is.
    fn commit_each(&mut self, singles: &[SingleTransaction<'_>], committed_to: &mut Seq) -> Result<Commit, Failure> {
        let mut last = Commit::Durable;
        for single in singles {
            match self.commit(single.transaction, &single.batches, single.range) {
                Ok(commit) => last = commit,
                Err(failure) => return self.wait_durable().and(Err(failure)),
            }
            *committed_to = single.range.mark.seq;
        }
        Ok(last)
    }

    /// Applies a barrier, with its progress: statements, DDL, XA, or a transaction that is read again from the log.
    fn run_barrier(
        &mut self,
        transaction: &Transaction,
        spilled: &dyn SpilledTransactions,
        range: Range<'_>,
    ) -> Result<(), Failure>;

    /// Applies transactions serially: statements that can be rolled back, and rows between them. The session decides how many of them share
    /// a target transaction. After an error `committed_to` is the last that is committed and durable, if any is.
    fn run_in_order(
        &mut self,
        singles: &[SingleTransaction<'_>],
        spilled: &dyn SpilledTransactions,
        committed_to: &mut Seq,
    ) -> Result<Commit, Failure> {
        self.run_serially(singles, spilled, committed_to)
    }

    /// The same, each in a target transaction of its own.
    fn run_serially(
        &mut self,
        singles: &[SingleTransaction<'_>],
        spilled: &dyn SpilledTransactions,
        committed_to: &mut Seq,
    ) -> Result<Commit, Failure> {
        for single in singles {
            if single.transaction.barrier.is_some() {
                self.run_barrier(single.transaction, spilled, single.range)?;
            } else if self.commit(single.transaction, &single.batches, single.range)? == Commit::Ordered {
                self.wait_durable()?;
            }
            *committed_to = single.range.mark.seq;
        }
        Ok(Commit::Durable)
    }

    fn rollback(&mut self) -> Result<(), Failure>;

    /// Connects anew after a lost connection, and makes sure that nothing of the old one can still commit. Returns up to where the range, of
    /// these transactions, is committed (`first - 1`: nothing of it).
    fn recover(&mut self, transactions: &[Arc<Transaction>], range: Range<'_>) -> Result<Seq, Failure>;
}

/// One source transaction with its own progress.
#[derive(Debug)]
pub struct SingleTransaction<'a> {
    pub transaction: &'a Transaction,
    /// Its rows, in order. A barrier has none.
    pub batches: Vec<Batch<'a>>,
    pub range: Range<'a>,
}

/// What the target records once a range is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressRecord {
    /// Preserved order: the low water moves to the range's end.
    LowWater,
    /// Relaxed order: the range itself, above the low water. A checkpoint moves the low water later.
    CommittedRange,
}

/// Source transactions `first..=mark.seq`, and what the target remembers once they are committed.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    pub first: Seq,
    /// Preserved order: the low water that the target has recorded before. It is `first - 1`, or less when an earlier run with relaxed order
    /// has committed what lies between.
    pub before: Seq,
    pub mark: &'a Mark,
    pub recorded_as: ProgressRecord,
    /// Those that commit as one; nobody asks for them where each commits by itself.
    pub transactions: &'a [Arc<Transaction>],
    /// The transactions, if some of them say something of branches ([`Transaction::branch`]).
    pub branches: &'a [Arc<Transaction>],
}

impl Range<'_> {
    pub fn is_committed_range(&self) -> bool {
        self.recorded_as == ProgressRecord::CommittedRange
    }
}
