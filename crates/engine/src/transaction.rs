//! One commit of the source (or one DDL) with everything that later stages need to know of it.

use std::ops::Range;
use std::sync::Arc;

use binlog::{Query, RowsEvent, TableMap};
use smallvec::SmallVec;

use crate::Seq;
use crate::failure::Culprit;
use crate::intake::Refusal;
use crate::row_session::RowSession;
use crate::schema::{Table, TableId};
use crate::sql::{self, Class, DdlKind, DmlKind, SqlMode, Unsafety, Xid};
use crate::tags::ServerSet;
use binlog::LogPosition;
use binlog::gtids::Gtid;

/// What the source wrote about when a transaction may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// MySQL's logical clock; 0 when the source does not tag.
    pub last_committed: i64,
    pub sequence_number: i64,
    /// MariaDB's group commit id: transactions of one group share it.
    pub commit_id: Option<u64>,
    /// MariaDB's replication domain; 0 for MySQL.
    pub domain: u32,
    /// MariaDB's `FL_*` flags of the GTID event.
    pub flags: u8,
    /// The source's connection; 0: the log does not say.
    pub session: u32,
}

#[derive(Debug)]
pub struct Transaction {
    pub seq: Seq,
    pub gtid: Option<Gtid>,
    /// Where its first event starts.
    pub start: LogPosition,
    /// Where the event after it starts: a channel that has applied it goes on here.
    pub end: LogPosition,
    pub tags: Tags,
    pub server_id: u32,
    /// Microseconds since the epoch at the commit on the source that sends it; whole seconds when the source does not say more.
    pub commit_time_us: u64,
    /// The same on the server where it began: of a source that is a replica itself, or was restored from logs, it may be long before.
    pub original_commit_us: u64,
    /// Bytes of its events, decompressed.
    pub bytes: u64,
    /// Memory of the table maps that were decoded for it. Transactions after it that use the same maps share them, and do not count them again.
    pub map_bytes: u64,
    pub body: Body,
    /// The log says that the source could have rolled all of it back, what triggers and functions changed included: MariaDB by a flag of the GTID, MySQL
    /// by a GTID and an XID event (without GTIDs a transaction may have changed a table without transactions as well).
    pub rolls_back: bool,
    /// Its items are known, and each [only changes rows](Item::is_plain_change).
    pub only_changes: bool,
    /// A branch is prepared on the target meanwhile, whose end comes later in the log: its locks would not go while this waits for one. So no row is
    /// changed in another way than on the source, where it did not wait.
    pub beside_prepared: bool,
    /// That of its rows, if some need it: filled in by keying. Only such of one session share a target transaction.
    pub session: Option<Arc<RowSession>>,
    /// It prepared or ends an XA branch that is not prepared on the target.
    pub branch: Option<Box<Branch>>,
    /// How often the source has started in the log read so far, before this transaction: with each start its sessions' temporary tables were gone.
    pub source_starts: u32,
    pub write_set: WriteSet,
    /// Set when nothing may run beside it.
    pub barrier: Option<BarrierCause>,
    /// Of its statements those whose result may be another on the target, one for each kind; only where they [were asked for](crate::intake::Intake).
    pub unsafe_statements: Vec<UnsafeStatement>,
    /// Definitions that the [selection](crate::intake::Selection) leaves out, as they may be shown, with the reason.
    pub left_out: Vec<String>,
    /// The selection can neither take it nor leave it out.
    pub refusal: Option<Box<Refusal>>,
}

/// A statement that both servers' manuals call unsafe for statement-based replication.
#[derive(Clone, Debug)]
pub struct UnsafeStatement {
    pub found: Unsafety,
    /// Its beginning, as it may be shown.
    pub text: String,
}

#[derive(Debug)]
pub enum Body {
    Items(Vec<Item>),
    /// Larger than the memory budget: its events, with so many rows, are read again from the log, from `start` to `end`.
    Spilled {
        rows: u64,
        /// Of its largest event, inflated.
        event_bytes: u64,
        /// Its last statement is ROLLBACK.
        is_rolled_back: bool,
    },
}

