//! Reads a live server's binary logs as a replica would, for their sums alone: nothing is kept, nothing is written.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use binlog::{Event, Kind, MAGIC};
use engine::survey::{Cut, Cutter, Definitions, Problem, ProblemKind, Sink, Totals, scan_part};
use wire::{ConnectOptions, Connection, DUMP_NON_BLOCK, DUMP_SEND_ANNOTATE_ROWS, DumpOptions, DumpRequest};

use super::LogSurvey;
use super::feed::SurveyedFile;
use super::pipeline::Trouble;
use binlog::LogPosition;
use channel::start::source_state::SourceState;

/// A heartbeat comes this often when nothing else does: then a signal is looked for.
const HEARTBEAT: Duration = Duration::from_secs(1);
const LOG_EVERY: Duration = Duration::from_secs(10);
/// A source that is followed and goes away is tried again.
const RETRY_EVERY: Duration = Duration::from_millis(500);
const RETRY_FOR: Duration = Duration::from_secs(3600);

/// What to read of a live server.
pub struct LiveServer {
    pub options: ConnectOptions,
    /// The first file; without it the oldest, or with `follow` the one that is being written.
    pub start: Option<String>,
    /// In that file, between two transactions; its beginning without. Positions in what is found are then not the file's.
    pub offset: Option<u64>,
    /// Go on until `stop`.
    pub follow: bool,
    pub server_id: u32,
}

struct File {
    name: Arc<str>,
    place: u32,
    cutter: Cutter,
    bytes: u64,
    failed: bool,
}

struct Reader<'a, 's> {
    totals: Totals,
    definitions: Arc<Definitions>,
    file: Option<File>,
    seen: Vec<SurveyedFile>,
    troubles: Vec<Trouble>,
    more_troubles: u64,
    sink: Option<&'a mut (dyn Sink + Send + 's)>,
    stop: &'a AtomicBool,
    logged: Instant,
    /// Where to end: the log's end when reading began. Servers before MySQL 5.7 wait there whatever they were asked.
    end: Option<LogPosition>,
    /// Where the first stream begins, until its format description was seen.
    begins: Option<u64>,
    /// Who else looks at the pieces.
    search: Option<&'a mut dyn PieceReader>,
    /// That one needs no more.
    is_enough: bool,
}

/// Takes the pieces of a live log in its order.
pub trait PieceReader {
    /// The log's name, and its next piece. False: no more is needed.
    fn piece(&mut self, file: &str, piece: &engine::survey::Piece) -> bool;

    /// Another log begins.
    fn new_file(&mut self);
}

/// As [`run`], for so long at most.
pub fn sample<'a, 's>(
    live: &LiveServer,
    definitions: Definitions,
    totals: Totals,
    sink: Option<&'a mut (dyn Sink + Send + 's)>,
    limit: Duration,
) -> Result<LogSurvey> {
    let stop = Arc::new(AtomicBool::new(false));
    let timer = Arc::clone(&stop);
    let (send, ended) = crossbeam_channel::bounded::<()>(0);
    let watch = std::thread::spawn(move || {
        let _ = ended.recv_timeout(limit);
        timer.store(true, Ordering::Relaxed);
    });
    let found = run(live, definitions, totals, sink, &stop);
    drop(send);
    watch.join().map_err(|_| anyhow!("the timer has panicked: this is a bug in heddle"))?;
    found
}

/// Reads to the end that the log has now, or until `stop`.
pub fn run<'a, 's>(
    live: &LiveServer,
    definitions: Definitions,
    totals: Totals,
    sink: Option<&'a mut (dyn Sink + Send + 's)>,
    stop: &'a AtomicBool,
) -> Result<LogSurvey> {
    run_with(live, definitions, totals, sink, None, stop)
}

