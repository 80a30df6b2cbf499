//! A mirror: the source's binary logs, equal to its own files at the same positions.
//!
//! One thread reads the source's stream and appends it (`arriving` decides, `folder` writes); the disk is synced when nothing more has come, and after so many
//! bytes. After a lost connection, and at each start, the last event is asked for again and compared: a source that was reset, restored or that lost the end of its
//! log is noticed before anything is added.

mod acknowledge;
mod arriving;
pub(crate) mod epochs;
mod failover;
pub(crate) mod files;
pub(crate) mod folder;
mod gtids;
mod history;
pub(crate) mod last;
mod look;
mod orders;
pub(crate) mod owner;
mod pack;
mod plan;
mod purge;
pub(crate) mod source;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlog::{FIRST_OFFSET, LogPosition};
use bytes::Bytes;
use engine::failure::{Failure, FailureKind};
use relay::RealFs;
use relay::fs::Fs;
use wire::reach::{BackOff, Reachability};
use wire::{BinlogStream, Connection, Error};

use self::arriving::{Arrival, Arriving, Left};
use self::epochs::Epochs;
pub use self::epochs::{folder_of, folders_of};
use self::failover::{Chosen, Instead, Mirrored};
use self::files::{FolderError, of_folder};
use self::folder::Folder;
use self::last::Last;
pub use self::look::look;
pub use self::orders::Orders;
use self::owner::Owner;
use self::pack::{Forms, Packer};
pub use self::plan::{Around, Complete, Done, Plan, Until};
use self::purge::Now;
pub use self::purge::{Keep, disk};
pub use self::source::Upstream;
use self::source::{From, Then};
use crate::inventory::{Inventory, SOURCE_FACTS, SourceFacts, Standing};
use crate::seen::Monitor;
use crate::semisync::acknowledging::Acknowledging;

/// Bytes that may wait for the disk while more comes.
const UNSYNCED_MAX: u64 = 8 << 20;
/// Between two looks at age and disk, when no file begins.
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// A stream that has come for so long was there: what is lost then is lost anew.
const ATTACHED_MIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);

/// Mirrors the source into the folder: the first one of the list that is the folder's, or that has all that the folder has. It ends when `stop` is set, at the source's end if
/// asked, and with what only a person can decide. `ready` is called once the folder is this process's.
pub fn run(
    upstreams: &[Upstream],
    dir: &Path,
    around: Around<'_>,
    plan: Plan,
    stop: &AtomicBool,
    ready: impl FnOnce() -> Result<(), Failure>,
) -> Result<Done, Failure> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let epochs = Epochs::open(Arc::clone(&fs), dir).map_err(|error| of_folder(&error))?;
    let (folder, last) = Folder::open(Arc::clone(&fs), &epochs.active()).map_err(|error| of_folder(&error))?;
    let acks = Acknowledging::open(around.acks, &fs, dir, plan.server_id).map_err(|error| error.failure())?;
    ready()?;
    let mut mirror = Mirror {
        upstreams: upstreams.to_vec(),
        first: plan.first.clone(),
        plan,
        stop,
        fs,
        epochs,
        owner: owner_of(&folder)?,
        inventory: around.inventory,
        monitor: around.monitor,
        orders: around.orders,
        told: Reachability::new("source"),
        forms: Forms::default(),
        packer: None,
        acks,
        folder,
        last,
        settled_at: None,
        end: None,
        compared: None,
        beginning: None,
        purged: None,
        attached: None,
        lost_since: None,
        bytes: 0,
        timestamp: 0,
        newest: Vec::new(),
    };
    if mirror.plan.complete == Complete::Compressed {
        let packer = Packer::start(Arc::clone(&mirror.fs), mirror.forms.clone());
        mirror.packer = Some(packer.map_err(|error| refused(format!("a thread that compresses: {error}")))?);
    }
    mirror.publish_former()?;
    mirror.publish_all()?;
    mirror.pack();
    let ended = mirror.run();
    // Nobody is left who could follow.
    mirror.orders.close();
    ended?;
    if let Some(packer) = mirror.packer.take() {
        packer.finish(stop);
    }
    Ok(Done { position: mirror.folder.durable(), files: mirror.folder.names().len(), bytes: mirror.bytes })
}

