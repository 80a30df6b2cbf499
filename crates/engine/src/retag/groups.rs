//! MariaDB: which neighbours of a domain may share a commit id, and which of them wait for a row.
//!
//! Facts of MariaDB's applier (`rpl_parallel.cc`): transactions of a domain that follow each other and have the same commit id run side by side; the next id
//! begins when all before it have begun to commit. In modes `optimistic` and `aggressive` others run side by side as well and are rolled back when they
//! conflict; `optimistic` begins one with `FL_WAITED` only when all before it are committed. A DDL that shares an id runs beside others.
//!
//! The hazard: T1 sets row 7, T2 sets row 8, T3 sets row 7. T1 and T2 make a group; T3 begins the next one.
//!
//! A group is the longest stretch in which each pair is free of conflicts, by its keys or since the source had it in one group. So there are never more
//! groups than the source has.

use std::collections::HashMap;

use binlog::{LogPosition, MariaDbGtid};

use super::options::Options;
use super::tag::{Marks, Tag};
use super::waits::{Cause, Keys, Waits};
use crate::Seq;
use crate::transaction::Transaction;

/// Domains with a state of their own; what is beyond them shares one, which allows less.
const DOMAINS_MAX: usize = 64;
/// A conflict that is further back than this is left to the replica: the later transaction waits there for the row, which costs less than a wait for all before it. Only
/// neighbours come to the row at the same time. Measured: bench/results/benchmarks.md.
const NEAR: Seq = 2;
/// Bits of an id for the place in the file; those above are of the file's number.
const OFFSET_BITS: u32 = 40;
const FILE_BITS: u32 = 22;
/// Flags of which one is enough to run alone.
const ALONE: u8 =
    MariaDbGtid::FL_STANDALONE | MariaDbGtid::FL_DDL | MariaDbGtid::FL_PREPARED_XA | MariaDbGtid::FL_COMPLETED_XA;

#[derive(Debug)]
pub(super) struct CommitGroups {
    options: Options,
    /// By domain; `None`: of those beyond [`DOMAINS_MAX`].
    domains: HashMap<Option<u32>, Domain>,
}

#[derive(Debug)]
struct Domain {
    waits: Waits,
    seq: Seq,
    group: Option<Group>,
    /// The source's id of the transaction before.
    source_before: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    first: Seq,
    id: u64,
    /// What all of them have at the source.
    source: Option<u64>,
}

impl CommitGroups {
    pub fn new(options: Options) -> Self {
        Self { options, domains: HashMap::new() }
    }

    /// How often keys were forgotten for want of memory.
    pub fn forgotten(&self) -> u64 {
        self.domains.values().map(|domain| domain.waits.forgotten).sum()
    }

    /// Groups end with their file.
    pub fn new_file(&mut self) {
        for domain in self.domains.values_mut() {
            domain.waits.new_file(domain.seq);
            domain.group = None;
            domain.source_before = None;
        }
    }

    /// The next transaction of the log, numbered anew in its domain. `at`: where its GTID event stands.
    pub fn next(&mut self, transaction: &mut Transaction, keys: Keys, at: &LogPosition) -> (Tag, Cause) {
        let tags = transaction.tags;
        let has = |flag: u8| tags.flags & flag != 0;
        let is_marked = !has(MariaDbGtid::FL_TRANSACTIONAL) || tags.flags & ALONE != 0;
        let is_alone = transaction.barrier.is_some() || is_marked;
        let is_doubtful = is_marked || !has(MariaDbGtid::FL_ALLOW_PARALLEL);
        let keys = if transaction.barrier.is_none() && is_doubtful { Keys::Unknown } else { keys };
        self.domain(tags.domain).next(transaction, keys, is_alone, at)
    }

    fn domain(&mut self, number: u32) -> &mut Domain {
        let own = Some(number);
        let is_own = self.domains.contains_key(&own) || self.domains.len() < DOMAINS_MAX;
        let share = (self.options.keys_max / self.domains.len().max(1)).max(1);
        let domain = self.domains.entry(own.filter(|_| is_own)).or_insert_with(|| Domain {
            waits: Waits::new(&self.options),
            seq: 0,
            group: None,
            source_before: None,
        });
        domain.waits.keys_max = share;
        domain
    }
}

impl Domain {
    fn next(&mut self, transaction: &mut Transaction, keys: Keys, is_alone: bool, at: &LogPosition) -> (Tag, Cause) {
        self.seq += 1;
        transaction.seq = self.seq;
        let tags = transaction.tags;
        let waited = self.waits.next(transaction, keys);
        let with_source = tags.commit_id.is_some() && tags.commit_id == self.source_before;
        let source =
            Marks { commit_id: tags.commit_id, waited: tags.flags & MariaDbGtid::FL_WAITED != 0, begins: !with_source };
        self.source_before = tags.commit_id;
        if is_alone {
            self.group = None;
            // One that shares the source's id keeps it from others.
            let new = Marks { commit_id: tags.commit_id.map(|_| id(at)), begins: true, ..source };
            return (Tag::CommitGroup { source, new }, waited.cause);
        }
        let joins =
            self.group.filter(|group| waited.parent < group.first || (with_source && group.source == tags.commit_id));
        let group = match joins {
            Some(group) => Group { source: group.source.filter(|_| with_source), ..group },
            None => Group { first: self.seq, id: id(at), source: tags.commit_id },
        };
        self.group = Some(group);
        let near = matches!(waited.cause, Cause::Row(_)) && self.seq - waited.parent <= NEAR;
        let new = Marks {
            commit_id: Some(group.id),
            waited: if keys == Keys::Known { near } else { source.waited },
            begins: joins.is_none(),
        };
        let cause = if joins.is_some() { Cause::Group } else { waited.cause };
        (Tag::CommitGroup { source, new }, cause)
    }
}

/// Another one for each place of a log, above what servers count up to, below 2^62.
fn id(at: &LogPosition) -> u64 {
    let low = |value: u64, bits: u32| value & ((1 << bits) - 1);
    low(at.file_number().unwrap_or(0), FILE_BITS) << OFFSET_BITS | low(at.offset, OFFSET_BITS)
}
