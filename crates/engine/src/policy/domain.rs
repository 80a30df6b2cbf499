//! MariaDB's replication domains run beside each other, and inside a domain what committed together.
//!
//! The hazard: T1 and T3 are in domain 1, T2 in domain 2. The user who set the domains says that the two do not depend on each
//! other, so T2 need not wait for a long T1; but T3 must come after T1 unless they were in one group commit.
//!
//! ```text
//! domain 1   T1 ──────────────c  T3 ───c
//! domain 2   T2 ──c  T4 ──c  T5 ──c          out of the source's order
//! ```
//!
//! A server has to believe that the domains are independent. Here transactions that do touch a common key keep their
//! order all the same, as do DDL and other barriers: a domain that was set wrongly costs time, not data.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::conservative::accepts_mariadb;
use super::{Lane, Placement, Policy, PolicyDescription, PolicySpec, Requirements, SourceTags, WriteSetPolicy};
use crate::Seq;
use crate::transaction::Transaction;

pub(super) static SPEC: PolicySpec = PolicySpec {
    name: "domain",
    about: PolicyDescription {
        summary: "MariaDB's domains beside each other",
        needs: "a MariaDB source that uses several gtid_domain_id; --commit-order relaxed or per-lane",
        guarantees: "each domain's order but for what committed together; common keys keep their order across domains",
        blocked_by: "one busy domain; --domain-workers-max",
    },
    requires: Requirements {
        orders: Requirements::EVERY_ORDER,
        source: SourceTags::GroupCommits,
        lane: Some("MariaDB domain"),
        ..Requirements::NONE
    },
    make: |_| Box::<Domain>::default(),
};

#[derive(Debug, Default)]
pub struct Domain {
    keys: WriteSetPolicy,
    domains: HashMap<u32, Batches, FixedState>,
}

/// The group commits of one domain.
#[derive(Debug, Default)]
struct Batches {
    id: Option<u64>,
    current: Vec<Seq>,
    before: Vec<Seq>,
}

impl Batches {
    /// Whom the next transaction follows.
    fn next(&mut self, seq: Seq, id: Option<u64>, low_water: Seq) -> &[Seq] {
        if id.is_none() || id != self.id {
            self.before = std::mem::take(&mut self.current);
            self.id = id;
        }
        self.current.push(seq);
        self.before.retain(|&seq| seq > low_water);
        &self.before
    }
}

impl Policy for Domain {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn accepts(&self, transaction: &Transaction) -> Result<(), &'static str> {
        accepts_mariadb(transaction)
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        let tags = &transaction.tags;
        let low_water = self.keys.known_low_water();
        let mut placement = self.keys.place(transaction);
        placement.lane = Lane(tags.domain);
        placement.row_after.clear();
        let domain = self.domains.entry(tags.domain).or_default();
        placement.after_transactions.extend_from_slice(domain.next(transaction.seq, tags.commit_id, low_water));
        placement
    }

    fn low_water(&mut self, seq: Seq) {
        self.keys.low_water(seq);
    }
}
