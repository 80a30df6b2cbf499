//! A mirror: the source's binary logs, equal to its own files at the same positions.
//!
//! One thread reads the source's stream and appends it (`arriving` decides, `folder` writes); the disk is synced when nothing more has come, and after so many
//! bytes. After a lost connection, and at each start, the last event is asked for again and compared: a source that was reset, restored or that lost the end of its
//! log is noticed before anything is added.

mod arriving;
mod folder;
mod gtids;
mod history;
mod last;
mod owner;
mod purge;
mod source;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use bytes::Bytes;
use engine::failure::{Failure, FailureKind};
use relay::RealFs;
use wire::{BinlogStream, Connection, Error, ShutdownHandle};

use self::arriving::{Arrival, Arriving, FIRST_OFFSET, Left};
use self::folder::{Folder, FolderError};
use self::last::Last;
use self::owner::Owner;
pub use self::purge::Keep;
use self::purge::Now;
pub use self::source::Upstream;
use self::source::{From, Source, Then};
use crate::inventory::{Inventory, SOURCE_FACTS, SourceFacts};

/// Bytes that may wait for the disk while more comes.
const UNSYNCED_MAX: u64 = 8 << 20;
/// Between two looks at age and disk, when no file begins.
const PURGE_EVERY: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
const BACK_OFF_FIRST: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(10);
/// How long a mirror goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until it is stopped.
    Stopped,
    /// Up to the end that the source's log has at the beginning.
    SourceEnd,
}

/// What a mirror does.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub until: Until,
    pub keep: Keep,
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
/// What is durable is published in the inventory.
pub fn run(
    upstream: &Upstream,
    dir: &Path,
    inventory: &Inventory,
    plan: Plan,
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    let (folder, last) = Folder::open(Arc::new(RealFs), dir).map_err(|error| of_folder(&error))?;
    let mut mirror = Mirror {
        upstream,
        plan,
        stop,
        inventory,
        folder,
        last,
        end: None,
        compared: None,
        beginning: None,
        purged: None,
        bytes: 0,
    };
    mirror.publish_all()?;
    mirror.run()?;
    Ok(Done { position: mirror.folder.durable(), files: mirror.folder.names().len(), bytes: mirror.bytes })
}

struct Mirror<'a> {
    upstream: &'a Upstream,
    plan: Plan,
    stop: &'a AtomicBool,
    inventory: &'a Inventory,
    folder: Folder,
    /// Of the last file, as it was found on disk.
    last: Option<Last>,
    /// Where to end.
    end: Option<LogPosition>,
    /// Up to there this connection's source has the mirror's history.
    compared: Option<LogPosition>,
    /// A file that begins, until it is known to follow the one before.
    beginning: Option<Beginning>,
    /// When files were last purged.
    purged: Option<Instant>,
    bytes: u64,
}

struct Beginning {
    file: String,
    events: Vec<Bytes>,
}

/// Why a connection is not read any further.
enum Ended {
    Stopped,
    AtEnd,
    /// The source has left a file without its last event: it has to be asked which files it has.
    AtSeam,
}