struct Mirror<'a> {
    upstreams: Vec<Upstream>,
    plan: Plan,
    stop: &'a AtomicBool,
    fs: Arc<dyn Fs>,
    epochs: Epochs,
    /// Of the folder; `None` before the first connection.
    owner: Option<Owner>,
    inventory: &'a Inventory,
    monitor: &'a Monitor,
    orders: &'a Orders,
    told: Reachability,
    forms: Forms,
    packer: Option<Packer>,
    /// None: nothing is acknowledged.
    acks: Option<Acknowledging<'a>>,
    folder: Folder,
    /// Of the last file, as it was found on disk.
    last: Option<Last>,
    /// Of the source's files the first one that is needed; the oldest, unless it has taken the place of another source.
    first: Option<Arc<str>>,
    /// Where the source's log ended when it was connected to, until the mirror is there.
    settled_at: Option<LogPosition>,
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
    /// Of the last event that came.
    timestamp: u32,
    /// What came since the last sync.
    newest: Vec<Bytes>,
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
    /// It can be attached as a semi-synchronous replica now.
    CanAcknowledge,
}

impl Mirror<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let mut attempts = 0_u32;
        loop {
            let before = self.bytes;
            self.attached = None;
            let ended = self.connection();
            // What has come is kept, however the connection has ended.
            let kept = self.sync();
            self.say_received();
            self.inventory.stand(Standing::Settled);
            let lost = match ended {
                Ok(Ended::Stopped | Ended::AtEnd) => return kept,
                Ok(Ended::AtSeam | Ended::CanAcknowledge) => {
                    self.reread()?;
                    continue;
                }
                Err(failure) if self.stop.load(Ordering::Relaxed) && failure.kind == FailureKind::Stopped => {
                    return Ok(());
                }
                // Another source is to be followed.
                Err(failure) if self.orders.is_pending() && failure.kind == FailureKind::ConnectionLost => {
                    kept?;
                    self.reread()?;
                    continue;
                }
                Err(failure) if failure.kind == FailureKind::ConnectionLost => failure,
                Err(failure) => return Err(failure),
            };
            kept?;
            if self.bytes > before || self.attached.is_some_and(|attached| attached.elapsed() > ATTACHED_MIN) {
                self.lost_since = None;
                attempts = 0;
            }
            self.told.lost(&lost.message);
            self.monitor.lost(&lost.message);
            let retry_for = self.upstreams.first().map(|upstream| upstream.retry_for).unwrap_or_default();
            if self.lost_since.get_or_insert_with(Instant::now).elapsed() > retry_for {
                return Err(lost);
            }
            attempts = attempts.saturating_add(1);
            if self.pause(BackOff::SOURCE.before(attempts)) {
                return Ok(());
            }
            self.reread()?;
        }
    }

    /// What is on disk now.
    fn reread(&mut self) -> Result<(), Failure> {
        self.beginning = None;
        self.newest.clear();
        self.last = self.folder.reread().map_err(|error| of_folder(&error))?;
        self.publish_all()
    }

    /// Makes all that was taken durable, and says so.
    fn sync(&mut self) -> Result<(), Failure> {
        let began = (self.folder.unsynced() > 0).then(Instant::now);
        self.folder.sync().map_err(|error| of_folder(&error))?;
        if let Some(began) = began {
            self.monitor.synced(began.elapsed());
        }
        if let Some(end) = self.folder.durable() {
            self.inventory.durable_with(&end, &std::mem::take(&mut self.newest));
            if self.settled_at.take_if(|settled| end >= *settled).is_some() {
                self.inventory.stand(Standing::Settled);
            }
        }
        Ok(())
    }

    fn say_received(&self) {
        self.monitor.received(self.folder.end(), self.bytes, self.timestamp);
    }

    /// The files of the sources that this one has taken the place of: each up to where the next one begins.
    fn publish_former(&self) -> Result<(), Failure> {
        let dirs = self.epochs.old();
        let behind = dirs.iter().skip(1).cloned().chain([self.epochs.active()]);
        for (dir, next) in dirs.iter().zip(behind) {
            let names = files::logs(&*self.fs, dir).map_err(|error| of_folder(&error))?;
            let seam = look::owner_in(&*self.fs, &next)?.and_then(|owner| owner.after);
            let end = seam.and_then(|seam| seam.position.parse::<LogPosition>().ok()).map_or(0, |end| end.offset);
            self.inventory.hold_former(dir, &names, end).map_err(|error| unreadable(&error))?;
        }
        Ok(())
    }

    /// What the folder holds, and what it says of the source.
    fn publish_all(&self) -> Result<(), Failure> {
        self.inventory
            .hold(self.folder.dir(), self.folder.names(), self.folder.durable().as_ref())
            .map_err(|error| unreadable(&error))?;
        if let Some(owner) = &self.owner {
            self.inventory.is_of(&owner.source);
        }
        if self.inventory.source().is_none()
            && let Some(text) = self.folder.read(SOURCE_FACTS).map_err(|error| of_folder(&error))?
            && let Ok(facts) = SourceFacts::from_json(&text)
        {
            self.inventory.learn(facts);
        }
        Ok(())
    }

    /// Asks what replicas will ask for, and keeps it.
    fn learn(&self, connection: &mut Connection) -> Result<SourceFacts, Failure> {
        let facts = SourceFacts::ask(connection).map_err(|error| source::failed("SHOW GLOBAL VARIABLES", &error))?;
        let text = facts.to_json().map_err(|error| refused(error.to_string()))?;
        self.folder.replace(SOURCE_FACTS, &text).map_err(|error| of_folder(&error))?;
        self.inventory.learn(facts.clone());
        Ok(facts)
    }

    /// One connection, from where the mirror ends: to a source of the list, or to the one that it was ordered to follow.
    fn connection(&mut self) -> Result<Ended, Failure> {
        let Some(order) = self.orders.take() else {
            let upstreams = self.upstreams.clone();
            return self.connection_to(&upstreams, self.plan.patience, &|_| {});
        };
        let answered = |answer| order.answer(answer);
        let before = self.owner.clone();
        let ended = self.connection_to(&order.upstreams, Duration::ZERO, &answered);
        if let (Some(owner), true) = (&self.owner, self.owner != before) {
            // The mirror has become its, whatever came then.
            order.answer(Ok(owner.source.clone()));
        }
        match ended {
            // Nothing has changed, and nobody else is to be told.
            Err(failure) if !order.is_answered() => {
                order.answer(Err(failure));
                Ok(Ended::AtSeam)
            }
            ended => {
                self.upstreams.clone_from(&order.upstreams);
                ended
            }
        }
    }

    /// `followed` is told once the source is known to have the mirror's history.
    fn connection_to(
        &mut self,
        upstreams: &[Upstream],
        patience: Duration,
        followed: &dyn Fn(Result<String, Failure>),
    ) -> Result<Ended, Failure> {
        let mirrored = Mirrored {
            owner: self.owner.as_ref(),
            whole: self.last.as_ref().map(|last| &last.whole),
            away: self.lost_since.map(|since| since.elapsed()).unwrap_or_default(),
            patience,
        };
        let Chosen { upstream, mut connection, state, instead } = failover::choose(upstreams, &mirrored)?;
        let mut upstream = upstream.clone();
        if let Some(acks) = &mut self.acks {
            // Before any stream of its number.
            acks.lease(&mut connection)?;
            upstream.server_id = acks.server_id();
        }
        if let Some(instead) = instead {
            self.follow(Owner::new(state.flavour, &state.identity), instead)?;
        }
        if self.owner.is_none() {
            let owner = Owner::new(state.flavour, &state.identity);
            self.folder.replace(owner::FILE, &text_of(&owner)?).map_err(|error| of_folder(&error))?;
            self.inventory.is_of(&owner.source);
            self.owner = Some(owner);
        }
        if self.plan.until == Until::SourceEnd && self.end.is_none() {
            self.end = Some(state.end.clone());
        }
        self.settled_at = Some(state.end.clone());
        self.inventory.stand(Standing::Settling);
        let (at, arriving) = match &self.last {
            None => {
                let oldest = state.logs.first().map(|log| &log.file);
                let first = self.first.as_ref().or(oldest).ok_or_else(|| refused("the source has no log files"))?;
                (LogPosition::new(Arc::clone(first), FIRST_OFFSET), Arriving::default())
            }
            Some(last) => {
                history::check_lists(last, &state)?;
                history::compare_head(&upstream, &state.identity, last)?;
                let again = LogPosition::new(Arc::clone(&last.end.file), last.again_from);
                let format = last
                    .format()
                    .cloned()
                    .ok_or_else(|| refused("the mirror's last file has no format description"))?;
                (again.clone(), Arriving::resume(again, format, last.gtids.clone()))
            }
        };
        // Only now: it is the mirror's source, and has its history.
        let facts = self.learn(&mut connection)?;
        let attaching = self.acks.as_mut().map(|acks| acks.attach(&at, &facts, &upstream.options));
        let attaching = attaching.unwrap_or_default();
        tracing::info!("mirroring {} from {at} into {}", state.identity, self.folder.dir().display());
        self.compared = self.last.as_ref().map(|last| last.end.clone());
        let from = From { at, server_id: upstream.server_id, attaching, then: Then::Wait };
        let stream = source::stream(connection, &from, &state.identity)?;
        followed(Ok(state.identity.clone()));
        self.attached = Some(Instant::now());
        self.told.reached();
        self.monitor.connected(&upstream.options, &state.identity);
        let shutdown = stream.shutdown_handle();
        let _interrupted = self.orders.interrupt(&shutdown);
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
            if !self.acknowledge(&mut stream)? {
                return Ok(Ended::CanAcknowledge);
            }
            if self.acks.as_ref().is_some_and(|acks| !acks.comes_first(&mut stream)) {
                continue;
            }
            let packet = match stream.next() {
                Ok(packet) => packet,
                Err(_) if self.stop.load(Ordering::Relaxed) => return Ok(Ended::Stopped),
                Err(_) if self.orders.is_pending() => {
                    return Err(Failure::new(FailureKind::ConnectionLost, "another source is to be followed"));
                }
                Err(Error::DumpEnded) => {
                    return Err(Failure::new(
                        FailureKind::ConnectionLost,
                        "the source has ended the stream: it shuts down",
                    ));
                }
                Err(error) => return Err(source::failed("reading its log", &error)),
            };
            self.timestamp = packet_timestamp(&packet.bytes).unwrap_or(self.timestamp);
            let before = arriving.position().cloned();
            let is_waited_for = packet.semisync_ack;
            match arriving.take(packet.bytes).map_err(|refusal| history::refused_event(&refusal))? {
                Arrival::LeaveOut => {}
                Arrival::Begin { left: Left::Open, .. } if before != self.compared => return Ok(Ended::AtSeam),
                Arrival::Begin { file, .. } => self.beginning = Some(Beginning { file, events: Vec::new() }),
                Arrival::Store(bytes) => self.store(before, bytes)?,
            }
            if let Some(acks) = self.acks.as_mut().filter(|_| is_waited_for) {
                acks.asked(arriving.position());
            }
            if arriving.has_begun() {
                self.begin()?;
            }
            if !stream.next_is_buffered() || self.folder.unsynced() >= self.unsynced_max() {
                self.sync()?;
                self.say_received();
                // Here the newest file counts, if it has just begun.
                if self.purged.is_none_or(|purged| purged.elapsed() > PURGE_EVERY) {
                    self.purge()?;
                }
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
            self.newest.push(bytes);
        }
        self.purged = None;
        self.pack();
        Ok(())
    }

    /// Has the files compressed that are complete, if so wanted.
    fn pack(&self) {
        if let Some(packer) = &self.packer {
            let dirs = self.epochs.old().into_iter().chain([self.epochs.active()]);
            packer.look(dirs.collect());
        }
    }

    /// Removes the oldest files that need not be kept.
    fn purge(&mut self) -> Result<(), Failure> {
        self.purged = Some(Instant::now());
        if self.plan.keep.is_all() {
            return Ok(());
        }
        let forms = self.forms.clone();
        let _held = forms.hold();
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
        let surplus = self.plan.keep.surplus(&sizes, Now::of(self.folder.dir()));
        // What a replica is being sent stays, unless told; what the archive lacks stays. Who looks for a file from now on finds none of these.
        let removed = self.inventory.let_go(surplus, self.plan.unread);
        let mut left = removed;
        for (dir, count) in &old {
            let gone = left.min(*count);
            if gone > 0 {
                files::purge_old(&*self.fs, dir, gone)?;
            }
            left -= gone;
        }
        self.folder.purge(left)?;
        Ok(removed)
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
            self.folder.append(&bytes).map_err(|error| of_folder(&error))?;
            self.newest.push(bytes);
            return Ok(());
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
        if self.acks.as_ref().is_some_and(Acknowledging::waits_for_others) {
            return Err(refused(format!(
                "{} could take the place of {}: it has all transactions of the mirror. But what the other heddles have confirmed are positions of the former source",
                owner.source, seam.source
            ))
            .remedy("run it once with --ack off and --until-end, so that the mirror follows; make the others mirrors of the new source, too; then run it with --ack again"));
        }
        tracing::warn!(
            "{} takes the place of {}, whose files end at {}: it has all of their transactions",
            owner.source,
            seam.source,
            seam.position
        );
        let end = seam.position.parse::<LogPosition>().map_or(0, |end| end.offset);
        let owner = owner.after(seam);
        let dir = self.epochs.begin(&owner.source, &text_of(&owner)?).map_err(|error| of_folder(&error))?;
        (self.folder, self.last) = Folder::open(Arc::clone(&self.fs), &dir).map_err(|error| of_folder(&error))?;
        // What replicas are sent of the former source ends at the seam, and no stream goes over it.
        self.inventory.stand(Standing::Settling);
        self.inventory.succeed(end);
        (self.owner, self.first, self.end) = (Some(owner), Some(first), None);
        self.publish_all()
    }

    /// Sleeps. True: it is time to stop.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.stop.load(Ordering::Relaxed) && !self.orders.is_pending() {
            std::thread::sleep(POLL.min(time));
        }
        self.stop.load(Ordering::Relaxed)
    }
}

/// Whose a folder is; `None`: nobody's yet.
fn owner_of(folder: &Folder) -> Result<Option<Owner>, Failure> {
    owner::parse(folder.read(owner::FILE).map_err(|error| of_folder(&error))?.as_deref(), folder.dir())
}

fn unreadable(error: &std::io::Error) -> Failure {
    refused(format!("the mirror's files can not be read: {error}"))
}

/// When the source wrote an event; none of what it made up for the stream.
fn packet_timestamp(event: &[u8]) -> Option<u32> {
    let timestamp = event.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))?;
    (timestamp > 0).then_some(timestamp)
}

fn text_of(owner: &Owner) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec_pretty(owner).map_err(|error| refused(error.to_string()))
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Refused, message)
}
