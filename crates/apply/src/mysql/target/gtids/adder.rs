//! Adds to the target's GTIDs those that its transactions stand for and do not log (`session/grouped_gtids.rs`), on a connection and a thread
//! of its own: no worker waits for it, and what several groups leave goes in one statement.
//!
//! It adds only what is committed. After a lost connection it asks the target what is missing: a server that crashed may have lost additions.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use binlog::gtids::GtidSet;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::lock::locked;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::grouped_gtids::{self, AddOutcome};

/// Between two statements: each is a commit of its own on the target.
const EVERY: Duration = Duration::from_millis(20);
/// Between two tries.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// How long the end of a run waits at most.
const COMPLETE_IN: Duration = Duration::from_secs(10);

pub struct GtidAdder {
    channel: Arc<ChannelContext>,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: GtidSet,
    /// The target is to be asked what is missing altogether.
    asks: bool,
    /// A statement is under way.
    is_busy: bool,
    /// Nothing more will come.
    ends: bool,
    /// Why the last try failed.
    failure: Option<Failure>,
}

impl State {
    fn is_complete(&self) -> bool {
        !self.has_work() && !self.is_busy
    }

    fn has_work(&self) -> bool {
        self.asks || !self.waiting.is_empty()
    }
}

impl GtidAdder {
    pub fn new(channel: &Arc<ChannelContext>) -> Self {
        Self { channel: Arc::clone(channel), queue: Arc::default(), thread: Mutex::default() }
    }

    /// A target transaction has committed that stands for these, too.
    pub fn add(&self, gtids: GtidSet) {
        if gtids.is_empty() {
            return;
        }
        locked(&self.queue.state).waiting.add_set(&gtids);
        self.wake();
    }

    fn wake(&self) {
        let mut thread = locked(&self.thread);
        if thread.is_none() {
            let (channel, queue) = (Arc::clone(&self.channel), Arc::clone(&self.queue));
            let begun =
                std::thread::Builder::new().name("heddle-gtids".to_owned()).spawn(move || run(&channel, &queue));
            match begun {
                Ok(begun) => *thread = Some(begun),
                Err(error) => tracing::warn!("no thread for GTIDs, they are added at the end: {error}"),
            }
        }
        self.queue.changed.notify_all();
    }

    /// After the connection was lost: adds all that is missing, before anything else is applied.
    pub fn complete_on(&self, connection: &mut Connection) -> Result<(), Failure> {
        if !self.channel.gtids.are_added() {
            return Ok(());
        }
        match grouped_gtids::add_missing(connection, self.channel.lease.channel()) {
            // Others own some of it now.
            Err(failure) if failure.kind == FailureKind::Conflict => {
                locked(&self.queue.state).asks = true;
                self.wake();
                Ok(())
            }
            done => done.map(|_| ()),
        }
    }

    /// Waits until all is added.
    pub fn complete(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut state = locked(&self.queue.state);
        if state.is_complete() {
            return Ok(());
        }
        state.failure = None;
        while !state.is_complete() {
            let Some(rest) = COMPLETE_IN.checked_sub(begun.elapsed()) else {
                let why = state.failure.as_ref().map_or_else(|| "it takes too long".to_owned(), ToString::to_string);
                return Err(not_added(&state.waiting, &why));
            };
            state = wait(&self.queue.changed, state, rest.min(EVERY));
        }
        Ok(())
    }

    pub fn close(&self) {
        locked(&self.queue.state).ends = true;
        self.queue.changed.notify_all();
        if let Some(thread) = locked(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::warn!("the thread that adds GTIDs has panicked");
        }
    }
}

fn not_added(waiting: &GtidSet, why: &str) -> Failure {
    let message = format!("all is applied, but the target does not say so of the GTIDs {waiting}: {why}");
    Failure::new(FailureKind::Refused, message)
        .remedy("heddle settle adds them to its gtid_purged, and so does the channel's next run")
}

fn wait<'a>(changed: &Condvar, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
    changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
}

fn run(channel: &ChannelContext, queue: &Queue) {
    let mut connection = None;
    loop {
        let mut state = locked(&queue.state);
        while !state.has_work() && !state.ends {
            state = wait(&queue.changed, state, Duration::from_secs(60));
        }
        if !state.has_work() {
            return;
        }
        let set = std::mem::take(&mut state.waiting);
        let asks = std::mem::take(&mut state.asks);
        if asks {
            connection = None;
        }
        state.is_busy = true;
        drop(state);
        let done = add(channel, &mut connection, &set);
        let mut state = locked(&queue.state);
        state.is_busy = false;
        let ends = state.ends;
        let pause = match done {
            Ok(()) => {
                state.failure = None;
                EVERY
            }
            Err(failure) => {
                state.waiting.add_set(&set);
                state.asks |= asks;
                if state.failure.as_ref().is_none_or(|known| known.message != failure.message) {
                    tracing::warn!("GTIDs that are applied are not added to the target's yet: {failure}");
                }
                state.failure = Some(failure);
                connection = None;
                RETRY_AFTER
            }
        };
        drop(state);
        queue.changed.notify_all();
        if ends && pause == RETRY_AFTER {
            return;
        }
        if !ends {
            std::thread::sleep(pause);
        }
    }
}

/// On the connection; a new one asks what is missing altogether.
fn add(channel: &ChannelContext, connection: &mut Option<Connection>, set: &GtidSet) -> Result<(), Failure> {
    let known = match connection {
        Some(known) => known,
        none => {
            let new = none.insert(channel.connector.connect()?);
            return grouped_gtids::add_missing(new, channel.lease.channel()).map(|_| ());
        }
    };
    let text = set.to_string();
    match grouped_gtids::add(known, &text)? {
        AddOutcome::All => Ok(()),
        // Somebody else adds them as well.
        AddOutcome::Nothing(why) => {
            let rest = grouped_gtids::without_executed(known, &text)?;
            if rest.is_empty() {
                return Ok(());
            }
            match grouped_gtids::add(known, &rest)? {
                AddOutcome::All => Ok(()),
                AddOutcome::Nothing(_) => Err(Failure::new(FailureKind::Conflict, why)),
            }
        }
    }
}