impl Body {
    pub fn spilled_rows(&self) -> u64 {
        match self {
            Body::Items(_) => 0,
            Body::Spilled { rows, .. } => *rows,
        }
    }
}

impl Transaction {
    /// Also those of one that is too large to hold: it has no write set.
    pub fn rows(&self) -> u64 {
        self.write_set.rows.len() as u64 + self.body.spilled_rows()
    }

    pub fn items(&self) -> &[Item] {
        match &self.body {
            Body::Items(items) => items,
            Body::Spilled { .. } => &[],
        }
    }

    /// A barrier of statements that only change rows, and can be rolled back: others may follow it in the same target transaction, in the log's
    /// order, and it changes no table definition.
    pub fn takes_others(&self) -> bool {
        self.barrier == Some(BarrierCause::Statement) && self.rolls_back && self.only_changes
    }

    /// A barrier of one statement that defines tables or changes accounts: others like it may follow it on the same connection. Each commits by itself.
    pub fn is_definition(&self) -> bool {
        let [Item::Statement(statement)] = self.items() else { return false };
        let Class::Ddl { kind } = statement.class.class else { return false };
        let defines = match kind {
            DdlKind::CreateTable { temporary, select, start_transaction, .. } => {
                !(temporary || select || start_transaction)
            }
            DdlKind::DropTable { temporary, .. } => !temporary,
            _ => kind.is_account() || statement.class.is_of_its_tables(),
        };
        defines && self.barrier.is_some() && self.branch.is_none() && statement.query.error_code == 0
    }

    /// On the source it prepared a branch, and it changes nothing here.
    pub fn defers_branch(&self) -> bool {
        matches!(self.branch.as_deref(), Some(Branch::Deferred(_)))
    }

    /// Only row changes, whose write set says all that they touch.
    pub fn is_rows(&self) -> bool {
        self.barrier.is_none()
    }

    pub fn culprit(&self) -> Culprit {
        Culprit {
            seq: self.seq,
            gtid: self.gtid.as_ref().map(ToString::to_string).unwrap_or_default(),
            position: self.start.to_string(),
        }
    }

    /// GTID, file and position: how an operator finds it.
    pub fn place(&self) -> String {
        match &self.gtid {
            Some(gtid) => format!("GTID {gtid}, {} (ends {})", self.start, self.end),
            None => format!("{} (ends {})", self.start, self.end),
        }
    }
}

/// What a transaction is to an XA branch that is not prepared on the target; see [`crate::branches`].
#[derive(Clone, Debug)]
pub enum Branch {
    /// On the source it prepared the branch.
    Deferred(Arc<DeferredBranch>),
    /// It ends the branch; its rows are the branch's, if it commits.
    Ended(EndedBranch),
}

/// What there is to prepare if the end does not come.
#[derive(Debug)]
pub struct DeferredBranch {
    pub xid: Xid,
    pub server_id: u32,
    pub rows: Vec<RowsItem>,
    /// By how much the number of the transaction that ends it is greater.
    pub ends_after: Seq,
}

#[derive(Clone, Debug)]
pub struct EndedBranch {
    pub xid: Xid,
    /// The GTID of the transaction that prepared it on the source.
    pub prepared_by: Option<Gtid>,
}

/// One change of a transaction, in the order of the source.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are rows: a box for each would cost more than the room")]
pub enum Item {
    Rows(RowsItem),
    Statement(Box<StatementItem>),
}

impl Item {
    /// Rows; a statement that changes rows of one known table, of which nothing has gone wrong on the source, and whose answer is short; one about
    /// savepoints between such.
    pub fn is_plain_change(&self) -> bool {
        let Self::Statement(statement) = self else { return true };
        let is_plain = match statement.class.class {
            // Others may call anything, and answer with rows.
            Class::Dml { kind: DmlKind::Insert | DmlKind::Update | DmlKind::Delete | DmlKind::Replace } => {
                statement.class.tables.len() == 1 && !sql::mentions(&statement.query.sql, b"returning")
            }
            Class::Savepoint | Class::RollbackTo | Class::Release => true,
            _ => false,
        };
        is_plain && statement.file.is_none() && statement.query.error_code == 0
    }
}

