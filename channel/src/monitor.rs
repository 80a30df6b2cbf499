//! What the caller of a run holds to see where the channel is, while it runs and afterwards. One for each run.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use binlog::LogPosition;
use engine::Seq;
use relay::RelayShared;

use crate::flow::budget::Budget;
use crate::flow::measures::Measures;
use crate::flow::signals::Signals;
use crate::snapshot::{Memory, Read, Received, Snapshot, TargetTrouble, Workers};

#[derive(Debug, Default)]
pub struct Monitor {
    signals: Arc<Signals>,
    measures: Arc<Measures>,
    relay: OnceLock<RelayShared>,
    budget: OnceLock<Arc<Budget>>,
}

impl Monitor {
    pub fn snapshot(&self) -> Snapshot {
        let seen = self.signals.seen();
        let measured = self.measures.measured();
        let (each, totals) = measured.workers;
        let behind = |position: Option<&LogPosition>| self.relay.get().and_then(|relay| relay.bytes_behind(position?));
        let unread_bytes = behind(seen.read_to.as_ref().map(|(position, _)| position));
        let has_all = seen.read_to.as_ref().is_some_and(|(_, seq)| *seq <= seen.mark.seq);
        let uncommitted_bytes = if has_all { unread_bytes } else { behind(seen.mark.position.as_ref()) };
        let (position, seq) = seen.read_to.map_or((None, 0), |(position, seq)| (Some(position), seq));
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Snapshot {
            taken: Instant::now(),
            clock_us: u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX),
            received: self.relay.get().map(|relay| Received {
                amount: measured.relay.received,
                on_disk: measured.relay.durable,
                unread_bytes,
                uncommitted_bytes,
                durable: relay.durable(),
                relay_bytes: relay.bytes_used(),
                relay_full: seen.relay_full,
                source_lost: seen.source_lost,
                syncs: measured.relay.syncs.clone(),
            }),
            read: Read {
                bytes: measured.read_bytes,
                position,
                seq,
                commit_time_us: measured.read_time_us,
                tags: measured.source.tags,
                placed: measured.source.placed,
            },
            paused: seen.paused,
            scheduled: measured.scheduled,
            committed: seen.mark,
            memory: self.budget.get().map_or_else(Memory::default, |budget| Memory {
                used_bytes: budget.used(),
                max_bytes: budget.max(),
                full: measured.memory_full,
            }),
            target: TargetTrouble {
                retried: measured.retried,
                lost: apply::retry::target_lost_for(),
                holders: measured.holders,
            },
            workers: Workers { each, totals, waits: measured.waits },
        }
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

    /// A run that is given a monitor for the second time shows the first one's relay log and memory.
    pub(crate) fn watch_relay(&self, relay: RelayShared) {
        let _ = self.relay.set(relay);
    }

    pub(crate) fn watch_budget(&self, budget: Arc<Budget>) {
        let _ = self.budget.set(budget);
    }
}
