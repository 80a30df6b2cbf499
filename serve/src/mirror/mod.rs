//! A mirror: the source's binary logs, equal to its own files at the same positions.
//!
//! One thread reads the source's stream and appends it (`arriving` decides, `folder` writes); the disk is synced when nothing more has come, and after so many
//! bytes. After a lost connection, and at each start, the last event is asked for again and compared: a source that was reset, restored or that lost the end of its
//! log is noticed before anything is added.

mod arriving;
mod folder;
mod owner;
mod source;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::failure::{Failure, FailureKind};
use relay::RealFs;
use wire::{BinlogStream, ConnectOptions, Error, ShutdownHandle};

use self::arriving::{Arrival, Arriving, FIRST_OFFSET};
use self::folder::{Folder, FolderError, Last};
use self::owner::Owner;
use self::source::{From, Source, Then};

/// Bytes that may wait for the disk while more comes.
const UNSYNCED_MAX: u64 = 8 << 20;
const POLL: Duration = Duration::from_millis(100);
const BACK_OFF_FIRST: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
const ANOTHER_HISTORY: &str = "the mirror stays as it is: it may be the only copy of what the source has lost. See which of the two histories is right; mirror the source \
                               as it is now into a new --dir";

/// How long a mirror goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until it is stopped.
    Stopped,
    /// Up to the end that the source's log has at the beginning.
    SourceEnd,
}

/// How a source is reached.
#[derive(Debug, Clone)]
pub struct Upstream {
    pub options: ConnectOptions,
    /// This replica's number towards the source: must differ from every other replica's.
    pub server_id: u32,
    /// For how long a source that is gone is tried again.
    pub retry_for: Duration,
}

/// What a mirror has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Up to where the files are durable, and equal to the source's.
    pub position: Option<LogPosition>,
    pub files: usize,
    /// Bytes that came in this run.
    pub bytes: u64,
}

/// Mirrors the source into the folder. It ends when `stop` is set, at the source's end if asked, and with what only a person can decide.
pub fn run(upstream: &Upstream, dir: &Path, until: Until, stop: &AtomicBool) -> Result<Done, Failure> {
    let (folder, last) = Folder::open(Arc::new(RealFs), dir).map_err(|error| of_folder(&error))?;
    let mut mirror = Mirror { upstream, until, stop, folder, last, end: None, bytes: 0 };
    mirror.run()?;
    Ok(Done { position: mirror.folder.durable(), files: mirror.folder.names().len(), bytes: mirror.bytes })
}

struct Mirror<'a> {
    upstream: &'a Upstream,
    until: Until,
    stop: &'a AtomicBool,
    folder: Folder,
    /// Of the last file, as it was found on disk.
    last: Option<Last>,
    /// Where to end.
    end: Option<LogPosition>,
    bytes: u64,
}

/// Why a connection is not read any further.
enum Ended {
    Stopped,
    AtEnd,
}

