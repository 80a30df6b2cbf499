//! What the caller of a run holds to see where the channel is, while it runs and afterwards. One for each run.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use engine::Seq;
use engine::quality::{BacklogHistory, BacklogSample, Forecast};
use relay::RelayHandle;

use crate::flow::measures::{Measures, RelaySample};
use crate::flow::memory::budget::Budget;
use crate::flow::read_counts::{ReadSample, SEGMENT_HEAD_MAX};
use crate::flow::signals::{Signals, SignalsSample};
use crate::snapshot::{FeederState, Memory, ReceiverState, Snapshot, StandbyState, TargetTrouble, Trouble, Workers};

#[derive(Debug, Default)]
pub struct Monitor {
    signals: Arc<Signals>,
    measures: Arc<Measures>,
    /// Another one when the receiver of a standby begins anew.
    relay: Mutex<Option<RelayHandle>>,
    budget: OnceLock<Arc<Budget>>,
    standby: Mutex<Option<StandbyState>>,
    began: OnceLock<Instant>,
    /// Of the snapshots that were taken.
    backlog: Mutex<BacklogHistory>,
}

impl Monitor {
    pub fn snapshot(&self) -> Snapshot {
        let seen = self.signals.seen();
        let measured = self.measures.measured(seen.mark.seq);
        let (each, totals) = measured.workers;
        let read = measured.read;
        let relay = self.relay.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let received = relay.map(|relay| received(&relay, &measured.relay, &seen, &read));
        let (position, seq) = seen.read_to.map_or((None, 0), |(position, seq)| (Some(position), seq));
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut snapshot = Snapshot {
            taken: Instant::now(),
            clock_us: u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX),
            received,
            read: FeederState {
                bytes: read.bytes,
                position,
                seq,
                last_seq: read.seq,
                transactions: read.transactions,
                commit_time_us: read.commit_time_us,
                oldest_us: read.oldest_us,
                unsafe_transactions: measured.source.unsafe_transactions,
                tags: measured.source.tags,
                placed: measured.source.placed,
            },
            scheduled: measured.scheduled,
            committed: seen.mark,
            forecast: Forecast::Unknown,
            memory: self.budget.get().map_or_else(Memory::default, |budget| Memory {
                used_bytes: budget.used(),
                max_bytes: budget.max(),
                full: measured.memory_full,
            }),
            trouble: Trouble {
                source_lost: seen.source_lost,
                paused: seen.paused,
                standby: self.standby.lock().unwrap_or_else(PoisonError::into_inner).clone(),
                target: TargetTrouble {
                    retried: measured.retried,
                    lost: apply::retry::target_outage(),
                    holders: measured.holders,
                },
            },
            workers: Workers { each, totals, waits: measured.waits },
        };
        snapshot.forecast = self.forecast(&snapshot);
        snapshot
    }

    /// From this moment's backlog and those before.
    fn forecast(&self, now: &Snapshot) -> Forecast {
        let began = *self.began.get_or_init(|| now.taken);
        let mut history = self.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        history.add(BacklogSample {
            at_s: now.taken.saturating_duration_since(began).as_secs_f64(),
            transactions: now.left_transactions(),
            bytes: now.left_bytes(),
            applied: now.scheduled.counters.transactions,
        });
        history.forecast()
    }

    /// Set, nothing more is read from the log, and so nothing applied after what is under way; the source's log is received all the same.
    pub fn pause_flag(&self) -> Arc<AtomicBool> {
        self.signals.pause_flag()
    }

    /// The last transaction before which everything is committed; cheaper than a snapshot.
    pub fn low_water(&self) -> Seq {
        self.signals.low_water()
    }

    pub(crate) fn signals(&self) -> &Arc<Signals> {
        &self.signals
    }

    pub(crate) fn measures(&self) -> &Arc<Measures> {
        &self.measures
    }

    /// A run that is given a monitor for the second time shows the first one's memory.
    pub(crate) fn watch_relay(&self, relay: RelayHandle) {
        *self.relay.lock().unwrap_or_else(PoisonError::into_inner) = Some(relay);
    }

    /// This process waits for its channel; `None`: it has it.
    pub(crate) fn show_standby(&self, state: Option<StandbyState>) {
        *self.standby.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    pub(crate) fn watch_budget(&self, budget: Arc<Budget>) {
        let _ = self.budget.set(budget);
    }
}

fn received(relay: &RelayHandle, measured: &RelaySample, seen: &SignalsSample, read: &ReadSample) -> ReceiverState {
    let unread_bytes = match read.at {
        Some(at) => Some(relay.bytes_after(at)),
        // Nothing was read yet.
        None => seen.mark.position.as_ref().map_or(Some(relay.bytes_used()), |position| relay.bytes_behind(position)),
    };
    let came = measured.received.transactions;
    let durable = relay.durable();
    // A stream that goes on by GTID begins with the head of a file: that is before what is applied.
    let end = durable.as_ref().max(seen.mark.position.as_ref());
    let unread = |bytes| read.unread_transactions(came, bytes, relay.bytes_after(read.began_at));
    ReceiverState {
        amount: measured.received,
        on_disk: measured.durable,
        unread_bytes: unread_bytes.map(|bytes| if bytes <= SEGMENT_HEAD_MAX { 0 } else { bytes }),
        unread_transactions: unread_bytes.and_then(unread),
        unreceived_bytes: seen.source_log.as_ref().zip(end).and_then(|(log, at)| log.bytes_after(at)),
        durable,
        relay_bytes: relay.bytes_used(),
        relay_full: seen.relay_full,
        syncs: measured.syncs.clone(),
    }
}
