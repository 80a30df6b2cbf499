//! Searches a log for changes of tables: which transaction has deleted these rows?
//!
//! Takes the pieces of a log one after the other, in its order. What cannot be read is a [`Problem`], and the search goes on behind it.

mod pattern;
mod rows;

pub use pattern::{ChangeKind, Condition, Pattern};

use std::collections::BTreeSet;
use std::sync::Arc;

use binlog::boundary::{Boundary, Step, Verb, is_gtid};
use binlog::gtids::Gtid;
use binlog::load_data::ExecuteLoadQuery;
use binlog::{Event, Kind, MariaDbGtid, MySqlGtid, Query, TransactionPayload, XaPrepare};

use super::cut::{PAYLOAD_BYTES_MAX, events};
use super::{Piece, Problem, ProblemKind};
use crate::intake::{Selection, Tables};
use crate::schema::Table;
use crate::sql::{self, SqlMode};

/// Characters of a statement that are kept.
const TEXT_CHARS_MAX: usize = 160;
/// Statements and tables of one transaction that are kept.
const CHANGES_MAX: usize = 100;
/// Problems of one piece that are kept.
const PROBLEMS_MAX: usize = 100;

/// A transaction that has what was searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub gtid: Option<Gtid>,
    /// Offsets in the file: of its first event, and behind its last.
    pub start: u64,
    pub end: u64,
    /// Microseconds since 1970.
    pub commit_time_us: u64,
    pub changes: Vec<Change>,
    /// Those that were not kept.
    pub more_changes: u64,
}

/// What it does to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: ChangeKind,
    /// `schema.table`.
    pub table: String,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// So many rows, and the first of them: their key, and the columns of the conditions.
    Rows { count: u64, first: Vec<Vec<Field>> },
    /// Its beginning, as it may be shown. Not sure: it may be about other tables.
    Statement { text: String, is_sure: bool },
}

/// A column of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// `@N` where its name is not known.
    pub column: String,
    /// As the server's client shows it. `None`: the log does not have it.
    pub before: Option<String>,
    pub after: Option<String>,
}

/// What one piece gave.
#[derive(Debug, Default)]
pub struct PieceFindings {
    pub hits: Vec<Hit>,
    pub problems: Vec<Problem>,
    /// Those that were not kept.
    pub more_problems: u64,
}

/// The transaction that is open.
struct OpenTransaction {
    hit: Hit,
}

pub struct Search {
    pattern: Pattern,
    boundary: Boundary,
    open: Option<OpenTransaction>,
    /// An event could not be read: what follows belongs to nothing until a transaction begins.
    lost: bool,
    /// With the table as far as it is known, once rows came.
    tables: Tables<Option<Arc<Table>>>,
    /// Columns of conditions that a table has had.
    known_columns: BTreeSet<String>,
    /// Tables whose columns have no names here.
    nameless: BTreeSet<String>,
    found: PieceFindings,
}

/// A problem of one event.
type Failed = String;

