//! Transactions that committed together on the source run together (MariaDB's default until 10.5).
//!
//! The hazard: T1 and T2 were in one group commit, so both held their locks at once and cannot conflict. T3 came after that
//! group and may need a lock that T2 held: it starts once T1 and T2 have applied all their changes, and then meets their locks.
//!
//! ```text
//! commit id 5   T1 ─────·c
//!               T2 ───────·c        · all applied, c commit
//! commit id 6           T3 ───·  c
//!                       T4 ──·    c
//! ```
//!
//! Where the target has no locks to meet, or commits may overtake each other, T3 starts when T1 and T2 have committed.

use super::commit_order::CommitOrder;
use super::{Placement, Policy, PolicyDescription, PolicySpec, Requirements, SourceTags, WaitUnit, Watermark};
use crate::Seq;
use crate::transaction::Transaction;
use binlog::gtids::Gtid;

pub(super) static SPEC: PolicySpec = PolicySpec {
    name: "conservative",
    about: PolicyDescription {
        summary: "What committed together runs together (MariaDB)",
        needs: "a MariaDB source",
        guarantees: "what was in one group commit on the source runs together, the next group once all of it is applied",
        blocked_by: "small group commits on the source; the longest transaction of each group",
    },
    requires: Requirements {
        source: SourceTags::GroupCommits,
        counts_on: WaitUnit::BegunCommits,
        ..Requirements::NONE
    },
    make: |setting| Box::new(ConservativePolicy::new(setting.locks_rows && setting.order == CommitOrder::Preserve)),
};

#[derive(Debug)]
pub struct ConservativePolicy {
    group: Option<(u32, u64)>,
    before_group: Seq,
    overlap: bool,
}

impl ConservativePolicy {
    /// `overlap`: a group may start when the one before has begun to commit.
    pub fn new(overlap: bool) -> Self {
        Self { group: None, before_group: 0, overlap }
    }
}

/// Of policies that go by MariaDB's tags.
pub(super) fn accepts_mariadb(transaction: &Transaction) -> Result<(), &'static str> {
    match transaction.gtid {
        Some(Gtid::MariaDb { .. }) => Ok(()),
        _ => Err(
            "the source is not a MariaDB with GTIDs (10.0 or later): its transactions have no commit ids and domains",
        ),
    }
}

impl Policy for ConservativePolicy {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn accepts(&self, transaction: &Transaction) -> Result<(), &'static str> {
        accepts_mariadb(transaction)
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        let group = transaction.tags.commit_id.map(|id| (transaction.tags.domain, id));
        if group.is_none() || group != self.group || transaction.barrier.is_some() {
            self.before_group = transaction.seq - 1;
            self.group = group.filter(|_| transaction.barrier.is_none());
        }
        let after = if self.overlap {
            Watermark::CommitBegun(self.before_group)
        } else {
            Watermark::Committed(self.before_group)
        };
        Placement::barrier(transaction).unwrap_or_else(|| Placement { after, ..Placement::default() })
    }

    fn low_water(&mut self, _seq: Seq) {}
}
