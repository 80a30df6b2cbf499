//! Looks at the beginning of what a run would read, for rows of a table that the target does not have. It keeps nothing and applies nothing.
//!
//! A table that the log itself makes first is there by then. Where a statement is not understood it stops looking: anything may be there afterwards.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use binlog::gtids::GtidState;
use binlog::{Event, Flavour, FormatDescription, Kind, LogPosition};
use engine::failure::{Failure, FailureKind};
use engine::intake::{Assembler, Selection};
use engine::sql::{Class, DdlKind};
use engine::transaction::{Item, Transaction};
use relay::fs::Fs;
use relay::{FileOptions, FilesReader, LogReader, Read};
use wire::{ConnectOptions, Connection, DUMP_NON_BLOCK, DUMP_SEND_ANNOTATE_ROWS, DumpOptions, DumpRequest};

use super::remedies;
use super::socket::parse;
use super::stream_writer::is_made_up;
use crate::flow::memory::event_memory::EventMemory;
use crate::log_failures::{assemble_failure, log_failure};
use crate::start::Start;
use crate::start::source_state::SourceState;
use crate::stop_condition::StopCondition;
use apply::Target;

/// Of the log's events.
const BYTES_MAX: u64 = 32 << 20;
/// A transaction with more bytes is not held: its tables are not looked at.
const TRANSACTION_BYTES_MAX: u64 = 4 << 20;
/// Not the number that the channel reads with: a source ends an earlier stream of the same number.
const OTHER_NUMBER: u32 = 0x4000_0000;

/// Asks as a run does, from the same place.
pub struct LogLookahead<'a> {
    target: &'a dyn Target,
    /// What the target has already.
    applied: GtidState,
    until: &'a StopCondition,
    memory: EventMemory,
    assembler: Assembler,
    bytes: u64,
    made: HashSet<(String, String)>,
    asked: HashMap<(String, String), bool>,
}

enum ScanStep {
    GoOn,
    Enough,
}

type ScanResult = Result<ScanStep, Failure>;

impl<'a> LogLookahead<'a> {
    pub fn new(
        target: &'a dyn Target,
        selection: Selection,
        start: &Start,
        until: &'a StopCondition,
        memory: EventMemory,
    ) -> Self {
        Self {
            target,
            applied: start.mark.gtids.clone(),
            until,
            memory,
            assembler: Assembler::new(TRANSACTION_BYTES_MAX)
                .inflating_at_most(memory.event_bytes_max())
                .selecting(selection),
            bytes: 0,
            made: HashSet::new(),
            asked: HashMap::new(),
        }
    }

    /// The failure that a run would end with, if it is one of these.
    pub fn in_files(mut self, fs: Arc<dyn Fs>, files: Vec<PathBuf>, at: relay::Start) -> Result<(), Failure> {
        let options = FileOptions { event_bytes_max: Some(self.memory.event_bytes_max()), ..FileOptions::default() };
        let reader = FilesReader::open_with(fs, files, at, options);
        let mut reader = reader.map_err(|error| of_log(&error))?;
        loop {
            match reader.next() {
                Err(error @ relay::Error::EventTooLarge { .. }) => return Err(log_failure(&error, self.memory)),
                Err(error) => return Err(of_log(&error)),
                Ok(Read::Large(_)) => {}
                Ok(Read::Event(located)) => {
                    let end = located.end_position();
                    if let ScanStep::Enough = self.event(&located.event, &located.format, &located.position, &end)? {
                        return Ok(());
                    }
                }
                Ok(Read::CaughtUp | Read::End) => return Ok(()),
            }
        }
    }