impl Mirror<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let mut lost_since: Option<Instant> = None;
        let mut back_off = BACK_OFF_FIRST;
        loop {
            let before = self.bytes;
            let ended = self.connection();
            // What has come is kept, however the connection has ended.
            let kept = self.sync();
            let lost = match ended {
                Ok(Ended::Stopped | Ended::AtEnd) => return kept,
                Ok(Ended::AtSeam) => {
                    self.reread()?;
                    continue;
                }
                Err(failure) if failure.kind == FailureKind::ConnectionLost => failure,
                Err(failure) if self.stop.load(Ordering::Relaxed) && failure.kind == FailureKind::Stopped => {
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            };
            kept?;
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
            self.reread()?;
        }
    }

    /// What is on disk now.
    fn reread(&mut self) -> Result<(), Failure> {
        self.beginning = None;
        self.last = self.folder.reread().map_err(|error| of_folder(&error))?;
        self.publish_all()
    }

    /// Makes all that was taken durable, and says so.
    fn sync(&mut self) -> Result<(), Failure> {
        self.folder.sync().map_err(|error| of_folder(&error))?;
        if let Some(end) = self.folder.durable() {
            self.inventory.durable(&end);
        }
        Ok(())
    }

    /// What the folder holds, and what it says of the source.
    fn publish_all(&self) -> Result<(), Failure> {
        self.inventory
            .hold(self.folder.names(), self.folder.durable().as_ref())
            .map_err(|error| refused(format!("the mirror's files can not be read: {error}")))?;
        if self.inventory.source().is_none()
            && let Some(text) = self.folder.read(SOURCE_FACTS).map_err(|error| of_folder(&error))?
            && let Ok(facts) = SourceFacts::from_json(&text)
        {
            self.inventory.learn(facts);
        }
        Ok(())
    }

    /// Asks what replicas will ask for, and keeps it.
    fn learn(&self, connection: &mut Connection) -> Result<(), Failure> {
        let facts = SourceFacts::ask(connection).map_err(|error| source::failed("SHOW GLOBAL VARIABLES", &error))?;
        let text = facts.to_json().map_err(|error| refused(error.to_string()))?;
        self.folder.replace(SOURCE_FACTS, &text).map_err(|error| of_folder(&error))?;
        self.inventory.learn(facts);
        Ok(())
    }

    /// One connection, from where the mirror ends.
    fn connection(&mut self) -> Result<Ended, Failure> {
        let mut connection = source::connect(&self.upstream.options)?;
        let state = Source::ask(&mut connection)?;
        self.is_its_own(&state)?;
        self.learn(&mut connection)?;
        if self.plan.until == Until::SourceEnd && self.end.is_none() {
            self.end = Some(state.end.clone());
        }
        let (at, arriving) = match &self.last {
            None => {
                let oldest = state.logs.first().ok_or_else(|| refused("the source has no log files"))?;
                (LogPosition::new(Arc::clone(&oldest.file), FIRST_OFFSET), Arriving::default())
            }
            Some(last) => {
                history::check_lists(last, &state)?;
                history::compare_head(self.upstream, last)?;
                let again = LogPosition::new(Arc::clone(&last.end.file), last.again_from);
                let format = last
                    .format()
                    .cloned()
                    .ok_or_else(|| refused("the mirror's last file has no format description"))?;
                (again.clone(), Arriving::resume(again, format, last.gtids.clone()))
            }
        };
        tracing::info!("mirroring {} from {at} into {}", state.identity, self.folder.dir().display());
        self.compared = self.last.as_ref().map(|last| last.end.clone());
        let from = From { at, server_id: self.upstream.server_id, then: Then::Wait };
        let stream = source::stream(connection, &from)?;
        let shutdown = stream.shutdown_handle();
        unless_stopped(self.stop, &shutdown, || self.read(stream, arriving))
    }

    fn read(&mut self, mut stream: BinlogStream, mut arriving: Arriving) -> Result<Ended, Failure> {
        self.purge()?;
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
            match arriving.take(packet.bytes).map_err(|refusal| history::refused_event(&refusal))? {
                Arrival::LeaveOut => {}
                Arrival::Begin { left: Left::Open, .. } if before != self.compared => return Ok(Ended::AtSeam),
                Arrival::Begin { file, .. } => self.beginning = Some(Beginning { file, events: Vec::new() }),
                Arrival::Store(bytes) => self.store(before, bytes)?,
            }
            if arriving.has_begun() {
                self.begin()?;
            }
            if self.purged.is_none_or(|purged| purged.elapsed() > PURGE_EVERY) {
                self.purge()?;
            }
            if !stream.next_is_buffered() || self.folder.unsynced() >= UNSYNCED_MAX {
                self.sync()?;
            }
        }
    }

    /// The file whose beginning has come is made.
    fn begin(&mut self) -> Result<(), Failure> {
        let Some(Beginning { file, events }) = self.beginning.take() else { return Ok(()) };
        self.sync()?;
        self.folder.begin(&file).map_err(|error| of_folder(&error))?;
        for bytes in events {
            self.folder.append(&bytes).map_err(|error| of_folder(&error))?;
        }
        self.purge()
    }

    /// Removes the oldest files that need not be kept.
    fn purge(&mut self) -> Result<(), Failure> {
        self.purged = Some(Instant::now());
        if self.plan.keep.is_all() {
            return Ok(());
        }
        let sizes = self.folder.sizes().map_err(|error| of_folder(&error))?;
        // What a replica is being sent stays.
        let surplus = self.plan.keep.surplus(&sizes, Now::of(self.folder.dir())).min(self.inventory.unread());
        if surplus > 0 {
            let gone = self.folder.purge(surplus).map_err(|error| of_folder(&error))?;
            if let Some(first) = self.folder.names().first() {
                self.inventory.purged_to(first);
            }
            tracing::info!("{} files removed, from {} on", gone.len(), gone.first().map_or("", String::as_str));
        }
        Ok(())
    }

    /// What is in the mirror already is compared, the rest is added.
    fn store(&mut self, at: Option<LogPosition>, bytes: Bytes) -> Result<(), Failure> {
        if let Some(beginning) = &mut self.beginning {
            self.bytes += bytes.len() as u64;
            beginning.events.push(bytes);
            return Ok(());
        }
        let known = match (&self.last, &at) {
            (Some(last), Some(at)) => at.file == last.end.file && at.offset < last.end.offset,
            _ => false,
        };
        let Some(at) = at.filter(|_| known) else {
            self.bytes += bytes.len() as u64;
            return self.folder.append(&bytes).map_err(|error| of_folder(&error));
        };
        if self.folder.holds(at.offset, &bytes).map_err(|error| of_folder(&error))? {
            return Ok(());
        }
        Err(history::another_history(&format!("the source has another event at {at} than the mirror")))
    }

    fn is_at_end(&self) -> bool {
        self.end.as_ref().is_some_and(|end| self.folder.durable().is_some_and(|durable| durable >= *end))
    }

    /// The folder is of this source, or of none yet.
    fn is_its_own(&self, state: &Source) -> Result<(), Failure> {
        let owner = Owner::new(state.flavour, &state.identity);
        let text = serde_json::to_vec_pretty(&owner).map_err(|error| refused(error.to_string()))?;
        match self.folder.read(owner::FILE).map_err(|error| of_folder(&error))? {
            // Folder::open takes no log files without it.
            None => self.folder.replace(owner::FILE, &text).map_err(|error| of_folder(&error)),
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

    /// Sleeps. True: it is time to stop.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(POLL.min(time));
        }
        self.stop.load(Ordering::Relaxed)
    }
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

fn of_folder(error: &FolderError) -> Failure {
    let (kind, remedy) = match error {
        FolderError::Locked { .. } => (FailureKind::Refused, "end the other process, or give another --dir"),
        FolderError::NotAMirror { .. } => {
            (FailureKind::Refused, "give a folder that is empty, or that a mirror has made")
        }
        FolderError::Gap { .. } => (FailureKind::Refused, "put the files back, or mirror into a new --dir"),
        FolderError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            (FailureKind::Exhausted, "free some space, then run the same command again; what is durable stays")
        }
        _ => {
            (FailureKind::Refused, "free the disk or repair it, then run the same command again; what is durable stays")
        }
    };
    Failure::new(kind, format!("mirror: {error}")).remedy(remedy)
}