impl Mirror<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let mut lost_since: Option<Instant> = None;
        let mut back_off = BACK_OFF_FIRST;
        loop {
            let before = self.bytes;
            let ended = self.connection();
            // What has come is kept, however the connection has ended.
            self.folder.sync().map_err(|error| of_folder(&error))?;
            let lost = match ended {
                Ok(Ended::Stopped | Ended::AtEnd) => return Ok(()),
                Err(failure) if failure.kind == FailureKind::ConnectionLost => failure,
                Err(failure) if self.stop.load(Ordering::Relaxed) && failure.kind == FailureKind::Stopped => {
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            };
            if self.bytes > before {
                lost_since = None;
                back_off = BACK_OFF_FIRST;
            }
            if lost_since.is_none() {
                tracing::warn!("the source can not be reached, trying again: {}", lost.message);
            }
            if lost_since.get_or_insert_with(Instant::now).elapsed() > self.upstream.retry_for {
                return Err(lost);
            }
            if self.pause(back_off) {
                return Ok(());
            }
            back_off = (back_off * 2).min(BACK_OFF_MAX);
            self.last = self.folder.reread().map_err(|error| of_folder(&error))?;
        }
    }

    /// One connection, from where the mirror ends.
    fn connection(&mut self) -> Result<Ended, Failure> {
        let mut connection = source::connect(&self.upstream.options)?;
        let state = Source::ask(&mut connection)?;
        self.is_its_own(&state)?;
        if self.until == Until::SourceEnd && self.end.is_none() {
            self.end = Some(state.end.clone());
        }
        let (at, arriving) = match &self.last {
            None => {
                let oldest = state.logs.first().ok_or_else(|| refused("the source has no log files"))?;
                (LogPosition::new(Arc::clone(&oldest.file), FIRST_OFFSET), Arriving::default())
            }
            Some(last) => {
                check_history(last, &state)?;
                self.compare_head(last)?;
                let again = LogPosition::new(Arc::clone(&last.end.file), last.again_from);
                let format = last
                    .format()
                    .cloned()
                    .ok_or_else(|| refused("the mirror's last file has no format description"))?;
                (again.clone(), Arriving::resume(again, format))
            }
        };
        tracing::info!("mirroring {} from {at} into {}", state.identity, self.folder.dir().display());
        let from = From { at, server_id: self.upstream.server_id, then: Then::Wait };
        let stream = source::stream(connection, &from)?;
        let shutdown = stream.shutdown_handle();
        unless_stopped(self.stop, &shutdown, || self.read(stream, arriving))
    }

    fn read(&mut self, mut stream: BinlogStream, mut arriving: Arriving) -> Result<Ended, Failure> {
        loop {
            if self.is_at_end() {
                return Ok(Ended::AtEnd);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            let packet = match stream.next() {
                Ok(packet) => packet,
                Err(_) if self.stop.load(Ordering::Relaxed) => return Ok(Ended::Stopped),
                Err(Error::DumpEnded) => {
                    return Err(Failure::new(
                        FailureKind::ConnectionLost,
                        "the source has ended the stream: it shuts down",
                    ));
                }
                Err(error) => return Err(source::failed("reading its log", &error)),
            };
            let before = arriving.position().cloned();
            let arrival = arriving.take(packet.bytes).map_err(|refusal| {
                refused(refusal.to_string()).remedy(
                    "nothing of it is in the mirror. Look at the source's file there (mysqlbinlog --verify-binlog-checksum); if it is whole, please report this",
                )
            })?;
            match arrival {
                Arrival::LeaveOut => {}
                Arrival::Begin { file } => self.folder.begin(&file).map_err(|error| of_folder(&error))?,
                Arrival::Store(bytes) => self.store(before, &bytes)?,
            }
            if !stream.next_is_buffered() || self.folder.unsynced() >= UNSYNCED_MAX {
                self.folder.sync().map_err(|error| of_folder(&error))?;
            }
        }
    }

    /// What is in the mirror already is compared, the rest is added.
    fn store(&mut self, at: Option<LogPosition>, bytes: &[u8]) -> Result<(), Failure> {
        let known = match (&self.last, &at) {
            (Some(last), Some(at)) => at.file == last.end.file && at.offset < last.end.offset,
            _ => false,
        };
        let Some(at) = at.filter(|_| known) else {
            self.bytes += bytes.len() as u64;
            return self.folder.append(bytes).map_err(|error| of_folder(&error));
        };
        if self.folder.holds(at.offset, bytes).map_err(|error| of_folder(&error))? {
            return Ok(());
        }
        Err(another_history(&format!("the source has another event at {at} than the mirror")))
    }

    fn is_at_end(&self) -> bool {
        self.end.as_ref().is_some_and(|end| self.folder.durable().is_some_and(|durable| durable >= *end))
    }

    /// The folder is of this source, or of none yet.
    fn is_its_own(&self, state: &Source) -> Result<(), Failure> {
        let owner = Owner::new(state.flavour, &state.identity);
        let text = serde_json::to_vec_pretty(&owner).map_err(|error| refused(error.to_string()))?;
        match self.folder.read(owner::FILE).map_err(|error| of_folder(&error))? {
            None if self.folder.names().is_empty() => {
                self.folder.replace(owner::FILE, &text).map_err(|error| of_folder(&error))
            }
            None => Err(refused(format!(
                "{} has log files, and no {} that says whose they are",
                self.folder.dir().display(),
                owner::FILE
            ))
            .remedy("give a folder that is empty, or that a mirror has made")),
            Some(found) => match serde_json::from_slice::<Owner>(&found) {
                Ok(found) if found == owner => Ok(()),
                Ok(found) => Err(refused(format!(
                    "the mirror in {} is of the source {}, and this one is {}",
                    self.folder.dir().display(),
                    found.source,
                    owner.source
                ))
                .remedy("point --from at the source of the mirror, or mirror this one into a new --dir")),
                Err(error) => Err(refused(format!("{} in {}: {error}", owner::FILE, self.folder.dir().display()))
                    .remedy("restore the file from a copy, or mirror into a new --dir")),
            },
        }
    }

    /// The first events of the last file tell it from another one of the same name: of a source that was reset, or restored.
    fn compare_head(&self, last: &Last) -> Result<(), Failure> {
        let connection = source::connect(&self.upstream.options)?;
        let at = LogPosition::new(Arc::clone(&last.end.file), FIRST_OFFSET);
        let from = From { at: at.clone(), server_id: self.upstream.server_id, then: Then::End };
        let mut stream = source::stream(connection, &from)?;
        let mut arriving = Arriving::default();
        let mut head = last.head.iter();
        while head.len() > 0 {
            let packet = stream.next().map_err(|error| source::failed("reading the beginning of its log", &error))?;
            match arriving.take(packet.bytes) {
                Ok(Arrival::LeaveOut | Arrival::Begin { .. }) => {}
                Ok(Arrival::Store(bytes)) if head.next() == Some(&bytes) => {}
                Ok(Arrival::Store(_)) | Err(_) => {
                    return Err(another_history(&format!(
                        "the source's file {} does not begin as the mirror's",
                        at.file
                    )));
                }
            }
        }
        Ok(())
    }

    /// Sleeps. True: it is time to stop.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(POLL.min(time));
        }
        self.stop.load(Ordering::Relaxed)
    }
}