/// The same, for who looks at the pieces, too.
pub fn run_with<'a, 's>(
    live: &LiveServer,
    definitions: Definitions,
    totals: Totals,
    sink: Option<&'a mut (dyn Sink + Send + 's)>,
    search: Option<&'a mut dyn PieceReader>,
    stop: &'a AtomicBool,
) -> Result<LogSurvey> {
    let mut connection = Connection::connect(&live.options).context("--from")?;
    let state = SourceState::read(&mut connection).context("--from")?;
    let file = match (&live.start, live.follow) {
        (Some(name), _) if !state.logs.contains(name) => {
            let known = |log: Option<&String>| log.map_or("none", String::as_str).to_owned();
            bail!("--start {name}: the server has {} to {}", known(state.logs.first()), known(state.logs.last()));
        }
        (Some(name), _) => name.clone(),
        (None, true) => state.end.file.to_string(),
        (None, false) => String::new(),
    };
    let mut reader = Reader {
        totals,
        definitions: Arc::new(definitions),
        file: None,
        seen: Vec::new(),
        troubles: Vec::new(),
        more_troubles: 0,
        sink,
        stop,
        logged: Instant::now(),
        end: (!live.follow).then_some(state.end),
        begins: live.offset,
        search,
        is_enough: false,
    };
    let mut place = (file, live.offset.unwrap_or(MAGIC.len() as u64));
    loop {
        match reader.read(live, connection, state.flavour, place)? {
            Ended::Whole => break,
            Ended::Lost(error) if reader.file.is_none() => return Err(error).context("--from"),
            Ended::Lost(error) if live.follow && error.is_connection_lost() => {
                tracing::warn!("{error}; trying again");
                let Some(again) = reconnect(live, stop) else { break };
                connection = again;
                place = reader.place();
                tracing::info!("connected again, going on at {}:{}", place.0, place.1);
            }
            Ended::Lost(error) => {
                reader.trouble(format!("the stream ended: {error}"));
                break;
            }
        }
    }
    if !live.follow && stop.load(Ordering::Relaxed) {
        reader.trouble("stopped by a signal before the end".to_owned());
    }
    reader.close_file(true);
    reader.totals.finish();
    Ok(LogSurvey {
        totals: reader.totals,
        files: reader.seen,
        troubles: reader.troubles,
        more_troubles: reader.more_troubles,
    })
}

/// How a stream of events ended.
enum Ended {
    /// At the log's end, or by a signal.
    Whole,
    Lost(wire::Error),
}

/// A connection to a server that was lost; none when a signal comes first, or the server stays away.
fn reconnect(live: &LiveServer, stop: &AtomicBool) -> Option<Connection> {
    let since = Instant::now();
    while !stop.load(Ordering::Relaxed) && since.elapsed() < RETRY_FOR {
        match Connection::connect(&live.options) {
            Ok(connection) => return Some(connection),
            Err(error) => tracing::debug!("{error}"),
        }
        std::thread::sleep(RETRY_EVERY);
    }
    None
}

impl Reader<'_, '_> {
    /// Where the next event will be.
    fn place(&self) -> (String, u64) {
        self.file
            .as_ref()
            .map_or_else(|| (String::new(), MAGIC.len() as u64), |file| (file.name.to_string(), file.bytes))
    }

    fn is_at_end(&self) -> bool {
        let (Some(end), Some(file)) = (&self.end, &self.file) else { return false };
        LogPosition { file: Arc::clone(&file.name), offset: file.bytes } >= *end
    }

    /// Reads one stream of events from a place on.
    fn read(
        &mut self,
        live: &LiveServer,
        mut connection: Connection,
        flavour: binlog::Flavour,
        (file, position): (String, u64),
    ) -> Result<Ended> {
        let mut checksum = wire::source::checksum(&mut connection);
        let mut flags = if live.follow { 0 } else { DUMP_NON_BLOCK };
        if flavour == binlog::Flavour::MariaDb {
            // Without them positions would not be the file's.
            flags |= DUMP_SEND_ANNOTATE_ROWS;
        }
        let request = DumpRequest::FilePosition { file, position, server_id: live.server_id, flags };
        let options = DumpOptions { heartbeat_period: HEARTBEAT, ..DumpOptions::default() };
        let mut stream = match connection.binlog_dump_with(&request, &options) {
            Ok(stream) => stream,
            Err(error) => return Ok(Ended::Lost(error)),
        };
        while !self.stop.load(Ordering::Relaxed) && !self.is_enough {
            match stream.next() {
                Ok(packet) => {
                    self.packet(&packet.bytes, &mut checksum)?;
                    if self.is_at_end() {
                        break;
                    }
                }
                Err(wire::Error::DumpEnded) if !live.follow => break,
                // By a signal.
                Err(wire::Error::Interrupted { .. }) => break,
                Err(error) => return Ok(Ended::Lost(error)),
            }
            if self.logged.elapsed() >= LOG_EVERY {
                self.logged = Instant::now();
                self.log();
            }
        }
        Ok(Ended::Whole)
    }

