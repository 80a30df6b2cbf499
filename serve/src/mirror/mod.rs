//! A mirror: the source's binary logs, equal to its own files at the same positions.
//!
//! One thread reads the source's stream and appends it (`arriving` decides, `folder` writes); the disk is synced when nothing more has come, and after so many
//! bytes. After a lost connection, and at each start, the last event is asked for again and compared: a source that was reset, restored or that lost the end of its
//! log is noticed before anything is added.

mod arriving;
mod epochs;
mod failover;
mod files;
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

use binlog::{FIRST_OFFSET, LogPosition};
use bytes::Bytes;
use engine::failure::{Failure, FailureKind};
use relay::RealFs;
use relay::fs::Fs;
use wire::{BinlogStream, Connection, Error};

use self::arriving::{Arrival, Arriving, Left};
use self::epochs::Epochs;
pub use self::epochs::folder_of;
use self::failover::{Chosen, Instead, Mirrored};
use self::files::{FolderError, of_folder};
use self::folder::Folder;
use self::last::Last;
use self::owner::Owner;
pub use self::purge::Keep;
use self::purge::Now;
pub use self::source::Upstream;
use self::source::{From, Then};
use crate::inventory::{Inventory, SOURCE_FACTS, SourceFacts};

/// Bytes that may wait for the disk while more comes.
const UNSYNCED_MAX: u64 = 8 << 20;
/// Between two looks at age and disk, when no file begins.
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// A stream that has come for so long was there: what is lost then is lost anew.
const ATTACHED_MIN: Duration = Duration::from_secs(10);
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
    /// How long the source may be away until another one of the list takes its place.
    pub patience: Duration,
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

/// Mirrors the source into the folder: the first one of the list that is the folder's, or that has all that the folder has. It ends when `stop` is set, at the source's end if
/// asked, and with what only a person can decide. What is durable is published in the inventory of who serves it.
pub fn run(
    upstreams: &[Upstream],
    dir: &Path,
    inventory: Option<&Inventory>,
    plan: Plan,
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let epochs = Epochs::open(Arc::clone(&fs), dir).map_err(|error| of_folder(&error))?;
    let (folder, last) = Folder::open(Arc::clone(&fs), &epochs.active()).map_err(|error| of_folder(&error))?;
    let mut mirror = Mirror {
        upstreams,
        plan,
        stop,
        fs,
        epochs,
        owner: owner_of(&folder)?,
        inventory,
        folder,
        last,
        first: None,
        end: None,
        compared: None,
        beginning: None,
        purged: None,
        attached: None,
        lost_since: None,
        bytes: 0,
    };
    mirror.publish_all()?;
    mirror.run()?;
    Ok(Done { position: mirror.folder.durable(), files: mirror.folder.names().len(), bytes: mirror.bytes })
}