#[derive(Clone, Debug)]
pub struct RowsItem {
    pub map: Arc<TableMap>,
    pub event: RowsEvent,
    /// Seconds since the epoch, of the event's header.
    pub timestamp: u32,
    /// What the server may need of the session that changed them, as MySQL's `BEGIN` says it. Keying leaves it where the table needs it
    /// ([`Table::works_out`]).
    pub session: Option<Arc<RowSession>>,
    /// Filled in by keying.
    pub table: Option<Arc<Table>>,
    /// Its rows in [`WriteSet::rows`].
    pub rows: Range<usize>,
}

/// A statement with the session state that it needs.
#[derive(Debug)]
pub struct StatementItem {
    pub query: Query,
    /// Seconds since the epoch, of the event's header.
    pub timestamp: u32,
    /// The event's header has `LOG_EVENT_SUPPRESS_USE_F`: the default schema need not be there. It counts all the same.
    pub suppress_use: bool,
    pub context: Vec<Context>,
    pub class: sql::Statement,
    /// The content that `LOAD DATA` refers to, for an EXECUTE_LOAD_QUERY event.
    pub file: Option<LoadFile>,
}

impl StatementItem {
    /// Executed again it leaves what it has left, also where others like it came in between and are executed again, too, in the same order. A
    /// `REVOKE` may then say that nothing is there to be revoked.
    pub fn is_repeatable(&self) -> bool {
        match self.class.class {
            Class::Ddl { kind: DdlKind::Truncate } => true,
            Class::Ddl { kind: DdlKind::Account } => {
                let mode = SqlMode::of(&self.query.vars);
                sql::account_statement(&self.query.sql, mode).is_some_and(|found| found.verb == sql::Verb::HandOn)
                    && sql::roles_handed_on(&self.query.sql, mode).is_none()
            }
            _ => false,
        }
    }

    /// Executed again, right after it was, it changes nothing and fails in nothing. (Of a GRANT that was executed the account may be gone.)
    pub fn is_idempotent(&self) -> bool {
        matches!(self.class.class, Class::Ddl { kind: DdlKind::Truncate })
    }

    /// What the log has in front of it.
    pub fn logged_context(&self) -> sql::LoggedContext {
        sql::LoggedContext {
            seeds: self.context.iter().any(|context| matches!(context, Context::Rand(..))),
            insert_id: self.context.iter().any(|context| matches!(context, Context::InsertId(_))),
        }
    }

    /// A definition whose effect is seen in the definitions of the tables that it names, and in no other's. Tables that refer to a table show its name and those of its columns.
    pub fn shows_in_its_tables_only(&self) -> bool {
        let renames = match self.class.class {
            Class::Ddl { kind: DdlKind::RenameTable } => true,
            Class::Ddl { kind: DdlKind::AlterTable } => {
                sql::mentions(&self.query.sql, b"rename") || sql::mentions(&self.query.sql, b"change")
            }
            _ => false,
        };
        self.class.is_of_its_tables() && !renames
    }
}

/// The data of a LOAD DATA statement, and where its file name stands in the statement's text.
#[derive(Debug)]
pub struct LoadFile {
    pub data: Vec<u8>,
    /// Byte range in the query's text to replace by `LOCAL INFILE 'name' [IGNORE|REPLACE] INTO`-style text.
    pub name_range: Range<usize>,
    /// 0 error, 1 IGNORE, 2 REPLACE.
    pub duplicates: u8,
}

/// Session state that a statement's result depends on, from the events before it.
#[derive(Debug)]
pub enum Context {
    LastInsertId(u64),
    InsertId(u64),
    Rand(u64, u64),
    UserVariable(binlog::user_var::UserVar),
}

/// Why nothing may run beside a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BarrierCause {
    Ddl,
    Account,
    Statement,
    LoadData,
    Xa,
    Huge,
    /// A change to a table that can not be rolled back.
    NonTransactional,
    Unknown,
}