impl Search {
    pub fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            boundary: Boundary::default(),
            open: None,
            lost: false,
            tables: Tables::new(Selection::everything()),
            known_columns: BTreeSet::new(),
            nameless: BTreeSet::new(),
            found: PieceFindings::default(),
        }
    }

    /// Columns of conditions that no table has had.
    pub fn unknown_columns(&self) -> Vec<&str> {
        let columns = self.pattern.conditions().iter().map(|condition| condition.column.as_str());
        columns.filter(|column| !self.known_columns.contains(*column)).collect()
    }

    /// Tables with rows that could not be judged, since their columns have no names here.
    pub fn nameless_tables(&self) -> impl Iterator<Item = &str> {
        self.nameless.iter().map(String::as_str)
    }

    /// The file has ended, or the one before was not read to its end.
    pub fn new_file(&mut self) {
        self.open = None;
        self.lost = false;
        self.boundary = Boundary::default();
        self.tables.clear();
    }

    /// The next piece of the file.
    pub fn piece(&mut self, piece: &Piece) -> PieceFindings {
        self.boundary = piece.boundary;
        if piece.continued.is_none() && self.open.take().is_some() {
            self.problem(piece.offset, "a transaction before this place does not end, and is not looked into");
        }
        let mut offset = piece.offset;
        for bytes in events(&piece.bytes) {
            let length = bytes.len() as u64;
            let event = Event::parse(bytes, piece.format.checksum).map_err(|corrupt| corrupt.to_string());
            let done = event.and_then(|event| self.event(&event, piece, offset, true));
            if let Err(what) = done {
                self.problem(offset, format!("{what}; its transaction is not looked into"));
                self.open = None;
                self.boundary.restart();
                self.lost = true;
            }
            offset += length;
        }
        if let Some(header) = &piece.too_large {
            self.problem(offset, format!("a {} event of {} bytes is not looked into", header.kind, header.event_len));
            if let Step::Ends { .. } = self.boundary.unread(header.kind) {
                self.end(offset + u64::from(header.event_len));
            }
        }
        if !piece.goes_on && self.open.take().is_some_and(|open| !open.hit.changes.is_empty()) {
            let what = "a transaction that does not end in its file has what is searched for";
            self.note(Problem { kind: ProblemKind::Unfinished, ..Problem::new(offset, what) });
        }
        std::mem::take(&mut self.found)
    }

    fn problem(&mut self, offset: u64, what: impl Into<String>) {
        self.note(Problem::new(offset, what));
    }

    fn note(&mut self, problem: Problem) {
        if self.found.problems.len() < PROBLEMS_MAX {
            self.found.problems.push(problem);
        } else {
            self.found.more_problems += 1;
        }
    }

    /// With the first event of a transaction.
    fn begin(&mut self, event: &Event, offset: u64) -> &mut Hit {
        self.lost = false;
        self.tables.between_transactions();
        let hit = Hit {
            gtid: None,
            start: offset,
            end: offset,
            commit_time_us: u64::from(event.header().timestamp) * 1_000_000,
            changes: Vec::new(),
            more_changes: 0,
        };
        &mut self.open.insert(OpenTransaction { hit }).hit
    }

    fn end(&mut self, end: u64) {
        let Some(OpenTransaction { mut hit }) = self.open.take() else { return };
        if !hit.changes.is_empty() {
            hit.end = end;
            self.found.hits.push(hit);
        }
    }

    fn change(&mut self, change: Change) {
        let Some(OpenTransaction { hit }) = &mut self.open else { return };
        if hit.changes.len() < CHANGES_MAX {
            hit.changes.push(change);
        } else {
            hit.more_changes += 1;
        }
    }

    /// `outer`: of the file, not of a compressed transaction.
    fn event(&mut self, event: &Event, piece: &Piece, offset: u64, outer: bool) -> Result<(), Failed> {
        let (kind, format) = (event.kind(), &piece.format);
        let end = offset + if outer { event.bytes().len() as u64 } else { 0 };
        match kind {
            Kind::TABLE_MAP => {
                self.tables.add(event, format).map_err(|corrupt| corrupt.to_string())?;
            }
            kind if kind.is_rows() => self.rows(event, piece)?,
            kind if is_gtid(kind) => self.gtid(event, piece, offset)?,
            Kind::QUERY | Kind::QUERY_COMPRESSED | Kind::EXECUTE_LOAD_QUERY => {
                self.query(event, piece, offset, end)?;
            }
            Kind::INTVAR | Kind::RAND | Kind::USER_VAR | Kind::BEGIN_LOAD_QUERY | Kind::APPEND_BLOCK
                if self.open.is_none() && !self.lost =>
            {
                self.boundary.prepares_statement();
                self.begin(event, offset);
            }
            Kind::XID => {
                self.boundary.end();
                self.end(end);
            }
            Kind::XA_PREPARE => {
                XaPrepare::decode(event, format).map_err(|corrupt| corrupt.to_string())?;
                self.boundary.end();
                self.end(end);
            }
            Kind::TRANSACTION_PAYLOAD => {
                let payload = TransactionPayload::decode(event, format).map_err(|corrupt| corrupt.to_string())?;
                for inner in payload.events(PAYLOAD_BYTES_MAX).map_err(|corrupt| corrupt.to_string())? {
                    let inner = inner.map_err(|corrupt| corrupt.to_string())?;
                    // Its end means nothing inside.
                    self.event(&inner, piece, end, false)?;
                }
            }
            Kind::FORMAT_DESCRIPTION => {
                self.tables.clear();
                if let Step::NewLog { cut: true, .. } = self.boundary.new_log(event.header(), format) {
                    self.open = None;
                }
            }
            Kind::INCIDENT => {
                self.problem(offset, "the source wrote an incident: it may have lost events here");
                if let Step::Ends { .. } = self.boundary.unread(kind) {
                    self.end(end);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn gtid(&mut self, event: &Event, piece: &Piece, offset: u64) -> Result<(), Failed> {
        if event.kind() == Kind::MARIADB_GTID {
            let gtid = MariaDbGtid::decode(event, &piece.format).map_err(|corrupt| corrupt.to_string())?;
            self.boundary.mariadb_gtid(gtid.flags);
            self.begin(event, offset).gtid = Some(Gtid::of_mariadb(&gtid));
            return Ok(());
        }
        let gtid = MySqlGtid::decode(event, &piece.format).map_err(|corrupt| corrupt.to_string())?;
        self.boundary.gtid();
        let hit = self.begin(event, offset);
        hit.gtid = Gtid::of_mysql(&gtid);
        // As --until-time has it.
        let time = gtid.original_commit_timestamp_us.or(gtid.immediate_commit_timestamp_us);
        hit.commit_time_us = time.filter(|us| *us > 0).unwrap_or(hit.commit_time_us);
        Ok(())
    }

    fn query(&mut self, event: &Event, piece: &Piece, offset: u64, end: u64) -> Result<(), Failed> {
        let (query, verb) = if event.kind() == Kind::EXECUTE_LOAD_QUERY {
            let load = ExecuteLoadQuery::decode(event, &piece.format).map_err(|corrupt| corrupt.to_string())?;
            (load.query, Verb::Other)
        } else {
            let query = Query::decode_within(event, &piece.format, PAYLOAD_BYTES_MAX);
            let query = query.map_err(|corrupt| corrupt.to_string())?;
            let verb = Verb::of(&query.sql);
            (query, verb)
        };
        let is_end = matches!(verb, Verb::Commit | Verb::Rollback);
        if self.open.is_none() && (is_end || self.lost && verb != Verb::Begin) {
            return Ok(());
        }
        let step = self.boundary.query(verb);
        if matches!(step, Step::Begins { .. } | Step::Ends { first: true, .. }) && self.open.is_none() {
            self.begin(event, offset);
        }
        if verb == Verb::Other {
            self.statement(&query);
        }
        if matches!(step, Step::Ends { .. }) {
            self.end(end);
        }
        Ok(())
    }

    fn statement(&mut self, query: &Query) {
        let mode = SqlMode::of(&query.vars);
        let schema = String::from_utf8_lossy(&query.schema);
        let statement = sql::classify(&query.sql, &schema, mode);
        let Some(found) = self.pattern.of_statement(&statement, (&query.sql, mode), &schema) else { return };
        let text = sql::shown(&query.sql, mode, TEXT_CHARS_MAX);
        let content = Content::Statement { text, is_sure: found.is_sure };
        self.change(Change { kind: found.kind, table: found.table, content });
    }
}
