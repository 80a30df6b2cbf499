//! The tracker of a MySQL server as a state machine: transactions in commit order in, tags out.
//!
//! Numbers that go in and come out as [`Seq`] are the caller's, contiguous over rotations; the tags count from the
//! last rotation, as in a log.

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use super::{DependencyTracking, Rules, Subject};
use crate::Seq;

/// Why a transaction's rows do not count, or no longer do afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fallback {
    /// A DDL, a statement, an XA COMMIT: the set is empty although there is something.
    NoWriteSet,
    /// CREATE TABLE … SELECT.
    CreateSelect,
    /// Not in row format.
    Statement,
    /// A table without a key: its tags are those of the commit order, the history stays.
    MissingKeys,
    /// A table that foreign keys refer to.
    Referenced,
    /// More hashes than the history may hold.
    LargeSet,
    /// The history is full: it was used once more, and is empty now.
    HistoryFull,
    /// Keys that are not known here (a server would know them).
    UnknownKeys,
}

impl Fallback {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoWriteSet => "no write set",
            Self::CreateSelect => "create table select",
            Self::Statement => "statement format",
            Self::MissingKeys => "table without a primary key",
            Self::Referenced => "table that foreign keys refer to",
            Self::LargeSet => "write set larger than the history",
            Self::HistoryFull => "history full",
            Self::UnknownKeys => "keys not known here",
        }
    }
}

/// The tags of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionTags {
    /// As in a GTID event: counted from the last rotation, 0 when the parent is in an earlier log.
    pub last_committed: i64,
    pub sequence_number: i64,
    /// The same as `last_committed`, in the caller's numbers.
    pub parent: Seq,
    pub fallback: Option<Fallback>,
}

/// Sessions that are remembered for `WRITESET_SESSION`; a server forgets one when it ends, a log does not say when.
const SESSIONS_MAX: usize = 100_000;

#[derive(Debug)]
pub struct Tracker {
    rules: Rules,
    /// Number of the last transaction.
    last: Seq,
    /// The last one before the current log.
    offset: Seq,
    last_blocking: Seq,
    history: HashMap<u64, Seq, FixedState>,
    /// Number in the log of what is taken for the last change of a row that is not in the history.
    history_start: Seq,
    /// Number in its log of the last transaction of each session. Kept over rotations, as the servers do.
    sessions: HashMap<u32, Seq, FixedState>,
    /// What each session has prepared by XA and not completed.
    prepared: HashMap<u32, Prepared, FixedState>,
}

/// The write set of an XA PREPARE.
#[derive(Debug)]
struct Prepared {
    hashes: Vec<u64>,
    missing_keys: bool,
    referenced: bool,
}

impl Tracker {
    /// As a server that has just started; the next transaction has the number `first`.
    pub fn new(rules: Rules, first: Seq) -> Self {
        let last = first.saturating_sub(1);
        Self {
            rules,
            last,
            offset: last,
            last_blocking: 0,
            history: HashMap::default(),
            history_start: 0,
            sessions: HashMap::default(),
            prepared: HashMap::default(),
        }
    }

    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Hashes in the history.
    pub fn remembered(&self) -> usize {
        self.history.len()
    }

    /// A new log begins with the next transaction.
    pub fn rotate(&mut self) {
        self.offset = self.last;
        // The servers say 1 although 0 would do: everything follows the log's first transaction.
        self.forget(1);
    }

    fn forget(&mut self, start: Seq) {
        self.history.clear();
        self.history_start = start;
    }