    fn packet(&mut self, bytes: &bytes::Bytes, checksum: &mut binlog::Checksum) -> Result<()> {
        let header = binlog::Header::parse(bytes).context("the server sent less than an event's header")?;
        match header.kind {
            Kind::HEARTBEAT | Kind::HEARTBEAT_V2 => return Ok(()),
            // Made up by the server: names the file that comes next.
            Kind::ROTATE if header.log_pos == 0 || header.timestamp == 0 => {
                let event = Event::parse(bytes.clone(), *checksum).context("a ROTATE event")?;
                let name: Arc<str> = binlog::rotate::Rotate::decode_any(&event).context("a ROTATE event")?.file.into();
                if self.file.as_ref().is_none_or(|file| file.name != name) {
                    self.close_file(false);
                    self.open_file(name);
                }
                return Ok(());
            }
            Kind::FORMAT_DESCRIPTION => {
                let (_, format) = binlog::FormatDescription::decode(bytes).context("a format description")?;
                *checksum = format.checksum;
                if let Some(seen) = self.seen.last_mut() {
                    seen.server_version = Some(format.server_version);
                }
                if self.file.as_ref().is_some_and(|file| file.bytes > MAGIC.len() as u64) {
                    // Sent before what comes from the middle of a file; it is not there a second time.
                    return Ok(());
                }
            }
            _ => {}
        }
        let Some(file) = &mut self.file else { bail!("the server sent an event before the name of its file") };
        file.bytes += bytes.len() as u64;
        if header.kind == Kind::FORMAT_DESCRIPTION
            && let Some(begins) = self.begins.take()
        {
            file.bytes = begins;
        }
        if !file.failed {
            file.cutter.buffer().extend_from_slice(bytes);
            self.cut();
        }
        Ok(())
    }

    fn open_file(&mut self, name: Arc<str>) {
        if let Some(search) = &mut self.search {
            search.new_file();
        }
        let place = self.seen.len() as u32;
        self.seen.push(SurveyedFile { path: PathBuf::from(&*name), bytes: 0, server_version: None });
        self.totals.begin_file(place, &name, place > 0);
        let mut cutter = Cutter::new(Arc::clone(&self.definitions)).in_clear();
        cutter.buffer().extend_from_slice(&MAGIC);
        self.file = Some(File { name, place, cutter, bytes: MAGIC.len() as u64, failed: false });
    }

    fn cut(&mut self) {
        while let Some(file) = &mut self.file {
            match file.cutter.next() {
                Cut::Piece(piece) => self.piece(&piece, false),
                // Whole events are pushed: what is too large is in the buffer already.
                Cut::Skip { .. } => {}
                Cut::NeedMore(_) => return,
                Cut::Failed(problem) => {
                    file.failed = true;
                    return self.problem(problem);
                }
            }
        }
    }

    fn piece(&mut self, piece: &engine::survey::Piece, last: bool) {
        if let (Some(search), Some(file)) = (&mut self.search, &self.file) {
            self.is_enough |= !search.piece(&file.name, piece);
        }
        let mut scanned = scan_part(piece, self.totals.depth, &self.totals.selection);
        if last {
            // A transaction that is still arriving is no problem of the log.
            scanned.problems.retain(|problem| problem.kind != ProblemKind::Unfinished);
        }
        for problem in scanned.problems.drain(..) {
            self.problem(problem);
        }
        self.more_troubles += scanned.more_problems;
        let sink = self.sink.as_deref_mut().map(|sink| sink as &mut dyn Sink);
        self.totals.add(&scanned, sink);
    }

    fn close_file(&mut self, last: bool) {
        if let Some(file) = &mut self.file
            && !file.failed
        {
            let (piece, problem) = file.cutter.finish();
            if let Some(piece) = piece {
                self.piece(&piece, last);
            }
            if let Some(problem) = problem.filter(|_| !last) {
                self.problem(problem);
            }
        }
        if let Some(file) = self.file.take() {
            self.definitions = Arc::clone(file.cutter.definitions());
            if let Some(seen) = self.seen.get_mut(file.place as usize) {
                seen.bytes = file.bytes;
            }
        }
    }

    fn problem(&mut self, problem: Problem) {
        let file = self.seen.last().map(|seen| seen.path.clone()).unwrap_or_default();
        if self.troubles.len() < 10_000 {
            self.troubles.push(Trouble { file, problem });
        } else {
            self.more_troubles += 1;
        }
    }

    fn trouble(&mut self, what: String) {
        let offset = self.file.as_ref().map_or(0, |file| file.bytes);
        self.problem(Problem::new(offset, what));
    }

    fn log(&self) {
        let totals = &self.totals;
        tracing::info!(
            transactions = totals.transactions,
            rows = totals.traffic.rows(),
            amil = totals.source.amil(),
            amil_writeset = totals.writeset.amil(),
            "reading {}",
            self.file.as_ref().map_or("", |file| &*file.name)
        );
    }
}
