//! The statements on the tables of a channel.
//!
//! Every statement that records progress is a compare-and-set. The fence column is set to NULL, which its definition forbids, unless the lease
//! and the low water are what this process knows: then the statement fails, and the target transaction with it. So a process that was taken
//! for dead can never commit after its successor has read where to go on. (Progress as a row, `progress_rows.rs`, has no such check. There the
//! successor ends the connections that could still commit.)

use binlog::LogPosition;
use binlog::gtids::GtidState;
use engine::Seq;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;
use wire::Connection;

use super::tables::SCHEMA;
use crate::mysql::server::errors::FENCE_COLUMN;
use crate::mysql::server::sql::quote;
use crate::{ProgressRecord, Range};

/// The statements of one channel under one lease.
#[derive(Clone, Debug)]
pub struct Statements {
    pub channel: String,
    pub epoch: u64,
}

impl Statements {
    fn channel(&self) -> String {
        quote(&self.channel)
    }

    /// Records that a range is committed.
    pub fn record(&self, range: Range<'_>) -> String {
        match range.recorded_as {
            ProgressRecord::CommittedRange => self.committed_range(range.first, range.mark.seq),
            ProgressRecord::LowWater => self.advance(range.before, range.mark),
        }
    }

    /// What it means that the row to be changed was not there.
    pub fn not_recorded(&self, range: Range<'_>) -> Failure {
        let (channel, last) = (self.channel(), range.mark.seq);
        let message = format!(
            "the row of channel {channel} in {SCHEMA}.progress is gone; the transactions up to {last} are committed but not recorded"
        );
        Failure::new(FailureKind::Fenced, message)
            .remedy("find out who removed it; restore it from the last `heddle status`, or load the target anew")
    }

    /// Moves the low water from `before` to the mark. SYSDATE, since row events set the session's NOW to the source's time.
    pub fn advance(&self, before: Seq, mark: &Mark) -> String {
        // With relaxed order this may come while a later statement is under way.
        let done = format!("IF(SUBSTRING_INDEX(SUBSTRING(intent,5),' ',1)+0<={},NULL,intent)", mark.seq);
        self.advance_with(before, mark, &done)
    }

    /// The same, and what comes next is under way. Empty: nothing is.
    pub fn advance_and_intend(&self, before: Seq, mark: &Mark, intent: &str) -> String {
        self.advance_with(before, mark, &or_null(intent))
    }

    fn advance_with(&self, before: Seq, mark: &Mark, intent: &str) -> String {
        format!(
            "UPDATE {SCHEMA}.progress SET {FENCE_COLUMN}=IF({FENCE_COLUMN}={epoch} AND seq={before},{epoch},NULL),{values},\
             applied_at=SYSDATE(6),intent={intent} WHERE channel={channel}",
            epoch = self.epoch,
            values = values(mark),
            channel = self.channel(),
        )
    }

    /// With relaxed order: `first..=last` is committed. The lease is locked shared until the commit, so that a successor
    /// that takes it over waits and then sees this row.
    fn committed_range(&self, first: Seq, last: Seq) -> String {
        format!(
            "INSERT INTO {SCHEMA}.islands (channel,first_seq,last_seq,{FENCE_COLUMN}) VALUES ({channel},{first},{last},\
             (SELECT IF({FENCE_COLUMN}={epoch},{epoch},NULL) FROM {SCHEMA}.leases WHERE channel={channel} LOCK IN SHARE MODE))",
            epoch = self.epoch,
            channel = self.channel(),
        )
    }

    /// Before a statement that commits by itself: which one, and how to tell whether it was executed. Empty: none is under way. `before`: the low
    /// water in preserved order; with relaxed order the recorded one runs behind.
    pub fn intend(&self, before: Option<Seq>, intent: &str) -> String {
        let expected = before.map_or_else(String::new, |seq| format!(" AND seq={seq}"));
        format!(
            "UPDATE {SCHEMA}.progress SET {FENCE_COLUMN}=IF({FENCE_COLUMN}={epoch}{expected},{epoch},NULL),\
             intent={intent},applied_at=applied_at WHERE channel={channel}",
            epoch = self.epoch,
            intent = or_null(intent),
            channel = self.channel(),
        )
    }

