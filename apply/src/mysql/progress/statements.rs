//! What the target remembers: the tables `heddle.progress` and `heddle.islands`, and the statements on them.
//!
//! Every statement that notes progress is a compare-and-set that fails, and with it the target transaction: the fence
//! column is set to NULL, which its definition forbids, unless the lease and the low water are what this process
//! knows. So a process that was taken for dead can never commit after its successor has read where to go on. (`note` has
//! rows instead of statements; there the successor ends the connections that could still commit.)

use binlog::LogPosition;
use binlog::gtids::GtidState;
use engine::Seq;
use engine::progress::Mark;

use crate::Range;
use crate::mysql::server::errors::FENCE_COLUMN;
use crate::mysql::server::sql::quote;
use crate::mysql::xa::deferred;

pub const SCHEMA: &str = "heddle";
/// The tables that [`create`] makes; each has a column `channel`.
pub const TABLES: [&str; 5] = ["progress", "islands", "leases", "branches", "kept_branches"];

/// Statements that make the bookkeeping tables. They name columns, so that a later version can add some.
pub fn create() -> Vec<String> {
    vec![
        format!("CREATE DATABASE IF NOT EXISTS {SCHEMA}"),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.progress (\
             channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, \
             {FENCE_COLUMN} BIGINT UNSIGNED NOT NULL, \
             seq BIGINT UNSIGNED NOT NULL, \
             source_file VARCHAR(512) NOT NULL, \
             source_position BIGINT UNSIGNED NOT NULL, \
             gtids LONGTEXT NOT NULL, \
             commit_time_us BIGINT UNSIGNED NOT NULL, \
             applied_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), \
             source VARCHAR(255) NOT NULL, \
             owner VARCHAR(255) NOT NULL, \
             started BOOLEAN NOT NULL DEFAULT 0, \
             intent LONGTEXT NULL\
             ) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.islands (\
             channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
             first_seq BIGINT UNSIGNED NOT NULL, \
             last_seq BIGINT UNSIGNED NOT NULL, \
             {FENCE_COLUMN} BIGINT UNSIGNED NOT NULL, \
             {WORKER_COLUMN}, \
             {ISLANDS_KEY}\
             ) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.leases (\
             channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, \
             {FENCE_COLUMN} BIGINT UNSIGNED NOT NULL\
             ) ENGINE=InnoDB"
        ),
        create_branches(),
        deferred::create(),
    ]
}

/// Workers note their islands in pages of their own: in one they would wait for each other. 0 where a statement notes it.
const WORKER_COLUMN: &str = "worker SMALLINT UNSIGNED NOT NULL DEFAULT 0";
const ISLANDS_KEY: &str = "PRIMARY KEY (channel, worker, first_seq)";

/// Asks whether the table of islands knows workers, which that of the first versions did not: 1 or 0.
pub fn has_workers() -> String {
    format!(
        "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='{SCHEMA}' AND TABLE_NAME='islands' AND COLUMN_NAME='worker'"
    )
}

/// Gives the table of islands what it lacks then.
pub fn add_workers() -> String {
    format!("ALTER TABLE {SCHEMA}.islands ADD COLUMN {WORKER_COLUMN}, DROP PRIMARY KEY, ADD {ISLANDS_KEY}")
}

/// Marks of prepared XA branches that changed nothing, or may have, until their XA COMMIT or XA ROLLBACK comes by. Channels of an
/// earlier version do not have the table yet.
pub fn create_branches() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.branches (\
         channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
         xid VARCHAR(300) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, \
         PRIMARY KEY (channel, xid)\
         ) ENGINE=InnoDB"
    )
}

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

    /// That a range is committed.
    pub fn note(&self, range: Range<'_>) -> String {
        match range.is_committed_range() {
            true => self.island(range.first, range.mark.seq),
            false => self.advance(range.before, range.mark),
        }
    }

    /// Moves the low water from `before` to the mark. SYSDATE, since row events set the session's NOW to the source's time.
    pub fn advance(&self, before: Seq, mark: &Mark) -> String {
        format!(
            "UPDATE {SCHEMA}.progress SET {FENCE_COLUMN}=IF({FENCE_COLUMN}={epoch} AND seq={before},{epoch},NULL),{values},\
             applied_at=SYSDATE(6),intent={intent} WHERE channel={channel}",
            epoch = self.epoch,
            values = values(mark),
            channel = self.channel(),
            // With relaxed order this may come while a later statement is under way.
            intent = format_args!("IF(SUBSTRING_INDEX(SUBSTRING(intent,5),' ',1)+0<={},NULL,intent)", mark.seq),
        )
    }

    /// With relaxed order: `first..=last` is committed. The lease is locked shared until the commit, so that a successor
    /// that takes it over waits and then sees this row.
    fn island(&self, first: Seq, last: Seq) -> String {
        format!(
            "INSERT INTO {SCHEMA}.islands (channel,first_seq,last_seq,{FENCE_COLUMN}) VALUES ({channel},{first},{last},\
             (SELECT IF({FENCE_COLUMN}={epoch},{epoch},NULL) FROM {SCHEMA}.leases WHERE channel={channel} LOCK IN SHARE MODE))",
            epoch = self.epoch,
            channel = self.channel(),
        )
    }

    /// Before a statement that commits by itself: which, and how to tell whether it was executed (empty: none is). `before`: the low
    /// water in preserved order; with relaxed order the one that is noted runs behind.
    pub fn intend(&self, before: Option<Seq>, intent: &str) -> String {
        let expected = before.map_or_else(String::new, |seq| format!(" AND seq={seq}"));
        format!(
            "UPDATE {SCHEMA}.progress SET {FENCE_COLUMN}=IF({FENCE_COLUMN}={epoch}{expected},{epoch},NULL),\
             intent={intent},applied_at=applied_at WHERE channel={channel}",
            epoch = self.epoch,
            intent = if intent.is_empty() { "NULL".to_owned() } else { quote(intent) },
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

    pub fn forget_islands(&self, up_to: Seq) -> String {
        format!("DELETE FROM {SCHEMA}.islands WHERE channel={} AND last_seq<={up_to}", self.channel())
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
    let gtids: GtidState = text(3)?.parse().map_err(|error| format!("heddle.progress.gtids: {error}"))?;
    Ok(Mark {
        seq: number(0)?,
        position: (!file.is_empty()).then_some(LogPosition::new(file, number(2)?)),
        gtids,
        commit_time_us: number(4)?,
    })
}