    /// From the channel's position, or the oldest log.
    pub fn on_server(
        mut self,
        connect: &ConnectOptions,
        source: &SourceState,
        start: &Start,
        server_id: u32,
    ) -> Result<(), Failure> {
        let memory = self.memory;
        let failed = |error: wire::Error| remedies::of_stream(&error, memory);
        let mut connection = Connection::connect(connect).map_err(failed)?;
        let mut checksum = wire::source::checksum(&mut connection);
        let from = start.mark.position.clone().filter(|_| start.instead_of.is_none());
        let (file, position) = from.map_or((String::new(), 4), |at| (at.file.to_string(), at.offset));
        let annotate = if source.flavour == Flavour::MariaDb { DUMP_SEND_ANNOTATE_ROWS } else { 0 };
        let request = DumpRequest::FilePosition {
            file,
            position,
            server_id: server_id ^ OTHER_NUMBER,
            flags: DUMP_NON_BLOCK | annotate,
        };
        let options = DumpOptions { event_bytes_max: Some(self.memory.event_bytes_max()), ..DumpOptions::default() };
        let mut stream = connection.binlog_dump_with(&request, &options).map_err(failed)?;
        let mut format = None;
        let mut at = LogPosition::new("", 4);
        loop {
            let packet = match stream.next() {
                Err(wire::Error::DumpEnded) => return Ok(()),
                packet => packet.map_err(failed)?,
            };
            let event = parse(packet.bytes, &mut checksum).map_err(|ended| broken(&format!("{ended:?}")))?;
            match event.kind() {
                // Nothing more comes.
                Kind::HEARTBEAT | Kind::HEARTBEAT_V2 => return Ok(()),
                Kind::ROTATE if is_made_up(&event) => {
                    let rotate =
                        binlog::rotate::Rotate::decode_any(&event).map_err(|error| broken(&error.to_string()))?;
                    at = LogPosition::new(rotate.file.as_str(), rotate.position);
                    continue;
                }
                Kind::FORMAT_DESCRIPTION => {
                    let (_, described) = FormatDescription::decode(&event.bytes().clone())
                        .map_err(|error| broken(&error.to_string()))?;
                    format = Some(described);
                }
                _ => {}
            }
            let Some(format) = &format else { continue };
            // Made up in the middle of a file, and events inside a transaction (MariaDB 11.4) have no position of their own.
            let is_in_log = event.header().log_pos != 0 || event.kind() != Kind::FORMAT_DESCRIPTION;
            let end = LogPosition {
                file: Arc::clone(&at.file),
                offset: at.offset + if is_in_log { event.bytes().len() as u64 } else { 0 },
            };
            let looked = self.event(&event, format, &at, &end)?;
            at = end;
            if matches!(looked, ScanStep::Enough) || at >= source.end {
                return Ok(());
            }
        }
    }

    fn event(
        &mut self,
        event: &Event,
        format: &FormatDescription,
        start: &LogPosition,
        end: &LogPosition,
    ) -> ScanResult {
        self.bytes += event.bytes().len() as u64;
        let assembled = self.assembler.event(event, format, start, end);
        match assembled.map_err(|error| assemble_failure(&error, self.memory))? {
            Some(transaction) => self.transaction(&transaction),
            None if self.bytes > BYTES_MAX => Ok(ScanStep::Enough),
            None => Ok(ScanStep::GoOn),
        }
    }

    fn transaction(&mut self, transaction: &Transaction) -> ScanResult {
        if transaction.gtid.as_ref().is_some_and(|gtid| self.applied.contains(gtid)) {
            return Ok(ScanStep::GoOn);
        }
        if self.until.is_before(transaction) {
            return Ok(ScanStep::Enough);
        }
        for item in transaction.items() {
            let looked = match item {
                Item::Rows(rows) => self.needs(&rows.map.schema, &rows.map.table, transaction)?,
                Item::Statement(statement) => self.statement(&statement.class, transaction)?,
            };
            if let ScanStep::Enough = looked {
                return Ok(ScanStep::Enough);
            }
        }
        Ok(if self.bytes > BYTES_MAX { ScanStep::Enough } else { ScanStep::GoOn })
    }

    fn statement(&mut self, statement: &engine::sql::Statement, transaction: &Transaction) -> ScanResult {
        match statement.class {
            Class::Unknown => return Ok(ScanStep::Enough),
            Class::Ddl { kind: DdlKind::DropTable { .. } } => {}
            // Whatever it names may be made by it.
            Class::Ddl { .. } => {
                self.made.extend(statement.tables.iter().map(|table| (table.schema.clone(), table.name.clone())));
            }
            Class::Dml { .. } => {
                for table in &statement.tables {
                    self.needs(&table.schema, &table.name, transaction)?;
                }
            }
            _ => {}
        }
        Ok(ScanStep::GoOn)
    }

    fn needs(&mut self, schema: &str, table: &str, transaction: &Transaction) -> ScanResult {
        let name = (schema.to_owned(), table.to_owned());
        if self.made.contains(&name) || schema == "mysql" {
            return Ok(ScanStep::GoOn);
        }
        let is_there = match self.asked.get(&name) {
            Some(&is_there) => is_there,
            None => {
                let is_there = self.target.has_table(schema, table)?;
                self.asked.insert(name, is_there);
                is_there
            }
        };
        if is_there {
            return Ok(ScanStep::GoOn);
        }
        Err(Failure::new(
            FailureKind::Refused,
            format!(
                "the target has no table {schema}.{table}, and the log that comes next has rows of it ({})",
                transaction.place()
            ),
        )
        .remedy("load the source's schema and data as of the start position first"))
    }
}

fn broken(what: &str) -> Failure {
    Failure::new(FailureKind::Refused, format!("the source's log: {what}"))
        .remedy("look at the source's log there with mysqlbinlog (mariadb-binlog)")
}

fn of_log(error: &relay::Error) -> Failure {
    broken(&error.to_string())
}
