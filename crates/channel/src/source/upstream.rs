//! Asks a live source for its log, from where the relay log ends. Receives nothing itself.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use binlog::gtids::GtidState;
use binlog::{Checksum, Flavour};
use engine::failure::{Failure, FailureKind};
use relay::RelayWriter;
use wire::{BinlogStream, ConnectOptions, Connection, DUMP_SEND_ANNOTATE_ROWS, DumpOptions, DumpRequest, ServerInfo};

use super::stream_end::{StreamEnd, of_error};
use crate::errors::chain;
use crate::flow::memory::event_memory::EventMemory;
use crate::flow::source_log::SourceLog;
use crate::start::source_state::SourceState;
use crate::start::{Start, StreamStart};

const HEARTBEAT: Duration = Duration::from_secs(1);
/// A source that does not answer for so long, before it streams, is lost: as for the servers' own receivers (`slave_net_timeout`).
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Which server to ask, and as whom.
pub struct Upstream {
    options: ConnectOptions,
    flavour: Flavour,
    /// What [`SourceState::identity`] was when the channel started: another server is refused.
    identity: String,
    server_id: u32,
    /// For a relay log that holds nothing.
    start: StreamStart,
    /// Go on by GTID rather than by position.
    by_gtid: bool,
    /// For one event.
    memory: EventMemory,
}

/// A connection that sends the log.
pub struct OpenStream {
    pub stream: BinlogStream,
    pub checksum: Checksum,
    /// The source's log, as it was before.
    pub log: SourceLog,
}

impl Upstream {
    /// `source`: as it was when the channel started. `server_id`: the replica's number towards it.
    pub fn new(
        options: ConnectOptions,
        source: &SourceState,
        server_id: u32,
        start: &Start,
        memory: EventMemory,
    ) -> Self {
        Self {
            options,
            flavour: source.flavour,
            identity: source.identity.clone(),
            server_id,
            start: start.stream.clone(),
            by_gtid: start.by_gtid,
            memory,
        }
    }

    pub fn options(&self) -> &ConnectOptions {
        &self.options
    }

    pub fn memory(&self) -> EventMemory {
        self.memory
    }

    /// Asks for what comes next.
    pub fn open(&self, writer: &mut RelayWriter, stop: &AtomicBool) -> Result<OpenStream, StreamEnd> {
        let mut options = self.options.clone();
        options.limits.read_timeout.get_or_insert(SILENCE_MAX);
        // The same login worked when the channel began. A locked account, a changed password or a limit may be for a time only.
        let connection = Connection::connect(&options).map_err(|error| StreamEnd::Lost(error.to_string()))?;
        connection.shutdown_handle().unless_stopped(stop, || self.ask(connection, writer))
    }

    fn ask(&self, mut connection: Connection, writer: &mut RelayWriter) -> Result<OpenStream, StreamEnd> {
        let state = SourceState::read(&mut connection).map_err(|error| StreamEnd::Lost(chain(&error)))?;
        if state.identity != self.identity {
            return Err(StreamEnd::Failed(
                Failure::new(
                    FailureKind::Refused,
                    format!("the source is another server now: it was {}, it is {}", self.identity, state.identity),
                )
                .remedy("point --from at the server that the channel started with, or use another --channel"),
            ));
        }
        let request = self.request(connection.server(), writer).map_err(StreamEnd::Failed)?;
        let checksum = wire::source::checksum(&mut connection);
        let options = DumpOptions {
            heartbeat_period: HEARTBEAT,
            event_bytes_max: Some(self.memory.event_bytes_max()),
            ..DumpOptions::default()
        };
        let stream = connection.binlog_dump_with(&request, &options).map_err(|error| of_error(&error, self.memory))?;
        Ok(OpenStream { stream, checksum, log: state.log })
    }

    fn request(&self, source: &ServerInfo, writer: &mut RelayWriter) -> Result<DumpRequest, Failure> {
        let resume = writer.resume_position();
        let server_id = self.server_id;
        let (position, gtids) = match resume {
            Some(point) => {
                writer.restart(&point.position);
                let gtids = point
                    .gtids
                    .parse::<GtidState>()
                    .map_err(|error| Failure::new(FailureKind::Refused, format!("the relay log's GTIDs: {error}")))?;
                (Some(point.position), gtids)
            }
            None => match &self.start {
                StreamStart::Oldest => (None, GtidState::None),
                StreamStart::Position(position) => {
                    writer.restart(position);
                    (Some(position.clone()), GtidState::None)
                }
                StreamStart::Gtids(gtids) => (None, gtids.clone()),
            },
        };
        if self.by_gtid {
            match gtids {
                GtidState::MySql(set) => {
                    return Ok(DumpRequest::MySqlGtid { gtid_set_binary: set.to_binary(), server_id });
                }
                GtidState::MariaDb(position) => {
                    let slave_gtid_state = position.to_string();
                    let annotate = needs_texts(source);
                    return Ok(DumpRequest::MariaDb { slave_gtid_state, strict: false, annotate, server_id });
                }
                GtidState::None if self.flavour == Flavour::MySql && position.is_none() => {
                    return Ok(DumpRequest::MySqlGtid {
                        gtid_set_binary: binlog::gtids::GtidSet::default().to_binary(),
                        server_id,
                    });
                }
                GtidState::None => {}
            }
        }
        let (file, position) = position.map_or((String::new(), 4), |at| (at.file.to_string(), at.offset));
        let flags = if needs_texts(source) { DUMP_SEND_ANNOTATE_ROWS } else { 0 };
        Ok(DumpRequest::FilePosition { file, position, server_id, flags })
    }
}

/// Whether the source has to send the texts of statements, too. Nothing of them is applied, and they are a quarter of a MariaDB's log of small
/// transactions. But where events do not say their positions (MariaDB 11.4 and later, inside transactions), the positions of events behind a
/// text that was left out would be wrong.
fn needs_texts(source: &ServerInfo) -> bool {
    source.is_mariadb() && source.at_least(11, 4, 0)
}
