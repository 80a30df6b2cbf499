//! What the log of a round has: which tables it says too little of, so that they are read again. It applies nothing.

use std::collections::{BTreeMap, HashMap};

use apply::mysql::prepared_by;
use apply::mysql::server::account_tables::is_account_table;
use binlog::gtids::GtidState;
use binlog::{LogPosition, RowsKind};
use channel::source::transaction_reader::{AtLogEnd, ReadRequest, TransactionReader};
use channel::start::StreamStart;
use engine::failure::Failure;
use engine::intake::Selection;
use engine::sql::{Class, DdlKind, Statement, Xid};
use engine::transaction::{Body, Item, RowsItem, Transaction};
use engine::windows::{Finding, Reading, Round, Side, Window};
use wire::ConnectOptions;

use crate::bookkeeping::CopyPlace;
use crate::chunk::TableName;
use crate::definitions::{GeneratedColumns, Relations};

/// Bytes of events: of a larger transaction nothing is known, and all tables are read again.
const TRANSACTION_BYTES_MAX: u64 = 1 << 30;

/// Without regard to case: statements may write a name otherwise than the server keeps it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Folded(String, String);

impl Folded {
    fn of(schema: &str, table: &str) -> Self {
        Self(schema.to_lowercase(), table.to_lowercase())
    }

    fn of_name(name: &TableName) -> Self {
        Self::of(&name.schema, &name.table)
    }
}

/// Tables whose read does not see the state of the round's last read, but a later one: of engines without transactions.
#[derive(Clone, Debug, Default)]
pub struct LateTables {
    pub names: Vec<TableName>,
    /// Of the log, when the last of them was read. Up to here nothing may have changed them.
    pub end: Option<LogPosition>,
}

/// What is scanned, and by which rules.
pub struct Scan<'a> {
    pub source: &'a ConnectOptions,
    pub server_id: u32,
    pub memory_bytes: u64,
    /// The log begins behind it.
    pub from: &'a CopyPlace,
    /// Of the last read: the log ends at its high.
    pub window: &'a Window,
    pub late: &'a LateTables,
    pub tables: &'a [(TableName, Reading)],
    pub relations: &'a Relations,
    pub generated: &'a GeneratedColumns,
    /// Accounts count as definitions: they are copied, and were read behind the begin of this log.
    pub accounts: bool,
}

/// What was found.
#[derive(Debug)]
pub struct Findings {
    /// Tables to be read again, with the reason.
    pub again: Vec<(TableName, String)>,
    /// Definitions of any kind may be others: of tables, views, triggers, routines or events; accounts.
    pub definitions_changed: bool,
    /// XA transactions were prepared before the round's log, or its rows of them are not applied: their ends have to come before a read.
    pub has_branches_of_others: bool,
    /// All up to the end of the round's log, if the source has GTIDs.
    pub gtids: GtidState,
}

impl Scan<'_> {
    pub fn run(&self) -> Result<Findings, Failure> {
        let mut seen = Seen {
            scan: self,
            names: self.tables.iter().map(|(name, _)| (Folded::of_name(name), name.clone())).collect(),
            round: Round::new(self.tables.iter().map(|(name, reading)| (Folded::of_name(name), *reading))),
            late: self.late.names.iter().map(Folded::of_name).collect(),
            branches: HashMap::new(),
            has_unknown_end: false,
            definitions_changed: false,
            gtids: self.from.gtids.clone(),
        };
        let start = match (&self.from.gtids, &self.from.position) {
            (GtidState::MySql(_), _) => StreamStart::Gtids(self.from.gtids.clone()),
            (_, Some(position)) => StreamStart::Position(position.clone()),
            (gtids, None) => StreamStart::Gtids(gtids.clone()),
        };
        let request = ReadRequest {
            from: start,
            at_end: AtLogEnd::Stop,
            server_id: self.server_id,
            transaction_bytes_max: TRANSACTION_BYTES_MAX,
            memory_bytes: self.memory_bytes,
            selection: Selection::sent(),
        };
        let mut reader = TransactionReader::open(self.source, request)?;
        while let Some(transaction) = reader.read()? {
            if transaction.start >= self.window.high {
                if self.late.end.as_ref().is_none_or(|end| transaction.start >= *end) {
                    break;
                }
                seen.late_transaction(&transaction);
                continue;
            }
            seen.transaction(&transaction);
        }
        Ok(seen.findings())
    }
}