impl BarrierCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ddl => "ddl",
            Self::Account => "account",
            Self::Statement => "statement",
            Self::LoadData => "load_data",
            Self::Xa => "xa",
            Self::Huge => "huge",
            Self::NonTransactional => "non_transactional",
            Self::Unknown => "unknown",
        }
    }
}

/// Which keys and tables a transaction touches. Values that a unique index calls equal have equal hashes.
///
/// Most transactions change one row of one table: that takes no memory of its own.
#[derive(Debug, Default)]
pub struct WriteSet {
    pub rows: SmallVec<[Row; 1]>,
    /// For each row: hashes before and after for each unique key of its table (0: no image, or NULL in it), then
    /// the foreign keys' references, see [`Row`].
    pub hashes: SmallVec<[u64; 2]>,
    pub tables: SmallVec<[TableUse; 1]>,
    /// As a MySQL server would make it, when keying was asked for it.
    pub server: Option<Box<ServerSet>>,
}

/// One row of a rows event.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which of the transaction's items.
    pub item: u32,
    /// Byte ranges in the rows event.
    pub before: Range<u32>,
    pub after: Range<u32>,
    /// `hashes[first_hash..][..2 * unique]`: (before, after) for each unique key; then references up to `end_hash`.
    pub first_hash: u32,
    pub end_hash: u32,
    pub unique: u16,
    /// Ordered by table: its hashes do not say all that it touches.
    pub wild: bool,
}

impl WriteSet {
    /// Bytes of what is not in the set itself.
    pub fn heap_bytes(&self) -> u64 {
        let rows = if self.rows.spilled() { self.rows.capacity() * size_of::<Row>() } else { 0 };
        let hashes = if self.hashes.spilled() { self.hashes.capacity() * size_of::<u64>() } else { 0 };
        (rows + hashes) as u64
    }

    /// (before, after) hashes of a row's unique keys; the identifying key is first.
    #[expect(clippy::indexing_slicing, reason = "rows and hashes are filled together; hot")]
    pub fn unique_hashes(&self, row: &Row) -> &[u64] {
        let first = row.first_hash as usize;
        &self.hashes[first..first + 2 * row.unique as usize]
    }

    /// Hashes of the parent keys that a row refers to.
    #[expect(clippy::indexing_slicing, reason = "rows and hashes are filled together; hot")]
    pub fn reference_hashes(&self, row: &Row) -> &[u64] {
        &self.hashes[row.first_hash as usize + 2 * row.unique as usize..row.end_hash as usize]
    }
}

/// How a transaction uses a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableUse {
    pub table: TableId,
    pub access: TableAccess,
}

/// As multi-granularity locks: by key, or the whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableAccess {
    /// Some keys, named in `hashes`.
    Keys,
    /// Reads that no key names (a parent whose key is not known).
    ReadAll,
    /// Writes that no key names.
    WriteAll,
}

impl WriteSet {
    /// Notes the use of a table; of several uses of one table the entries stay apart by access.
    pub fn note_table(&mut self, table: TableId, access: TableAccess) {
        let table_use = TableUse { table, access };
        if !self.tables.contains(&table_use) {
            self.tables.push(table_use);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Log;

    #[test]
    fn what_may_be_executed_again() {
        for (sql, is_repeatable) in [
            ("TRUNCATE TABLE t", true),
            ("TRUNCATE t", true),
            ("GRANT SELECT ON shop.t TO app", true),
            ("GRANT PROXY ON u TO app", true),
            ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM app", true),
            ("GRANT reader TO app", false),
            ("REVOKE reader FROM app", false),
            ("CREATE USER app", false),
            ("DROP USER app", false),
            ("CREATE TABLE t (id INT)", false),
            ("ALTER TABLE t ADD COLUMN n INT", false),
        ] {
            let mut log = Log::mysql();
            log.gtid().query(sql);
            let transactions = log.assemble().unwrap();
            let [Item::Statement(statement)] = transactions[0].items() else { panic!("{sql}: no statement") };
            assert_eq!(statement.is_repeatable(), is_repeatable, "{sql}");
        }
    }
}
