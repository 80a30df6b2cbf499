//! The mirror's thread. It connects to the source, reads its stream and appends it, until it is stopped; a lost connection is made again.
//!
//! `durability.rs` decides when the disk is synced: when nothing more comes, and beside the reading while more comes.

mod attach;
mod durability;
mod needs;
mod publish;
mod read;
mod removal;
mod sync_pace;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlog::LogPosition;
use bytes::Bytes;
use engine::failure::{Failure, FailureKind};
use relay::RealFs;
use relay::fs::Fs;
use wire::reach::{Backoff, Reachability};

use self::sync_pace::Pace;
use super::acknowledger::Acknowledger;
use super::disk::epochs::{self, Epochs};
use super::disk::files::of_folder;
use super::disk::folder::Folder;
use super::disk::last_file::LastFile;
use super::disk::owner::Owner;
use super::disk::pack::{FormLock, Packer};
use super::monitor::Monitor;
use super::orders::Orders;
use super::plan::{CompleteFiles, MirrorHandles, MirrorOutcome, Plan};
use super::source::Upstream;
use crate::inventory::{Inventory, MirrorPhase, NeededFile};

/// A stream that has come for so long was there: what is lost then is lost anew.
const ATTACHED_MIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);

/// Mirrors the source into the folder: the first one of the list that is the folder's, or that has all that the folder has. It ends when `stop` is set, at the source's end if
/// asked, and with what only a person can decide. `ready` is called once the folder is this process's.
pub fn run(
    upstreams: &[Upstream],
    dir: &Path,
    handles: MirrorHandles<'_>,
    plan: Plan,
    stop: &AtomicBool,
    ready: impl FnOnce() -> Result<(), Failure>,
) -> Result<MirrorOutcome, Failure> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let epochs = Epochs::open(Arc::clone(&fs), dir).map_err(|error| of_folder(&error))?;
    let (folder, last) = Folder::open(Arc::clone(&fs), &epochs.active()).map_err(|error| of_folder(&error))?;
    let acks = handles.acks.acknowledger(&fs, dir, plan.server_id)?;
    ready()?;
    let mut mirror = Mirror {
        upstreams: upstreams.to_vec(),
        first: plan.first.clone(),
        plan,
        stop,
        owner: epochs::owner_of(&*fs, folder.dir())?,
        fs,
        epochs,
        inventory: handles.inventory,
        monitor: handles.monitor,
        orders: handles.orders,
        told: Reachability::new("source"),
        forms: FormLock::default(),
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
        was_reached: false,
        warned_of: None,
        lost_since: None,
        bytes: 0,
        timestamp: 0,
        newest: Vec::new(),
        syncing: Vec::new(),
        pace: Pace::default(),
        looked_at: 0,
        written_needs: BTreeMap::new(),
    };
    if mirror.plan.complete == CompleteFiles::Compressed {
        let packer = Packer::start(Arc::clone(&mirror.fs), mirror.forms.clone());
        mirror.packer = Some(packer.map_err(|error| refused(format!("a thread that compresses: {error}")))?);
    }
    mirror.publish_former()?;
    mirror.publish_all()?;
    mirror.read_needs()?;
    mirror.pack();
    let ended = mirror.run();
    // Nobody is left who could follow.
    mirror.orders.close();
    ended?;
    if let Some(packer) = mirror.packer.take() {
        packer.finish(stop);
    }
    Ok(MirrorOutcome { position: mirror.folder.durable(), files: mirror.folder.names().len(), bytes: mirror.bytes })
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
    forms: FormLock,
    packer: Option<Packer>,
    /// None: nothing is acknowledged.
    acks: Option<Box<dyn Acknowledger + 'a>>,
    folder: Folder,
    /// Of the last file, as it was found on disk.
    last: Option<LastFile>,
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
    /// A source was the mirror's, and had its history: what it answers from then on may pass.
    was_reached: bool,
    /// The address of which it was said that its login depends on a cache.
    warned_of: Option<String>,
    lost_since: Option<Instant>,
    bytes: u64,
    /// Of the last event that came.
    timestamp: u32,
    /// What came since the last sync began.
    newest: Vec<Bytes>,
    /// What it makes durable, while it is under way.
    syncing: Vec<Bytes>,
    pace: Pace,
    /// Bytes that had come when it was last looked whether a sync is due.
    looked_at: u64,
    /// What replicas need, as it was written down last.
    written_needs: BTreeMap<String, NeededFile>,
}

struct Beginning {
    file: String,
    events: Vec<Bytes>,
}

/// Why a connection is not read any further.
enum ConnectionEnd {
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
            self.pauses();
            self.inventory.stand(MirrorPhase::Settled);
            let lost = match ended {
                Ok(ConnectionEnd::Stopped | ConnectionEnd::AtEnd) => return kept,
                Ok(ConnectionEnd::AtSeam | ConnectionEnd::CanAcknowledge) => {
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
                Err(failure) if self.may_pass(&failure) => failure,
                Err(failure) => return Err(for_good(failure)),
            };
            kept?;
            if self.bytes > before || self.attached.is_some_and(|attached| attached.elapsed() > ATTACHED_MIN) {
                self.lost_since = None;
                attempts = 0;
            }
            let why = cause(&lost);
            self.told.lost(&why);
            self.monitor.lost(&why);
            let retry_for = self.upstreams.first().map(|upstream| upstream.retry_for).unwrap_or_default();
            if self.lost_since.get_or_insert_with(Instant::now).elapsed() > retry_for {
                return Err(lost);
            }
            attempts = attempts.saturating_add(1);
            if self.pause(Backoff::SOURCE.before(attempts)) {
                return Ok(());
            }
            self.reread()?;
        }
    }

    /// Whether the source is tried again: it is away, or it answers with something else than its log though it was reached before.
    fn may_pass(&self, failure: &Failure) -> bool {
        match failure.kind {
            FailureKind::ConnectionLost => true,
            FailureKind::Maintenance => self.was_reached,
            _ => false,
        }
    }

    /// What is on disk now.
    fn reread(&mut self) -> Result<(), Failure> {
        self.beginning = None;
        self.newest.clear();
        self.syncing.clear();
        self.last = self.folder.reread().map_err(|error| of_folder(&error))?;
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

/// It is not tried again.
fn for_good(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Maintenance => Failure { kind: FailureKind::Refused, ..failure },
        _ => failure,
    }
}

/// Why the source is waited for; with what to do where it will not pass by itself.
fn cause(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::Maintenance if !failure.remedy.is_empty() => format!("{}; {}", failure.message, failure.remedy),
        _ => failure.message.clone(),
    }
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Refused, message)
}