    /// The next transaction. `commit_parent`: the last that had committed when this one was prepared (or the one right before it,
    /// if all commit one after the other), in the caller's numbers.
    pub fn next(&mut self, commit_parent: Seq, subject: &Subject<'_>) -> TransactionTags {
        assert!(commit_parent <= self.last, "{commit_parent} is no parent of {}", self.last + 1);
        self.last += 1;
        let sequence = self.last - self.offset;
        let mut parent = 0;
        if commit_parent > self.offset {
            parent = commit_parent.max(self.last_blocking) - self.offset;
        }
        if subject.blocking && self.rules.generation.has_blocking_statements() {
            self.last_blocking = self.last;
        }
        let mut fallback = None;
        if self.rules.tracking != DependencyTracking::CommitOrder {
            let prepared = self.prepared(subject);
            let again = prepared.as_ref().map(|set| Subject {
                hashes: &set.hashes,
                missing_keys: set.missing_keys,
                referenced: set.referenced,
                ..*subject
            });
            (parent, fallback) = self.by_write_set(sequence, parent, again.as_ref().unwrap_or(subject));
        }
        if self.rules.tracking == DependencyTracking::WritesetSession && subject.session != 0 {
            parent = parent.max(self.by_session(sequence, subject.session));
        }
        TransactionTags {
            last_committed: parent as i64,
            sequence_number: sequence as i64,
            parent: self.offset + parent,
            fallback,
        }
    }

    /// The set that an XA COMMIT still has from the PREPARE of its session.
    fn prepared(&mut self, subject: &Subject<'_>) -> Option<Prepared> {
        if !self.rules.generation.keeps_prepared_sets() || subject.session == 0 {
            return None;
        }
        if subject.completes && subject.hashes.is_empty() {
            return self.prepared.remove(&subject.session);
        }
        if subject.prepares && self.prepared.len() < SESSIONS_MAX {
            let (missing_keys, referenced) = (subject.missing_keys, subject.referenced);
            let set = Prepared { hashes: subject.hashes.to_vec(), missing_keys, referenced };
            self.prepared.insert(subject.session, set);
        }
        None
    }

    fn by_write_set(&mut self, sequence: Seq, by_order: Seq, subject: &Subject<'_>) -> (Seq, Option<Fallback>) {
        if let Some(cause) = self.unusable(subject) {
            self.forget(sequence);
            return (by_order, Some(cause));
        }
        let full = self.history.len() + self.size(subject.hashes) > self.rules.history_max;
        let mut last = self.history_start;
        for &hash in subject.hashes {
            match self.history.get_mut(&hash) {
                Some(seen) => {
                    if *seen < sequence {
                        last = last.max(*seen);
                    }
                    *seen = sequence;
                }
                None if full => {}
                None => {
                    self.history.insert(hash, sequence);
                }
            }
        }
        if full {
            self.forget(sequence);
        }
        match (subject.missing_keys, full) {
            (true, _) => (by_order, Some(Fallback::MissingKeys)),
            (false, true) => (last.min(by_order), Some(Fallback::HistoryFull)),
            (false, false) => (last.min(by_order), None),
        }
    }

    fn size(&self, hashes: &[u64]) -> usize {
        if self.rules.generation.counts_repeated() {
            hashes.len()
        } else {
            hashes.iter().collect::<HashSet<_, FixedState>>().len()
        }
    }

    fn unusable(&self, subject: &Subject<'_>) -> Option<Fallback> {
        let generation = self.rules.generation;
        if subject.unknown {
            return Some(Fallback::UnknownKeys);
        }
        if subject.create_select && generation.wants_rows_only() {
            return Some(Fallback::CreateSelect);
        }
        if subject.statement && generation.wants_rows_only() {
            return Some(Fallback::Statement);
        }
        if subject.referenced {
            return Some(Fallback::Referenced);
        }
        if generation.drops_large_sets() && subject.hashes.len() > self.rules.history_max {
            return Some(Fallback::LargeSet);
        }
        let has_set = !subject.hashes.is_empty() || subject.missing_keys || subject.empty;
        (!has_set).then_some(Fallback::NoWriteSet)
    }

    fn by_session(&mut self, sequence: Seq, session: u32) -> Seq {
        if self.sessions.len() >= SESSIONS_MAX {
            let newest = sequence.saturating_sub(SESSIONS_MAX as Seq / 2);
            self.sessions.retain(|_, last| *last > newest && *last < sequence);
        }
        match self.sessions.insert(session, sequence) {
            Some(before) if before < sequence => before,
            _ => 0,
        }
    }
}
