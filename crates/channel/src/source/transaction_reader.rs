//! A live source's log from a place on, transaction by transaction: for who looks at it beside a channel. It keeps nothing and applies nothing.

use std::sync::Arc;

use apply::Footprint;
use binlog::gtids::GtidState;
use binlog::{Checksum, Event, FormatDescription, Kind, LogPosition};
use engine::failure::{Failure, FailureKind};
use engine::intake::{Assembler, Selection};
use engine::transaction::Transaction;
use wire::{
    BinlogStream, ConnectOptions, Connection, DUMP_NON_BLOCK, DUMP_SEND_ANNOTATE_ROWS, DumpOptions, DumpRequest,
};

use super::remedies;
use super::socket::parse;
use super::stream_end::StreamEnd;
use super::stream_writer::is_made_up;
use crate::flow::memory::event_memory::EventMemory;
use crate::log_failures::assemble_failure;
use crate::start::StreamStart;

/// What reading takes beside the events.
const READING: Footprint = Footprint { base_bytes: 0, event_copies: 1 };
/// Offsets in events have 32 bits.
const OFFSET_RANGE: u64 = 1 << 32;

/// What happens at the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLogEnd {
    /// The reader ends.
    Stop,
    /// It waits for more.
    Wait,
}

/// What a reader asks a source for.
pub struct ReadRequest {
    pub from: StreamStart,
    pub at_end: AtLogEnd,
    /// Another than that of every replica: the source ends an earlier stream of the same number.
    pub server_id: u32,
    /// Bytes of events: of a larger transaction only the size is known ([`engine::transaction::Body::Spilled`]).
    pub transaction_bytes_max: u64,
    /// A larger event is refused.
    pub memory_bytes: u64,
    /// What of the log is read.
    pub selection: Selection,
}

pub struct TransactionReader {
    stream: BinlogStream,
    checksum: Checksum,
    format: Option<FormatDescription>,
    at: LogPosition,
    assembler: Assembler,
    memory: EventMemory,
}

impl TransactionReader {
    /// # Errors
    /// The source can not be reached, or does not send its log from there.
    pub fn open(options: &ConnectOptions, request: ReadRequest) -> Result<Self, Failure> {
        let memory = EventMemory::new(request.memory_bytes, READING);
        let failed = |error: wire::Error| remedies::of_stream(&error, memory);
        let mut connection = Connection::connect(options).map_err(failed)?;
        let checksum = wire::source::checksum(&mut connection);
        let is_mariadb = connection.server().is_mariadb();
        let dump = dump_request(&request, is_mariadb);
        let dump_options = DumpOptions {
            event_bytes_max: Some(memory.event_bytes_max()),
            non_block: request.at_end == AtLogEnd::Stop,
            ..DumpOptions::default()
        };
        let stream = connection.binlog_dump_with(&dump, &dump_options).map_err(failed)?;
        let assembler = Assembler::new(request.transaction_bytes_max)
            .inflating_at_most(memory.event_bytes_max())
            .selecting(request.selection);
        Ok(Self { stream, checksum, format: None, at: LogPosition::new("", 4), assembler, memory })
    }

    /// The next transaction; `None`: the log has ended.
    ///
    /// # Errors
    /// The stream broke, or has what can not be understood.
    pub fn read(&mut self) -> Result<Option<Transaction>, Failure> {
        loop {
            let packet = match self.stream.next() {
                Err(wire::Error::DumpEnded) => return Ok(None),
                packet => packet.map_err(|error| remedies::of_stream(&error, self.memory))?,
            };
            let event = parse(packet.bytes, &mut self.checksum).map_err(broken_stream)?;
            if let Some(transaction) = self.event(&event)? {
                return Ok(Some(transaction));
            }
        }
    }

    /// The end of the last event, as far as it was read.
    pub fn position(&self) -> &LogPosition {
        &self.at
    }

    fn event(&mut self, event: &Event) -> Result<Option<Transaction>, Failure> {
        match event.kind() {
            Kind::HEARTBEAT | Kind::HEARTBEAT_V2 => return Ok(None),
            Kind::ROTATE if is_made_up(event) => {
                let rotate = binlog::rotate::Rotate::decode_any(event).map_err(|error| broken(&error.to_string()))?;
                self.at = LogPosition::new(rotate.file.as_str(), rotate.position);
                return Ok(None);
            }
            Kind::FORMAT_DESCRIPTION => {
                let decoded = FormatDescription::decode(&event.bytes().clone());
                self.format = Some(decoded.map_err(|error| broken(&error.to_string()))?.1);
                // Made up in the middle of a file it has no place there.
                if event.header().log_pos == 0 {
                    return Ok(None);
                }
            }
            _ => {}
        }
        let end = self.end_of(event);
        let start =
            LogPosition { file: Arc::clone(&end.file), offset: end.offset.saturating_sub(event.bytes().len() as u64) };
        self.at = end;
        let Some(format) = &self.format else { return Ok(None) };
        let assembled = self.assembler.event(event, format, &start, &self.at);
        assembled.map_err(|error| assemble_failure(&error, self.memory))
    }

    /// An event says its end, for a source leaves out what the reader has (MySQL); events inside a transaction may not (MariaDB 11.4): nothing is left out there.
    fn end_of(&self, event: &Event) -> LogPosition {
        let offset = match u64::from(event.header().log_pos) {
            0 => self.at.offset + event.bytes().len() as u64,
            low => {
                let end = self.at.offset / OFFSET_RANGE * OFFSET_RANGE + low;
                if end < self.at.offset { end + OFFSET_RANGE } else { end }
            }
        };
        LogPosition { file: Arc::clone(&self.at.file), offset }
    }
}

fn dump_request(request: &ReadRequest, is_mariadb: bool) -> DumpRequest {
    let server_id = request.server_id;
    let at = match &request.from {
        StreamStart::Gtids(GtidState::MySql(set)) => {
            return DumpRequest::MySqlGtid { gtid_set_binary: set.to_binary(), server_id };
        }
        StreamStart::Gtids(GtidState::MariaDb(position)) => {
            return DumpRequest::MariaDb {
                slave_gtid_state: position.to_string(),
                strict: false,
                annotate: true,
                server_id,
            };
        }
        StreamStart::Position(at) => Some(at),
        StreamStart::Gtids(GtidState::None) | StreamStart::Oldest => None,
    };
    let (file, position) = at.map_or((String::new(), 4), |at| (at.file.to_string(), at.offset));
    let annotate = if is_mariadb { DUMP_SEND_ANNOTATE_ROWS } else { 0 };
    let non_block = if request.at_end == AtLogEnd::Stop { DUMP_NON_BLOCK } else { 0 };
    DumpRequest::FilePosition { file, position, server_id, flags: annotate | non_block }
}

fn broken_stream(end: StreamEnd) -> Failure {
    match end {
        StreamEnd::Failed(failure) => failure,
        StreamEnd::Lost(why) => Failure::new(FailureKind::ConnectionLost, why),
        StreamEnd::Damaged(what) => broken(&what),
        StreamEnd::Stopped => Failure::new(FailureKind::Stopped, "stopped"),
    }
}

fn broken(what: &str) -> Failure {
    Failure::new(FailureKind::Refused, format!("the source's log: {what}"))
        .remedy("look at the source's log there with mysqlbinlog (mariadb-binlog)")
}