struct Seen<'a> {
    scan: &'a Scan<'a>,
    names: BTreeMap<Folded, TableName>,
    round: Round<Folded>,
    late: Vec<Folded>,
    /// Prepared and not ended, with the tables whose rows each changes.
    branches: HashMap<Xid, Vec<Folded>>,
    /// Of a branch that was prepared before the round's log.
    has_unknown_end: bool,
    definitions_changed: bool,
    gtids: GtidState,
}

impl Seen<'_> {
    fn transaction(&mut self, transaction: &Transaction) {
        if let Some(gtid) = &transaction.gtid
            && let Err(error) = self.gtids.add(gtid)
        {
            tracing::warn!("copy: {error}");
        }
        let side = self.scan.window.side(transaction.gtid.as_ref(), &transaction.start, &transaction.end);
        match &transaction.body {
            Body::Spilled { .. } => self.note_all(Finding::Statement(side)),
            Body::Items(items) => {
                if let Some(xid) = prepared_by(items) {
                    let tables = self.tables_of_branch(items);
                    self.branches.insert(xid.clone(), tables);
                }
                for item in items {
                    match item {
                        Item::Rows(rows) => self.rows(rows, side),
                        Item::Statement(statement) => self.statement(&statement.class, side),
                    }
                }
            }
        }
    }

    /// Those whose rows become others when the branch ends.
    fn tables_of_branch(&self, items: &[Item]) -> Vec<Folded> {
        let mut tables = Vec::new();
        for item in items {
            match item {
                Item::Rows(rows) => {
                    let table = Folded::of(&rows.map.schema, &rows.map.table);
                    if let Some(name) = self.names.get(&table) {
                        tables.extend(self.scan.relations.changed_by(name, rows).iter().map(Folded::of_name));
                    }
                    tables.push(table);
                }
                Item::Statement(statement) => {
                    let named = statement.class.tables.iter();
                    tables.extend(named.map(|table| Folded::of(&table.schema, &table.name)));
                }
            }
        }
        tables
    }

    /// The branch's rows are visible from here on, or gone.
    fn branch_ends(&mut self, xid: &Xid, side: Side) {
        match self.branches.remove(xid) {
            None => self.has_unknown_end = true,
            Some(tables) => tables.iter().for_each(|table| self.round.note(table, Finding::Rows(side))),
        }
    }

    /// What is prepared as the round ends: no whole read has its rows. Returns whether there are rows that nothing applies.
    fn branches_stay(&mut self) -> bool {
        let open: Vec<Folded> = std::mem::take(&mut self.branches).into_values().flatten().collect();
        open.iter().for_each(|table| self.round.note(table, Finding::Rows(Side::Within)));
        open.iter().any(|table| self.names.contains_key(table) && !self.round.takes_rows(table))
    }

    /// Behind the round's end: of the late tables alone.
    fn late_transaction(&mut self, transaction: &Transaction) {
        let Self { late, round, .. } = self;
        let mut note = |table: &Folded| {
            if late.contains(table) {
                round.note(table, Finding::Rows(Side::Within));
            }
        };
        let Body::Items(items) = &transaction.body else { return late.iter().for_each(note) };
        for item in items {
            match item {
                Item::Rows(rows) => note(&Folded::of(&rows.map.schema, &rows.map.table)),
                // Of one that names no table it is not known what it changes.
                Item::Statement(statement) if statement.class.tables.is_empty() => match statement.class.class {
                    Class::Dml { .. } | Class::Ddl { .. } | Class::Unknown | Class::SetStatement => {
                        late.iter().for_each(&mut note);
                    }
                    _ => {}
                },
                Item::Statement(statement) => {
                    statement.class.tables.iter().for_each(|table| note(&Folded::of(&table.schema, &table.name)));
                }
            }
        }
    }

    fn note_all(&mut self, finding: Finding) {
        let names: Vec<Folded> = self.names.keys().cloned().collect();
        names.iter().for_each(|name| self.round.note(name, finding));
    }

    fn rows(&mut self, rows: &RowsItem, side: Side) {
        self.account_table(&rows.map.schema, &rows.map.table);
        let table = Folded::of(&rows.map.schema, &rows.map.table);
        let Some(name) = self.names.get(&table) else { return self.round.note(&table, Finding::Rows(side)) };
        let is_whole = || self.scan.generated.is_whole(name, &rows.event.after_columns);
        let is_partial = rows.event.partial_json || rows.event.kind != RowsKind::Delete && !is_whole();
        self.round.note(&table, if is_partial { Finding::PartialRows(side) } else { Finding::Rows(side) });
        for child in self.scan.relations.changed_by(name, rows) {
            self.round.note(&Folded::of_name(&child), Finding::Cascade(side));
        }
    }

    /// Whoever changes such a table by hand changes accounts.
    fn account_table(&mut self, schema: &str, table: &str) {
        self.definitions_changed |= self.scan.accounts && is_account_table(schema, table);
    }

    fn statement(&mut self, statement: &Statement, side: Side) {
        statement.tables.iter().for_each(|table| self.account_table(&table.schema, &table.name));
        let kind = match statement.class {
            Class::Dml { .. } if statement.tables.is_empty() => return self.note_all(Finding::Statement(side)),
            Class::Dml { .. } => {
                for table in &statement.tables {
                    self.round.note(&Folded::of(&table.schema, &table.name), Finding::Statement(side));
                }
                return;
            }
            Class::Unknown | Class::SetStatement => {
                self.definitions_changed = true;
                return self.note_all(Finding::Definition);
            }
            Class::Ddl { kind } => kind,
            Class::XaCommit { one_phase: false } | Class::XaRollback => {
                if let Some(xid) = &statement.xid {
                    self.branch_ends(xid, side);
                }
                return;
            }
            // Ends of transactions, savepoints, XA.
            _ => return,
        };
        match kind {
            DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. } => {}
            DdlKind::CreateTable { .. }
            | DdlKind::AlterTable
            | DdlKind::DropTable { .. }
            | DdlKind::RenameTable
            | DdlKind::Truncate
            | DdlKind::CreateIndex
            | DdlKind::DropIndex
            | DdlKind::Sequence => {
                self.definitions_changed = true;
                let tables = statement.tables.iter().filter(|table| !statement.parents.contains(table));
                tables.for_each(|table| self.define(Folded::of(&table.schema, &table.name)));
            }
            DdlKind::View => {
                self.definitions_changed = true;
                // `DROP VIEW` and `RENAME TABLE` may name tables.
                statement.tables.iter().for_each(|table| self.define_known(Folded::of(&table.schema, &table.name)));
            }
            DdlKind::Trigger | DdlKind::Routine | DdlKind::Event => self.definitions_changed = true,
            DdlKind::CreateDatabase | DdlKind::AlterDatabase | DdlKind::DropDatabase => {
                self.definitions_changed = true;
                let schemas: Vec<String> = statement.schemas.iter().map(|schema| schema.to_lowercase()).collect();
                let of_schema: Vec<Folded> =
                    self.names.keys().filter(|Folded(schema, _)| schemas.contains(schema)).cloned().collect();
                of_schema.into_iter().for_each(|table| self.define(table));
                // One that is new has no table yet: those that come are named by their own definitions.
            }
            DdlKind::Account => self.definitions_changed |= self.scan.accounts,
            DdlKind::Analyze | DdlKind::Optimize | DdlKind::Repair | DdlKind::Flush | DdlKind::Other => {}
        }
    }

    fn define_known(&mut self, table: Folded) {
        if self.names.contains_key(&table) {
            self.round.note(&table, Finding::Definition);
        }
    }

    fn define(&mut self, table: Folded) {
        self.round.note(&table, Finding::Definition);
    }

    fn findings(mut self) -> Findings {
        let has_branches_of_others = self.branches_stay() || self.has_unknown_end;
        let again = self.round.to_be_read_again();
        let named = |(table, finding): (&Folded, &Option<Finding>)| {
            let name = self.names.get(table)?;
            Some((name.clone(), described(*finding)))
        };
        Findings {
            again: again.iter().filter_map(named).collect(),
            definitions_changed: self.definitions_changed,
            has_branches_of_others,
            gtids: self.gtids,
        }
    }
}

fn described(finding: Option<Finding>) -> String {
    match finding {
        Some(Finding::Definition) => "its definition changed, or it was emptied",
        Some(Finding::Statement(_)) => "a statement changed it",
        Some(Finding::PartialRows(_)) => "the log has rows of it without all columns (binlog_row_image)",
        Some(Finding::Cascade(_)) => "a foreign key changed its rows, which the log does not have",
        Some(Finding::Rows(_)) => "its rows changed as its read began",
        None => "it is read together with others",
    }
    .to_owned()
}
