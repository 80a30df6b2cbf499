//! What a transaction has to follow, exactly, and why.
//!
//! The hazard: T1 sets row 7, T2 sets row 8, T3 sets row 7 again. T3 must follow T1, but not T2. A native applier knows only "everything up to a
//! transaction": T3 says T1, and runs beside T2.
//!
//! [`WriteSetPolicy`] finds the predecessors. Memory is bounded: of transactions before the floor nothing is remembered, and everybody follows them.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::options::Options;
use crate::Seq;
use crate::policy::{Policy, Watermark, WriteSetPolicy};
use crate::transaction::{BarrierCause, Transaction};

/// Why a transaction waits for its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It waits for nothing but the beginning of its file.
    FileBegins,
    /// A row of the transaction: its number in the write set.
    Row(u32),
    /// Nothing may run beside it.
    Barrier(BarrierCause),
    /// Nothing may run beside one before it.
    AfterBarrier,
    /// A table that is not surely known: the source's tag counts.
    Unknown,
    /// What is further back is not remembered.
    History,
    /// It runs beside those before it.
    Group,
    /// The transaction before it of the same session.
    Session,
    /// The source's own tag allows more.
    Source,
    /// The numbers have a gap: appliers wait there whatever the tag says.
    Gap,
}

impl Cause {
    /// As in JSON: stable.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FileBegins => "file_begins",
            Self::Row(_) => "key",
            Self::Barrier(cause) => cause.as_str(),
            Self::AfterBarrier => "after_barrier",
            Self::Unknown => "unknown_table",
            Self::History => "history",
            Self::Group => "group",
            Self::Session => "session",
            Self::Source => "source",
            Self::Gap => "gap",
        }
    }
}

/// How often each cause was the one that counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals(std::collections::BTreeMap<&'static str, u64>);

impl Totals {
    pub fn add(&mut self, cause: Cause) {
        *self.0.entry(cause.as_str()).or_default() += 1;
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(cause, count)| (*cause, *count))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitRecord {
    /// The last transaction that has to be committed before; 0: none that is remembered.
    pub parent: Seq,
    pub cause: Cause,
}

/// Whether a write set has all keys of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    Known,
    Unknown,
}

#[derive(Debug)]
pub(super) struct Waits {
    policy: WriteSetPolicy,
    pub keys_max: usize,
    /// Everybody follows this one.
    floor: Seq,
    /// The floor is there for want of memory.
    forgot: bool,
    last_barrier: Seq,
    /// The last transaction of each session, if sessions keep their order.
    sessions: Option<HashMap<u32, Seq, FixedState>>,
    /// How often the floor rose for want of memory.
    pub forgotten: u64,
}

impl Waits {
    pub fn new(options: &Options) -> Self {
        Self {
            policy: WriteSetPolicy::default(),
            keys_max: options.keys_max,
            floor: 0,
            forgot: false,
            last_barrier: 0,
            sessions: options.keep_session_order.then(HashMap::default),
            forgotten: 0,
        }
    }

    /// The transactions so far are in an earlier file: the first of the next one follows them all, and the others follow that one.
    pub fn new_file(&mut self, last: Seq) {
        self.floor = last;
        self.forgot = false;
        self.policy.forget(last);
        if let Some(sessions) = &mut self.sessions {
            sessions.clear();
        }
    }

    pub fn next(&mut self, transaction: &Transaction, keys: Keys) -> WaitRecord {
        let seq = transaction.seq;
        let waited = if keys == Keys::Unknown {
            self.barrier(seq, Cause::Unknown)
        } else if let Some(cause) = transaction.barrier {
            self.barrier(seq, Cause::Barrier(cause))
        } else {
            self.by_keys(transaction)
        };
        let session = transaction.tags.session;
        let before = match &mut self.sessions {
            Some(sessions) if session != 0 => sessions.insert(session, seq).unwrap_or(0),
            _ => 0,
        };
        if before > waited.parent { WaitRecord { parent: before, cause: Cause::Session } } else { waited }
    }

    fn barrier(&mut self, seq: Seq, cause: Cause) -> WaitRecord {
        // Who comes later follows it, so nothing before it needs to be remembered.
        self.policy.forget(seq);
        (self.floor, self.forgot, self.last_barrier) = (seq, false, seq);
        WaitRecord { parent: seq - 1, cause }
    }

    fn by_keys(&mut self, transaction: &Transaction) -> WaitRecord {
        let placement = self.policy.place(transaction);
        let up_to = match placement.after {
            Watermark::None => 0,
            Watermark::Committed(seq) | Watermark::CommitBegun(seq) => seq,
        };
        let single = placement.after_transactions.iter().copied().max().unwrap_or(0);
        let keys = up_to.max(single);
        let waited = if keys > self.floor {
            let row = placement.row_after.iter().position(|&after| after == keys).unwrap_or(0);
            WaitRecord { parent: keys, cause: Cause::Row(row as u32) }
        } else {
            let cause = match () {
                () if self.floor == 0 => Cause::FileBegins,
                () if self.forgot => Cause::History,
                () if self.floor == self.last_barrier => Cause::AfterBarrier,
                () => Cause::FileBegins,
            };
            WaitRecord { parent: self.floor, cause }
        };
        self.bound(transaction.seq);
        waited
    }

    /// Forgets the older half, and all of it when that does not help.
    fn bound(&mut self, seq: Seq) {
        if self.policy.remembered() <= self.keys_max {
            return;
        }
        let half = self.floor.max(seq - (seq - self.floor) / 2);
        self.policy.forget(half);
        self.floor = if self.policy.remembered() > self.keys_max / 4 * 3 {
            self.policy.forget(seq);
            seq
        } else {
            half
        };
        self.forgot = true;
        self.forgotten += 1;
    }
}
