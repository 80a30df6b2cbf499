//! The receiver: a live source's events into the relay log.
//!
//! Two threads: one reads the socket, one appends what has come and publishes it (`append`); a third one makes it durable beside that (`relay_sync`).
//! What is little the first one appends itself, and sees it on its way to the target (`flow::handoff`). After a lost connection it goes on
//! behind the last whole transaction that was received. Never parses more of an event than it takes to know files and formats.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use binlog::gtids::GtidState;
use binlog::{Checksum, Event, Flavour, FormatDescription, Kind};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use engine::failure::{Failure, FailureKind};
use relay::RelayWriter;
use wire::{
    BinlogStream, ConnectOptions, Connection, DUMP_SEND_ANNOTATE_ROWS, DumpOptions, DumpRequest, ServerInfo,
    ShutdownHandle,
};

use super::append::{Appending, Received};
use super::relay_sync::{Publisher, RelaySync};
use super::stream_end::{StreamEnd, of_error};
use super::stream_writer::{StreamWriter, relay_failure};
use crate::flow::budget::Budget;
use crate::flow::handoff::{Handoff, Wake};
use crate::flow::stats::Stats;
use crate::start::StreamStart;

pub struct Receiver {
    pub options: ConnectOptions,
    pub flavour: Flavour,
    /// What [`super::state::SourceState::identity`] was when the channel started: another server is refused.
    pub identity: String,
    /// Go on by GTID rather than by position.
    pub by_gtid: bool,
    pub start: StreamStart,
    pub server_id: u32,
    pub writer: RelayWriter,
    pub relay_sync: RelaySync,
    pub stats: Arc<Stats>,
    pub stop: Arc<AtomicBool>,
    pub retry_for: Duration,
}

/// Batches between the two threads, and bytes in them; an event that is larger is alone.
const QUEUE_BATCHES: usize = 256;
const QUEUE_BYTES: u64 = 16 << 20;
/// So much is appended by the thread that has read it, when nothing more has come: the other one need not be woken.
const LITTLE_BYTES: usize = 4 << 10;
const POLL: Duration = Duration::from_millis(100);
const HEARTBEAT: Duration = Duration::from_secs(2);
const BACK_OFF_FIRST: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// A source that does not answer for so long, before it streams, is lost: as for the servers' own receivers (`slave_net_timeout`).
const SILENCE_MAX: Duration = Duration::from_secs(60);

impl Receiver {
    /// Until told to stop, or for good.
    pub fn run(self, reading: &dyn Wake) -> Result<(), Failure> {
        let (publisher, syncs) = Publisher::new(self.relay_sync);
        std::thread::scope(|scope| {
            scope.spawn(move || syncs.iter().for_each(relay::Syncing::run));
            self.receive(publisher, reading)
        })
    }

    fn receive(mut self, mut publisher: Publisher, reading: &dyn Wake) -> Result<(), Failure> {
        let mut back_off = BACK_OFF_FIRST;
        let mut lost_since: Option<Instant> = None;
        loop {
            let received = self.stats.received_bytes.load(Ordering::Relaxed);
            let ended = self.stream(&mut publisher, reading);
            if self.stats.received_bytes.load(Ordering::Relaxed) > received {
                back_off = BACK_OFF_FIRST;
                lost_since = None;
            }
            match ended {
                StreamEnd::Stopped => break,
                StreamEnd::Failed(failure) => return Err(failure),
                StreamEnd::Lost(why) => {
                    let since = *lost_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > self.retry_for {
                        return Err(Failure::new(
                            FailureKind::ConnectionLost,
                            format!("the source can not be reached: {why}"),
                        )
                        .remedy("when it is back, run the same command again"));
                    }
                    tracing::warn!("connection to the source lost, trying again: {why}");
                    self.stats.source_lost(true);
                    if self.pause(back_off) {
                        break;
                    }
                    back_off = (back_off * 2).min(BACK_OFF_MAX);
                }
            }
        }
        self.writer.close().map_err(|error| relay_failure(&error))
    }

