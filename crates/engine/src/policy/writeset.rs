//! Transactions that touch no common key run in parallel.
//!
//! The hazard: T1 sets row 7 to 'a', T2 sets row 7 to 'b'. Run side by side, T2 may come first and 'a' stays.
//! And through a secondary unique key: T1 deletes (id 1, mail 'x'), T2 inserts (id 2, mail 'x'): T2 first is a
//! duplicate. And through a foreign key: T1 inserts parent 5, T2 inserts a child of 5: T2 first has no parent.
//!
//! Every unique key value before and after a change counts as written, every foreign key value as a read of the
//! parent's key. A transaction follows the last writer of each key that it touches, and the readers of each key
//! that it writes. Exact: no history limit but memory, no barrier at rotation (those are limits of MySQL's
//! `binlog_transaction_dependency_tracking`, whose tags have to be computed in the source's commit path).
//! What is not known by key is ordered by table, as a lock on the whole table beside locks on its rows.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

use super::{Packets, Placement, Policy, PolicyDescription, PolicySpec, Requirements, Watermark, XaBranches};
use crate::Seq;
use crate::schema::TableId;
use crate::transaction::{Row, TableAccess, Transaction, WriteSet};

pub(super) static SPEC: PolicySpec = PolicySpec {
    name: "writeset",
    about: PolicyDescription {
        summary: "Common keys keep their order",
        needs: "row format; keys of the tables (read from the target)",
        guarantees: "transactions that touch a common key keep their order, row by row; nothing else waits",
        blocked_by: "hot rows; tables without a unique key, keys of collations not handled yet (ordered by table)",
    },
    requires: Requirements { packets: Packets::Shared, xa_branches: XaBranches::Deferred, ..Requirements::NONE },
    make: |_| Box::<WriteSetPolicy>::default(),
};

/// Last uses of one key. Readers are kept as their maximum: a writer waits for the low water to reach it.
#[derive(Clone, Copy, Debug, Default)]
struct KeyUse {
    written: Seq,
    read: Seq,
    /// The last reader before `read`: counts when `read` is the writer itself.
    read_before: Seq,
}

impl KeyUse {
    fn record_read(&mut self, own: Seq) {
        if self.read != own {
            self.read_before = self.read;
            self.read = own;
        }
    }

    fn last_reader_but(&self, own: Seq) -> Seq {
        if self.read == own { self.read_before } else { self.read }
    }
}

/// Last uses of a table as a whole and by key.
#[derive(Clone, Copy, Debug, Default)]
struct TableUses {
    written_all: Seq,
    read_all: Seq,
    /// Last transaction that touched any key of it, or all of it.
    touched: Seq,
    /// Last transaction that wrote any key of it, or all of it.
    written_any: Seq,
}

#[derive(Debug)]
pub struct WriteSetPolicy {
    keys: HashMap<u64, KeyUse, FixedState>,
    tables: HashMap<TableId, TableUses, FixedState>,
    last_barrier: Seq,
    low_water: Seq,
    /// Forget what the low water has passed once there are this many keys.
    sweep_at: usize,
}

/// Below this many keys a sweep is not worth its time.
const SWEEP_KEYS_MIN: usize = 1 << 16;

impl Default for WriteSetPolicy {
    fn default() -> Self {
        Self {
            keys: HashMap::default(),
            tables: HashMap::default(),
            last_barrier: 0,
            low_water: 0,
            sweep_at: SWEEP_KEYS_MIN,
        }
    }
}

/// What one transaction has to follow, gathered key by key.
struct Gathered {
    placement: Placement,
    readers: Seq,
    own: Seq,
    low_water: Seq,
    /// Repeated predecessors are taken out once there are this many.
    tidy_at: usize,
}

/// With more predecessors than these, only the last is compared before one is added.
const PREDECESSORS_FEW: usize = 16;

impl Gathered {
    /// Adds a predecessor; returns it when it counts (not the transaction itself, not yet committed for sure).
    fn follow(&mut self, seq: Seq) -> Seq {
        if seq == self.own || seq <= self.low_water {
            return 0;
        }
        let after = &mut self.placement.after_transactions;
        let is_known = match after.len() {
            ..PREDECESSORS_FEW => after.contains(&seq),
            _ => after.last() == Some(&seq),
        };
        if !is_known {
            after.push(seq);
            if after.len() >= self.tidy_at {
                after.sort_unstable();
                after.dedup();
                self.tidy_at = (2 * after.len()).max(4 * PREDECESSORS_FEW);
            }
        }
        seq
    }

