//! `--standby-of`: two mirrors of one source, of which one lets replicas attach. The other one mirrors as well, and lets them attach once the first one is gone.
//!
//! | File | Is |
//! |---|---|
//! | `gate.rs` | whether replicas may attach here |
//! | `watchman.rs` | what follows from what is seen of the other one (pure) |
//! | `peer.rs` | asks the other one |
//!
//! Both may be open at once, after a cut between them: that is no harm, for both have one history. So nothing here fences, and no third one decides.
//!
//! It never touches a log, a file or a replica's stream.

mod gate;
mod peer;
mod watchman;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wire::ConnectOptions;

pub use self::gate::Gate;
use self::peer::{Peer, PeerAnswer};
use self::watchman::{SourceContact, Verdict, Watchman};
use crate::inventory::Inventory;
use crate::mirror::Monitor;

const LOOK: Duration = Duration::from_millis(250);
/// While replicas attach here and the source is heard.
const REST: Duration = Duration::from_millis(500);
/// Of two that begin at the same moment one is the first.
const JITTER_MS: u64 = 1000;

/// What the thread works with.
#[derive(Debug)]
pub struct StandbySettings {
    /// The other mirror.
    pub peer: ConnectOptions,
    /// Opened and closed by it.
    pub gate: Arc<Gate>,
    /// This mirror's connection to the source.
    pub monitor: Arc<Monitor>,
    /// What can be served.
    pub inventory: Arc<Inventory>,
}

/// The thread that looks at the other mirror. It ends when this is dropped.
#[derive(Debug)]
pub struct Standby {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Standby {
    /// Begins to look. Until the other one is known to be gone, replicas do not attach here.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(settings: StandbySettings) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let jitter = Duration::from_millis(rand::random_range(0..JITTER_MS));
        let watchman = Watchman::new(Instant::now(), jitter);
        let run = move || Lookout { peer: Peer::new(&settings.peer), settings, watchman }.run(&ends);
        let thread = thread::Builder::new().name("standby".to_owned()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Lookout {
    peer: Peer,
    settings: StandbySettings,
    watchman: Watchman,
}

impl Lookout {
    fn run(mut self, stop: &AtomicBool) {
        let of = self.settings.peer.address();
        tracing::info!("standby of {of}: replicas attach here once it is gone");
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(self.step(&of));
        }
    }

    /// How long to wait until the next one.
    fn step(&mut self, of: &str) -> Duration {
        let gate = &self.settings.gate;
        let is_heard = self.settings.monitor.hears_source();
        let source = if is_heard { SourceContact::Heard } else { SourceContact::Lost };
        // Nothing is to be learnt from it.
        if gate.is_open() && source == SourceContact::Heard {
            self.watchman.forget(Instant::now());
            self.peer.leave();
            return REST;
        }
        let answer = self.peer.ask();
        let seen = answer.seen();
        if gate.is_open() {
            if self.watchman.is_to_step_back(Instant::now(), seen) {
                tracing::warn!(
                    "the source can not be reached from here, and {of} hears it: replicas are to attach there"
                );
                gate.close();
                self.watchman.forget(Instant::now());
            }
            return REST;
        }
        let obstacle = self.obstacle(&answer);
        let is_past_start = self.settings.inventory.source().is_some();
        if gate.set_obstacle(&obstacle) && !obstacle.is_empty() && is_past_start {
            tracing::warn!("standby of {of}: {obstacle}");
        }
        let verdict = self.watchman.judge(Instant::now(), seen, source);
        let why = match verdict {
            Verdict::Wait => return LOOK,
            Verdict::Gone => "it is gone",
            Verdict::Silent => "it does not answer",
            Verdict::Deaf => "it does not hear the source, and this one does",
        };
        if self.settings.inventory.source().is_none() || self.peer.sends_groups() {
            return LOOK;
        }
        tracing::info!("standby of {of}: {why}: replicas can attach here");
        self.peer.leave();
        gate.open();
        LOOK
    }

    /// What keeps this one from taking over, or what is wrong with how it looks.
    fn obstacle(&self, answer: &PeerAnswer) -> String {
        if self.settings.inventory.source().is_none() {
            return "there is no log here yet that replicas could have".to_owned();
        }
        if self.peer.sends_groups() {
            return "it sends groups (--group), and its replicas can go on only there: replicas will not attach here. Start it without --group"
                .to_owned();
        }
        match answer {
            PeerAnswer::Stranger(why) => why.clone(),
            PeerAnswer::Mirror(mirror) => match self.settings.monitor.state().identity {
                Some(own) if own != mirror.source && !mirror.source.is_empty() => {
                    format!("it has the log of {}, and this one that of {own}", mirror.source)
                }
                _ => String::new(),
            },
            PeerAnswer::Gone | PeerAnswer::Silent => String::new(),
        }
    }
}
