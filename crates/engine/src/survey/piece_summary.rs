//! What a scan finds in one piece of a log.

use std::collections::BTreeMap;
use std::sync::Arc;

use binlog::{Ending, FormatDescription, Header, LoggedGtids};

use super::{KeyName, Problem, Record, TableRecord, Traffic};
use crate::schema::TableId;
use crate::transaction::TableUse;

/// How deeply a scan looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Tags, transactions, rows and bytes.
    Traffic,
    /// And keys.
    Keys,
}

/// What a piece holds.
#[derive(Debug, Default)]
pub struct PieceSummary {
    pub records: Vec<Record>,
    pub writes: Vec<u64>,
    pub reads: Vec<u64>,
    pub uses: Vec<TableUse>,
    /// Hashes as a MySQL server would make them.
    pub server: Vec<u64>,
    pub tables: BTreeMap<TableId, TableRecord>,
    /// By second since 1970 and table.
    pub seconds: BTreeMap<(u64, TableId), Traffic>,
    pub names: Vec<KeyName>,
    pub problems: Vec<Problem>,
    /// Problems that were not kept.
    pub more_problems: u64,
    /// Events and bytes, those in compressed transactions not counted apart.
    pub events: u64,
    pub bytes: u64,
    pub format_descriptions: u64,
    /// The last event is a ROTATE, and names this file.
    pub next_file: Option<String>,
    /// At the begin of a file: what it says of those before.
    pub list: Option<LoggedGtids>,
    /// Of the transactions that begin here.
    pub gtids: LoggedGtids,
    /// The format description, if a file begins here.
    pub begins: Option<(Header, Arc<FormatDescription>)>,
    /// How what is here ends.
    pub ending: Ending,
    /// When its file was begun, and its server started; in microseconds since 1970, 0: not known.
    pub begun_us: u64,
    pub started_us: u64,
}
