//! Signals between the threads of a run, against the stream's direction: how far everything is committed, how far the log is read, what
//! cannot go on. Threads decide by them. Numbers that nobody decides by are in [`super::measures`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apply::standby::SourceContact;
use binlog::LogPosition;
use engine::Seq;
use engine::progress::Mark;
use wire::reach::{Outage, Reachability};

use super::source_log::SourceLog;
use super::source_silence::SourceSilence;

/// A source that sends nothing for so long is not heard: as many heartbeats, and half of one.
const DEAF_AFTER: Duration = Duration::from_millis(2500);

#[derive(Debug)]
pub struct Signals {
    /// As in `state.mark`, for the policy, which reads it for each transaction.
    low_water: AtomicU64,
    /// The relay log is as large as it may be: nothing is received.
    relay_full: AtomicBool,
    /// Nothing more is read from the log until it is resumed.
    paused: Arc<AtomicBool>,
    source: Reachability,
    heard: SourceSilence,
    state: Mutex<State>,
    /// The low water has moved, or nothing more will be committed.
    moved: Condvar,
}

#[derive(Debug, Default)]
struct State {
    mark: Mark,
    /// Every transaction that begins before the position has a number up to this one.
    read_to: Option<(LogPosition, Seq)>,
    given_up: bool,
    /// As it was when it was last asked.
    source_log: Option<SourceLog>,
}

/// All of it at one moment, for a snapshot.
#[derive(Clone, Debug)]
pub struct SignalsSample {
    pub mark: Mark,
    pub read_to: Option<(LogPosition, Seq)>,
    pub source_lost: Option<Outage>,
    pub source_log: Option<SourceLog>,
    pub relay_full: bool,
    pub paused: bool,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            low_water: AtomicU64::default(),
            relay_full: AtomicBool::default(),
            paused: Arc::default(),
            source: Reachability::new("source"),
            heard: SourceSilence::default(),
            state: Mutex::default(),
            moved: Condvar::default(),
        }
    }
}

impl Signals {
    /// Set, the channel is paused. Who holds it may do so from a signal handler.
    pub fn pause_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.paused)
    }

    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything up to the mark is committed.
    pub fn advance(&self, mark: Mark) {
        self.low_water.store(mark.seq, Ordering::Release);
        self.state().mark = mark;
        self.moved.notify_all();
    }

    pub fn low_water(&self) -> Seq {
        self.low_water.load(Ordering::Acquire)
    }

    /// The log is read up to `end`, between two transactions, and the last transaction before it is `seq`.
    pub fn has_read_to(&self, end: LogPosition, seq: Seq) {
        self.state().read_to = Some((end, seq));
    }

    /// Everything before it is committed: the low water, or the place where reading is if no transaction lies between the two.
    pub fn done_with(&self) -> Mark {
        let state = self.state();
        let mut mark = state.mark.clone();
        if let Some((read, seq)) = &state.read_to
            && *seq <= mark.seq
        {
            mark.position = Some(read.clone());
        }
        mark
    }

    /// Waits until everything up to `seq` is committed. False: that will not happen any more.
    pub fn wait_until_committed(&self, seq: Seq) -> bool {
        let mut state = self.state();
        while state.mark.seq < seq && !state.given_up {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.mark.seq >= seq
    }

    /// Nothing more will be committed: threads that wait for the low water give up.
    pub fn give_up(&self) {
        self.state().given_up = true;
        self.moved.notify_all();
    }

    /// The relay log is as large as it may be.
    pub fn relay_has_filled_up(&self) {
        self.relay_full.store(true, Ordering::Relaxed);
    }

    pub fn relay_has_room(&self) {
        self.relay_full.store(false, Ordering::Relaxed);
    }

    pub fn is_relay_full(&self) -> bool {
        self.relay_full.load(Ordering::Relaxed)
    }

    /// The source's log was so large just now.
    pub fn set_source_log(&self, log: SourceLog) {
        self.state().source_log = Some(log);
    }

    /// Whether the source can be reached: who asks it says so here.
    pub fn source(&self) -> &Reachability {
        &self.source
    }

    /// When something came from the source last.
    pub fn heard(&self) -> &SourceSilence {
        &self.heard
    }

    /// Whether the source is heard: it sends a heartbeat when it has nothing else to send.
    pub fn source_contact(&self) -> SourceContact {
        let is_lost = self.source.outage().is_some_and(|outage| outage.time >= DEAF_AFTER);
        if is_lost || self.heard.silence() >= DEAF_AFTER { SourceContact::Lost } else { SourceContact::Reached }
    }

    pub fn seen(&self) -> SignalsSample {
        let state = self.state();
        SignalsSample {
            mark: state.mark.clone(),
            read_to: state.read_to.clone(),
            source_lost: self.source.outage(),
            source_log: state.source_log.clone(),
            relay_full: self.is_relay_full(),
            paused: self.is_paused(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(seq: Seq, position: &str) -> Mark {
        Mark { seq, position: Some(position.parse().expect("a position")), ..Mark::default() }
    }

    #[test]
    fn reading_counts_when_no_transaction_lies_before_it() {
        let signals = Signals::default();
        signals.advance(mark(3, "b.000001:300"));
        signals.has_read_to(LogPosition::new("b.000001", 900), 4);
        assert_eq!(signals.done_with(), mark(3, "b.000001:300"));
        signals.advance(mark(4, "b.000001:400"));
        assert_eq!(signals.done_with(), mark(4, "b.000001:900"));
        assert_eq!(signals.low_water(), 4);
    }

    #[test]
    fn who_waits_for_a_commit_is_let_go_when_none_will_come() {
        let signals = Signals::default();
        std::thread::scope(|scope| {
            let committed = scope.spawn(|| signals.wait_until_committed(1));
            signals.advance(mark(1, "b.000001:100"));
            assert!(committed.join().expect("no panic"));
            let never = scope.spawn(|| signals.wait_until_committed(2));
            signals.give_up();
            assert!(!never.join().expect("no panic"));
        });
        assert!(signals.wait_until_committed(1));
    }
}
