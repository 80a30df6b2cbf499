//! Everything runs at once, and what collides is rolled back and run again (MariaDB's `optimistic` and `aggressive`).
//!
//! The hazard: T2 changes row 7 before T1 has. T2 may not commit before T1 does, and until then it holds the lock on row 7;
//! T1 runs into that lock, T2 is rolled back and runs again when all before it have committed.
//!
//! ```text
//! T1 ────────?7──────c         ? waits for the row's lock
//! T2 ──7·────x        ──7·c    x rolled back, · done, waits for its turn
//! T3 ──9·              ···c
//! ```
//!
//! Why no collision goes unseen. What a rows event does to a row is given by the event; T1 and T2 only depend on each other
//! if they need the same row, the same unique value, or a parent and its child. If T2 came too early, then either T2 found
//! the row missing or the value taken, which is an error while anything before it is open, and it runs again as the first; or
//! it holds a lock that T1 needs, and T1 waits for it; T2 gives way in the end, never T1. For this commits must be in
//! the source's order and the target must lock rows: with `--commit-order relaxed` or the embedded store it is refused.
//!
//! What locks might not tell is not run at risk: tables whose rows are not found by a key, children that a cascade
//! reaches, parents whose key is not known are ordered by table; tables that cannot be rolled back and all DDL are barriers.
//! `optimistic` also believes the source: a transaction that waited for a lock there, or ran with
//! `skip_parallel_replication`, waits for all before it. `aggressive` does not.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use binlog::MariaDbGtid;

use super::commit_order::CommitOrder;
use super::{Conflicts, Placement, Policy, PolicyDescription, PolicySpec, Requirements, TargetLocks, Watermark};
use crate::Seq;
use crate::schema::TableId;
use crate::transaction::{TableAccess, Transaction};
use binlog::gtids::Gtid;

pub(super) static OPTIMISTIC: PolicySpec = PolicySpec {
    name: "optimistic",
    about: PolicyDescription {
        summary: "All at once, conflicts are rolled back (MariaDB)",
        needs: "a target that locks rows; --commit-order preserve",
        guarantees: "a transaction that came too early is rolled back and runs again in its turn",
        blocked_by: "conflicts, each of which costs a rollback; transactions that waited for a lock on a MariaDB source",
    },
    requires: SPECULATES,
    make: |_| Box::<OptimisticPolicy>::default(),
};

pub(super) static AGGRESSIVE: PolicySpec = PolicySpec {
    name: "aggressive",
    about: PolicyDescription {
        summary: "The same, without believing the source's hints (MariaDB)",
        needs: "a target that locks rows; --commit-order preserve",
        guarantees: "as optimistic, also for transactions that waited for a lock on the source",
        blocked_by: "conflicts, each of which costs a rollback",
    },
    requires: SPECULATES,
    make: |_| Box::new(OptimisticPolicy::aggressive()),
};

const SPECULATES: Requirements = Requirements {
    orders: &[CommitOrder::Preserve],
    target: TargetLocks::Rows,
    conflicts: Conflicts::RolledBack,
    ..Requirements::NONE
};

#[derive(Debug, Default)]
pub struct OptimisticPolicy {
    aggressive: bool,
    tables: HashMap<TableId, Uses, FixedState>,
    low_water: Seq,
}

/// Last uses of a table.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    /// Of all of it.
    whole: Seq,
    any: Seq,
}

impl OptimisticPolicy {
    /// Does not believe what the source says of conflicts.
    pub fn aggressive() -> Self {
        Self { aggressive: true, ..Self::default() }
    }

    /// The last transaction that it meets by table.
    fn follow_tables(&mut self, transaction: &Transaction) -> Seq {
        let set = &transaction.write_set;
        let mut last = 0;
        for table_use in &set.tables {
            let uses = self.tables.get(&table_use.table).copied().unwrap_or_default();
            last = last.max(match table_use.access {
                TableAccess::Keys => uses.whole,
                TableAccess::ReadAll | TableAccess::WriteAll => uses.any,
            });
        }
        for table_use in &set.tables {
            let uses = self.tables.entry(table_use.table).or_default();
            uses.any = transaction.seq;
            if table_use.access != TableAccess::Keys {
                uses.whole = transaction.seq;
            }
        }
        last
    }

    /// The source's own experience of it.
    fn is_doubtful(&self, transaction: &Transaction) -> bool {
        let flags = transaction.tags.flags;
        // MySQL says nothing of the kind.
        if !matches!(transaction.gtid, Some(Gtid::MariaDb { .. })) {
            return false;
        }
        let allowed = flags & MariaDbGtid::FL_ALLOW_PARALLEL != 0 && flags & MariaDbGtid::FL_WAITED == 0;
        flags & MariaDbGtid::FL_TRANSACTIONAL == 0 || (!allowed && !self.aggressive)
    }
}

impl Policy for OptimisticPolicy {
    fn name(&self) -> &'static str {
        if self.aggressive { AGGRESSIVE.name } else { OPTIMISTIC.name }
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        if let Some(barrier) = Placement::barrier(transaction) {
            return barrier;
        }
        let mut after = self.follow_tables(transaction);
        if self.is_doubtful(transaction) {
            after = transaction.seq - 1;
        }
        let after = if after > self.low_water { Watermark::Committed(after) } else { Watermark::None };
        Placement { after, speculative: true, ..Placement::default() }
    }

    fn low_water(&mut self, seq: Seq) {
        self.low_water = seq;
    }
}