    /// Sleeps; true when it is time to stop.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if self.stop.load(Ordering::Relaxed) {
                return true;
            }
            std::thread::sleep(POLL.min(time));
        }
        self.stop.load(Ordering::Relaxed)
    }

    fn stream(&mut self, publisher: &mut Publisher, reading: &dyn Wake) -> StreamEnd {
        let (stream, checksum) = match self.open() {
            Ok(opened) => opened,
            Err(ended) => return ended,
        };
        let shutdown = stream.shutdown_handle();
        let (send, received) = bounded(QUEUE_BATCHES);
        let room = Budget::new(QUEUE_BYTES);
        let handoff = Handoff::new(Appending {
            received,
            room: &room,
            writer: &mut self.writer,
            publisher,
            stream: StreamWriter::default(),
            reading,
            stats: &self.stats,
            stop: &self.stop,
            is_full: false,
            ended: None,
        });
        std::thread::scope(|scope| {
            scope.spawn(|| read_socket(stream, checksum, send, &room, &handoff, reading, &self.stop));
            let appending = handoff.run_loop();
            shutdown.shutdown();
            // Lets the reader out of a full queue.
            room.close();
            appending.and_then(|appending| appending.ended).unwrap_or_else(|| {
                StreamEnd::Failed(Failure::new(
                    FailureKind::Refused,
                    "the receiver has panicked: this is a bug in heddle",
                ))
            })
        })
    }

    /// Asks for what comes next.
    fn open(&mut self) -> Result<(BinlogStream, Checksum), StreamEnd> {
        let mut options = self.options.clone();
        options.limits.read_timeout.get_or_insert(SILENCE_MAX);
        // The same login has worked when the channel began: an account that is locked, a password that changes, a limit are for a time, too.
        let connection = Connection::connect(&options).map_err(|error| StreamEnd::Lost(error.to_string()))?;
        let stop = Arc::clone(&self.stop);
        unless_stopped(&stop, &connection.shutdown_handle(), || self.ask(connection))
    }

    fn ask(&mut self, mut connection: Connection) -> Result<(BinlogStream, Checksum), StreamEnd> {
        let state = super::state::SourceState::read(&mut connection)
            .map_err(|error| StreamEnd::Lost(crate::errors::chain(&error)))?;
        if state.identity != self.identity {
            return Err(StreamEnd::Failed(
                Failure::new(
                    FailureKind::Refused,
                    format!("the source is another server now: it was {}, it is {}", self.identity, state.identity),
                )
                .remedy("point --from at the server that the channel started with, or use another --channel"),
            ));
        }
        let request = self.request(connection.server()).map_err(StreamEnd::Failed)?;
        let checksum = connection.scalar("SELECT @@global.binlog_checksum").ok().flatten();
        let checksum = match checksum.as_deref() {
            Some("CRC32") => Checksum::Crc32,
            _ => Checksum::Off,
        };
        let options = DumpOptions { heartbeat_period: HEARTBEAT, ..DumpOptions::default() };
        let stream = connection.binlog_dump_with(request, &options).map_err(|error| of_error(&error))?;
        self.stats.source_lost(false);
        Ok((stream, checksum))
    }

    fn request(&mut self, source: &ServerInfo) -> Result<DumpRequest, Failure> {
        let resume = self.writer.resume_position();
        let server_id = self.server_id;
        let (position, gtids) = match resume {
            Some(point) => {
                self.writer.restart(&point.position);
                let gtids = point
                    .gtids
                    .parse::<GtidState>()
                    .map_err(|error| Failure::new(FailureKind::Refused, format!("the relay log's GTIDs: {error}")))?;
                (Some(point.position), gtids)
            }
            None => match &self.start {
                StreamStart::Oldest => (None, GtidState::None),
                StreamStart::Position(position) => {
                    self.writer.restart(position);
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

/// A quarter of a MariaDB's log of small transactions is their texts, of which nothing is applied: they are not asked for. Where events do not say their
/// places (MariaDB 11.4 and later, inside transactions), those behind what was left out would be wrong.
fn needs_texts(source: &ServerInfo) -> bool {
    source.is_mariadb() && source.at_least(11, 4, 0)
}

/// What asks a server ends when it is time to stop, whether the server answers or not.
fn unless_stopped<T>(stop: &AtomicBool, shutdown: &ShutdownHandle, ask: impl FnOnce() -> T) -> T {
    let (answered, wait) = bounded::<()>(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while wait.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                if stop.load(Ordering::Relaxed) {
                    shutdown.shutdown();
                }
            }
        });
        let answer = ask();
        drop(answered);
        answer
    })
}

/// Socket → queue, until either end is gone. What has come already is handed on together; nothing waits for what has not.
fn read_socket(
    mut stream: BinlogStream,
    mut checksum: Checksum,
    batches: Sender<Received>,
    room: &Budget,
    appending: &dyn Wake,
    reading: &dyn Wake,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) {
        let mut received = Received::default();
        loop {
            let parsed = match stream.next() {
                Ok(packet) => parse(packet.bytes, &mut checksum),
                Err(error) => Err(of_error(&error)),
            };
            match parsed {
                Ok(event) => received.push(event),
                Err(ended) => received.ended = Some(ended),
            }
            if received.is_full() || !stream.next_is_buffered() {
                break;
            }
        }
        let (is_last, is_little) = (received.ended.is_some(), received.bytes <= LITTLE_BYTES);
        if !room.acquire(received.memory()) || batches.send(received).is_err() {
            return;
        }
        if is_little {
            appending.run_inline();
            reading.run_inline();
        } else {
            appending.wake();
        }
        if is_last {
            return;
        }
    }
}

/// The stream says with each format description how the events after it are summed.
fn parse(bytes: bytes::Bytes, checksum: &mut Checksum) -> Result<Event, StreamEnd> {
    // The bytes changed on the way: asking again is right.
    let corrupt = |error: binlog::Corrupt| StreamEnd::Lost(format!("a broken event from the source: {error}"));
    match bytes.get(4).copied().map(Kind) {
        Some(Kind::FORMAT_DESCRIPTION) => {
            let (event, format) = FormatDescription::decode(&bytes).map_err(corrupt)?;
            *checksum = format.checksum;
            Ok(event)
        }
        // One that is made up before the first format description may come without a checksum.
        Some(Kind::ROTATE) => match Event::parse(bytes.clone(), *checksum) {
            Ok(event) => Ok(event),
            Err(error) => Event::parse(bytes, Checksum::Off).map_err(|_| corrupt(error)),
        },
        _ => Event::parse(bytes, *checksum).map_err(corrupt),
    }
}

/// The relay's start for what the target has applied.
pub fn reader_start(position: Option<&LogPosition>) -> relay::Start {
    position.map_or(relay::Start::Beginning, |position| relay::Start::At(position.clone()))
}