    /// Adds readers up to `seq`, of which only the last is known.
    fn follow_readers(&mut self, seq: Seq) -> Seq {
        if seq == self.own || seq <= self.low_water {
            return 0;
        }
        self.readers = self.readers.max(seq);
        seq
    }
}

impl WriteSetPolicy {
    /// Up to where everything is known to be committed.
    pub(super) fn known_low_water(&self) -> Seq {
        self.low_water
    }

    /// Keys that are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.keys.len()
    }

    /// As if everything up to `seq` were committed; what is remembered of it goes at once.
    pub(crate) fn forget(&mut self, seq: Seq) {
        self.low_water = self.low_water.max(seq);
        self.sweep();
    }

    fn place_rows(&mut self, transaction: &Transaction) -> Placement {
        let set = &transaction.write_set;
        let mut gathered = Gathered {
            placement: Placement::default(),
            readers: 0,
            own: transaction.seq,
            low_water: self.low_water,
            tidy_at: 4 * PREDECESSORS_FEW,
        };
        let table_after = self.follow_tables(set, &mut gathered);
        let mut row_after = SmallVec::with_capacity(set.rows.len());
        for row in &set.rows {
            let by_key = self.follow_keys(set, row, &mut gathered);
            row_after.push(by_key.max(table_after));
        }
        let Gathered { mut placement, readers, .. } = gathered;
        // Readers are many and only their maximum is kept: wait for all before it. Later readers than the last
        // writer are what makes it exceed the writers, so nothing is lost in preserved order.
        placement.after = match readers.max(self.last_barrier) {
            0 => Watermark::None,
            seq if seq <= self.low_water => Watermark::None,
            seq => Watermark::Committed(seq),
        };
        placement.row_after = row_after;
        placement
    }

    /// Table level first: what by-key uses owe to whole-table uses, and the other way round.
    fn follow_tables(&mut self, set: &WriteSet, gathered: &mut Gathered) -> Seq {
        let own = gathered.own;
        let mut last = 0;
        for table_use in &set.tables {
            let uses = self.tables.entry(table_use.table).or_default();
            let seq = match table_use.access {
                TableAccess::Keys => gathered.follow(uses.written_all).max(gathered.follow_readers(uses.read_all)),
                TableAccess::ReadAll => gathered.follow_readers(uses.written_any),
                TableAccess::WriteAll => gathered.follow_readers(uses.touched),
            };
            last = last.max(seq);
        }
        // Recorded only now: one transaction may use a table in several ways, and must not take itself for
        // the predecessor that it hides.
        for table_use in &set.tables {
            let uses = self.tables.entry(table_use.table).or_default();
            uses.touched = own;
            match table_use.access {
                TableAccess::Keys => uses.written_any = own,
                TableAccess::ReadAll => uses.read_all = own,
                TableAccess::WriteAll => {
                    uses.written_all = own;
                    uses.written_any = own;
                }
            }
        }
        last
    }

    fn follow_keys(&mut self, set: &WriteSet, row: &Row, gathered: &mut Gathered) -> Seq {
        let own = gathered.own;
        let mut last = 0;
        let mut seen = 0;
        for &hash in set.unique_hashes(row) {
            // Of most updates a key is the same before and after.
            if hash == 0 || hash == seen {
                continue;
            }
            seen = hash;
            match self.keys.entry(hash) {
                Entry::Vacant(vacant) => {
                    vacant.insert(KeyUse { written: own, ..KeyUse::default() });
                }
                Entry::Occupied(mut occupied) => {
                    let key = occupied.get_mut();
                    let reader = key.last_reader_but(own);
                    last = last.max(gathered.follow(key.written)).max(gathered.follow_readers(reader));
                    *key = KeyUse { written: own, ..KeyUse::default() };
                }
            }
        }
        for &hash in set.reference_hashes(row) {
            if hash == 0 {
                continue;
            }
            let key = self.keys.entry(hash).or_default();
            last = last.max(gathered.follow(key.written));
            key.record_read(own);
        }
        last
    }

    fn sweep(&mut self) {
        let low_water = self.low_water;
        self.keys.retain(|_, key| key.written > low_water || key.read > low_water);
        self.tables.retain(|_, uses| uses.touched > low_water);
        self.sweep_at = (self.keys.len() * 2).max(SWEEP_KEYS_MIN);
    }
}

impl Policy for WriteSetPolicy {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        if let Some(barrier) = Placement::barrier(transaction) {
            self.last_barrier = transaction.seq;
            return barrier;
        }
        self.place_rows(transaction)
    }

    fn low_water(&mut self, seq: Seq) {
        self.low_water = seq;
        if self.keys.len() >= self.sweep_at {
            self.sweep();
        }
    }
}