struct Mirror<'a> {
    upstreams: &'a [Upstream],
    plan: Plan,
    stop: &'a AtomicBool,
    fs: Arc<dyn Fs>,
    epochs: Epochs,
    /// Of the folder; `None` before the first connection.
    owner: Option<Owner>,
    /// Of those that are served.
    inventory: Option<&'a Inventory>,
    folder: Folder,
    /// Of the last file, as it was found on disk.
    last: Option<Last>,
    /// Of the source's files the first one that is needed; the oldest, unless it has taken the place of another source.
    first: Option<Arc<str>>,
    /// Where to end.
    end: Option<LogPosition>,
    /// Up to there this connection's source has the mirror's history.
    compared: Option<LogPosition>,
    /// A file that begins, until it is known to follow the one before.
    beginning: Option<Beginning>,
    /// When files were last purged.
    purged: Option<Instant>,
    /// Since when the stream has come; `None`: there is none.
    attached: Option<Instant>,
    lost_since: Option<Instant>,
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
        let mut back_off = BACK_OFF_FIRST;
        loop {
            let before = self.bytes;
            self.attached = None;
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
            if self.bytes > before || self.attached.is_some_and(|attached| attached.elapsed() > ATTACHED_MIN) {
                self.lost_since = None;
                back_off = BACK_OFF_FIRST;
            }
            if self.lost_since.is_none() {
                tracing::warn!("the source can not be reached, trying again: {}", lost.message);
            }
            let retry_for = self.upstreams.first().map(|upstream| upstream.retry_for).unwrap_or_default();
            if self.lost_since.get_or_insert_with(Instant::now).elapsed() > retry_for {
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
        if let Some((inventory, end)) = self.inventory.zip(self.folder.durable()) {
            inventory.durable(&end);
        }
        Ok(())
    }

    /// What the folder holds, and what it says of the source.
    fn publish_all(&self) -> Result<(), Failure> {
        let Some(inventory) = self.inventory else { return Ok(()) };
        inventory
            .hold(self.folder.dir(), self.folder.names(), self.folder.durable().as_ref())
            .map_err(|error| refused(format!("the mirror's files can not be read: {error}")))?;
        if inventory.source().is_none()
            && let Some(text) = self.folder.read(SOURCE_FACTS).map_err(|error| of_folder(&error))?
            && let Ok(facts) = SourceFacts::from_json(&text)
        {
            inventory.learn(facts);
        }
        Ok(())
    }

    /// Asks what replicas will ask for, and keeps it.
    fn learn(&self, connection: &mut Connection) -> Result<(), Failure> {
        let facts = SourceFacts::ask(connection).map_err(|error| source::failed("SHOW GLOBAL VARIABLES", &error))?;
        let text = facts.to_json().map_err(|error| refused(error.to_string()))?;
        self.folder.replace(SOURCE_FACTS, &text).map_err(|error| of_folder(&error))?;
        if let Some(inventory) = self.inventory {
            inventory.learn(facts);
        }
        Ok(())
    }

    /// One connection, from where the mirror ends.
    fn connection(&mut self) -> Result<Ended, Failure> {
        let mirrored = Mirrored {
            owner: self.owner.as_ref(),
            whole: self.last.as_ref().map(|last| &last.whole),
            away: self.lost_since.map(|since| since.elapsed()).unwrap_or_default(),
            patience: self.plan.patience,
        };
        let Chosen { upstream, mut connection, state, instead } = failover::choose(self.upstreams, &mirrored)?;
        if let Some(instead) = instead {
            self.follow(Owner::new(state.flavour, &state.identity), instead)?;
        }
        if self.owner.is_none() {
            let owner = Owner::new(state.flavour, &state.identity);
            self.folder.replace(owner::FILE, &text_of(&owner)?).map_err(|error| of_folder(&error))?;
            self.owner = Some(owner);
        }
        if self.plan.until == Until::SourceEnd && self.end.is_none() {
            self.end = Some(state.end.clone());
        }
        let (at, arriving) = match &self.last {
            None => {
                let oldest = state.logs.first().map(|log| &log.file);
                let first = self.first.as_ref().or(oldest).ok_or_else(|| refused("the source has no log files"))?;
                (LogPosition::new(Arc::clone(first), FIRST_OFFSET), Arriving::default())
            }
            Some(last) => {
                history::check_lists(last, &state)?;
                history::compare_head(upstream, last)?;
                let again = LogPosition::new(Arc::clone(&last.end.file), last.again_from);
                let format = last
                    .format()
                    .cloned()
                    .ok_or_else(|| refused("the mirror's last file has no format description"))?;
                (again.clone(), Arriving::resume(again, format, last.gtids.clone()))
            }
        };
        // Only now: it is the mirror's source, and has its history.
        self.learn(&mut connection)?;
        tracing::info!("mirroring {} from {at} into {}", state.identity, self.folder.dir().display());
        self.compared = self.last.as_ref().map(|last| last.end.clone());
        let from = From { at, server_id: upstream.server_id, then: Then::Wait };
        let stream = source::stream(connection, &from)?;
        self.attached = Some(Instant::now());
        let shutdown = stream.shutdown_handle();
        shutdown.unless_stopped(self.stop, || self.read(stream, arriving))
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
        let removed = self.remove_surplus().map_err(|error| of_folder(&error))?;
        if removed > 0 {
            tracing::info!("{removed} files removed, the oldest ones");
        }
        Ok(())
    }

    /// Those of former sources first. How many were removed: fewer than are too many, where a replica still reads.
    fn remove_surplus(&mut self) -> Result<usize, FolderError> {
        let mut sizes = Vec::new();
        let mut old = Vec::new();
        for dir in self.epochs.old() {
            let found = files::sizes(&*self.fs, &dir, &files::logs(&*self.fs, &dir)?)?;
            old.push((dir, found.len()));
            sizes.extend(found);
        }
        sizes.extend(self.folder.sizes()?);
        let mut left = self.plan.keep.surplus(&sizes, Now::of(self.folder.dir()));
        if left == 0 {
            return Ok(0);
        }
        // What a replica is being sent stays.
        let kept = self.inventory.map_or(usize::MAX, Inventory::unread);
        let mut removed = 0;
        for (dir, count) in &old {
            let gone = left.min(*count);
            if gone > 0 {
                files::purge_old(&*self.fs, dir, gone)?;
            }
            (left, removed) = (left - gone, removed + gone);
        }
        let gone = self.folder.purge(left.min(kept))?;
        if let Some((inventory, first)) = self.inventory.zip(self.folder.names().first()).filter(|_| gone > 0) {
            inventory.purged_to(first);
        }
        Ok(removed + gone)
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

    /// Another source has taken the place of the one before: its files go into a folder of their own.
    fn follow(&mut self, owner: Owner, instead: Instead) -> Result<(), Failure> {
        let Instead { first, seam } = instead;
        if self.inventory.is_some() {
            return Err(refused(format!(
                "{} could take the place of {}: it has all transactions of the mirror. But its files have other names and positions than those that replicas are sent from here",
                owner.source, seam.source
            ))
            .remedy("run it once without --listen and with --until-end, so that the mirror follows; then serve again. Replicas that attach by GTID go on, others have to be pointed to the new positions"));
        }
        tracing::warn!(
            "{} takes the place of {}, whose files end at {}: it has all of their transactions",
            owner.source,
            seam.source,
            seam.position
        );
        let owner = owner.after(seam);
        let dir = self.epochs.begin(&owner.source, &text_of(&owner)?).map_err(|error| of_folder(&error))?;
        (self.folder, self.last) = Folder::open(Arc::clone(&self.fs), &dir).map_err(|error| of_folder(&error))?;
        (self.owner, self.first, self.end) = (Some(owner), Some(first), None);
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

/// Whose a folder is; `None`: nobody's yet.
fn owner_of(folder: &Folder) -> Result<Option<Owner>, Failure> {
    let Some(found) = folder.read(owner::FILE).map_err(|error| of_folder(&error))? else { return Ok(None) };
    serde_json::from_slice(&found).map(Some).map_err(|error| {
        refused(format!("{} in {}: {error}", owner::FILE, folder.dir().display()))
            .remedy("restore the file from a copy, or mirror into a new --dir")
    })
}

fn text_of(owner: &Owner) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec_pretty(owner).map_err(|error| refused(error.to_string()))
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Refused, message)
}