    pub fn mark_branch(&self, xid: &str) -> String {
        format!("INSERT IGNORE INTO {SCHEMA}.branches (channel,xid) VALUES ({},{})", self.channel(), quote(xid))
    }

    pub fn forget_branch(&self, xid: &str) -> String {
        format!("DELETE FROM {SCHEMA}.branches WHERE channel={} AND xid={}", self.channel(), quote(xid))
    }

    pub fn is_branch_marked(&self, xid: &str) -> String {
        format!("SELECT COUNT(*) FROM {SCHEMA}.branches WHERE channel={} AND xid={}", self.channel(), quote(xid))
    }

    pub fn forget_committed_ranges(&self, up_to: Seq) -> String {
        format!("DELETE FROM {SCHEMA}.islands WHERE channel={} AND last_seq<={up_to}", self.channel())
    }

    /// With relaxed order: moves the low water to the mark, and forgets the committed ranges below it. After an error a transaction is open.
    ///
    /// The row is locked from the reading on: what a connection that was lost has sent may be executed only now.
    pub fn checkpoint(&self, connection: &mut Connection, mark: &Mark) -> Result<(), wire::Error> {
        connection.execute("BEGIN")?;
        let channel = self.channel();
        let recorded =
            connection.scalar(format!("SELECT seq FROM {SCHEMA}.progress WHERE channel={channel} FOR UPDATE"))?;
        let before = recorded.and_then(|text| text.parse().ok()).unwrap_or(0);
        if before >= mark.seq {
            return connection.execute("ROLLBACK").map(|_| ());
        }
        let (advance, forget) = (self.advance(before, mark), self.forget_committed_ranges(mark.seq));
        connection.execute(format!("{advance};{forget};COMMIT")).map(|_| ())
    }

    pub fn start_at(&self, mark: &Mark, source: &str) -> String {
        format!(
            "UPDATE {SCHEMA}.progress SET {FENCE_COLUMN}=IF({FENCE_COLUMN}={epoch},{epoch},NULL),{values},source={source},\
             started=1 WHERE channel={channel}",
            epoch = self.epoch,
            values = values(mark),
            source = quote(source),
            channel = self.channel(),
        )
    }
}

fn or_null(intent: &str) -> String {
    if intent.is_empty() { "NULL".to_owned() } else { quote(intent) }
}

fn values(mark: &Mark) -> String {
    let (file, offset) = match &mark.position {
        Some(position) => (position.file.as_ref(), position.offset),
        None => ("", 0),
    };
    format!(
        "seq={},source_file={},source_position={offset},gtids={},commit_time_us={}",
        mark.seq,
        quote(file),
        quote(&mark.gtids.to_string()),
        mark.commit_time_us,
    )
}

/// Columns in the order that [`read_mark`] takes them.
pub const MARK_COLUMNS: &str = "seq,source_file,source_position,gtids,commit_time_us";

/// One row of [`MARK_COLUMNS`].
pub fn read_mark(row: &wire::Row) -> Result<Mark, String> {
    let text = |index: usize| row.required_text(index).map_err(|error| error.to_string());
    let number = |index: usize| row.required::<u64>(index).map_err(|error| error.to_string());
    let file = text(1)?;
    let gtids: GtidState = text(3)?.parse().map_err(|error| format!("{SCHEMA}.progress.gtids: {error}"))?;
    Ok(Mark {
        seq: number(0)?,
        position: (!file.is_empty()).then_some(LogPosition::new(file, number(2)?)),
        gtids,
        commit_time_us: number(4)?,
    })
}