/// The source still has the mirror's last file, up to where the mirror ends.
fn check_history(last: &Last, state: &Source) -> Result<(), Failure> {
    let end = &last.end;
    if let Some(log) = state.logs.iter().find(|log| log.file == end.file) {
        if log.offset < end.offset {
            return Err(another_history(&format!(
                "the source's file {} is {} bytes long, and the mirror has {}: the source has lost the end of its log (sync_binlog=1 keeps it), or was restored",
                end.file, log.offset, end.offset
            )));
        }
        return Ok(());
    }
    let oldest = state.logs.first().map(|log| log.file.to_string()).unwrap_or_default();
    if state.logs.first().is_some_and(|log| *log > *end) {
        return Err(refused(format!(
            "the source has purged what comes behind {end}: its oldest file is {oldest}, and what stood in between is in no file any more"
        ))
        .remedy("keep the mirror as it is, up to there; mirror from the source's oldest file on into a new --dir; keep more files on the source"));
    }
    Err(another_history(&format!(
        "the source does not have the mirror's last file {}: its logs were reset, or it was restored",
        end.file
    )))
}

/// Ends the stream when it is time to stop.
fn unless_stopped<T>(stop: &AtomicBool, shutdown: &ShutdownHandle, read: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if stop.load(Ordering::Relaxed) {
                    shutdown.shutdown();
                }
                std::thread::sleep(POLL);
            }
        });
        let result = read();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Refused, message)
}

fn another_history(what: &str) -> Failure {
    refused(what).remedy(ANOTHER_HISTORY)
}

fn of_folder(error: &FolderError) -> Failure {
    let (kind, remedy) = match error {
        FolderError::Locked { .. } => (FailureKind::Refused, "end the other process, or give another --dir"),
        FolderError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            (FailureKind::Exhausted, "free some space, then run the same command again; what is durable stays")
        }
        _ => {
            (FailureKind::Refused, "free the disk or repair it, then run the same command again; what is durable stays")
        }
    };
    Failure::new(kind, format!("mirror: {error}")).remedy(remedy)
}
