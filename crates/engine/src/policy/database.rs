//! Transactions in different schemas run in parallel, those of one schema one after the other (MySQL 5.6).
//!
//! The hazard: T1 sets a row of `shop.stock`, T2 another value of the same row: one schema, so T2 follows T1. T3 moves money from
//! `shop` to `bank` and changes both: it follows the last transaction of each schema, and the next of either schema follows it.
//!
//! ```text
//! shop  T1 ── T2 ──┐        ┌── T5
//! bank        T4 ──┴── T3 ──┘      T6
//! mail  T7 ── T8 ── T9
//! ```
//!
//! What crosses schemas unseen is ordered by table: a foreign key's parent, a cascade's children. The lane is the first
//! schema that a transaction changes.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::{Lane, Placement, Policy, PolicyDescription, PolicySpec, Requirements};
use crate::Seq;
use crate::schema::TableId;
use crate::transaction::{Item, Transaction};

pub(super) static SPEC: PolicySpec = PolicySpec {
    name: "database",
    about: PolicyDescription {
        summary: "One schema after the other's, each in its order (MySQL 5.6)",
        needs: "several schemas",
        guarantees: "each schema's order; a transaction on several schemas has its place in each",
        blocked_by: "one busy schema; transactions on many schemas",
    },
    requires: Requirements { orders: Requirements::EVERY_ORDER, lane: Some("schema"), ..Requirements::NONE },
    make: |_| Box::<Database>::default(),
};

#[derive(Debug, Default)]
pub struct Database {
    schemas: HashMap<String, Schema, FixedState>,
    /// The last transaction that changed or looked into a table.
    tables: HashMap<TableId, Seq, FixedState>,
    low_water: Seq,
    sweep_at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Schema {
    lane: Lane,
    last: Seq,
}

/// Fewer tables than these are not looked through for those that can be forgotten.
const SWEEP_TABLES_MIN: usize = 10_000;

impl Database {
    fn schema(&mut self, name: &str) -> &mut Schema {
        let next = Lane(self.schemas.len() as u32 + 1);
        self.schemas.entry_ref(name).or_insert(Schema { lane: next, last: 0 })
    }
}

impl Policy for Database {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        if let Some(barrier) = Placement::barrier(transaction) {
            return barrier;
        }
        let own = transaction.seq;
        let mut lane = None;
        let mut after: SmallVec<[Seq; 4]> = SmallVec::new();
        let mut seen: Option<&str> = None;
        for item in transaction.items() {
            let Item::Rows(rows) = item else { continue };
            if seen == Some(rows.map.schema.as_str()) {
                continue;
            }
            seen = Some(&rows.map.schema);
            let schema = self.schema(&rows.map.schema);
            lane.get_or_insert(schema.lane);
            after.push(std::mem::replace(&mut schema.last, own));
        }
        for table_use in &transaction.write_set.tables {
            after.push(self.tables.insert(table_use.table, own).unwrap_or(0));
        }
        after.retain(|seq| *seq != own && *seq > self.low_water);
        after.sort_unstable();
        after.dedup();
        Placement { after_transactions: after, lane: lane.unwrap_or_default(), ..Placement::default() }
    }

    fn low_water(&mut self, seq: Seq) {
        self.low_water = seq;
        if self.tables.len() > self.sweep_at.max(SWEEP_TABLES_MIN) {
            self.tables.retain(|_, last| *last > seq);
            self.sweep_at = 2 * self.tables.len();
        }
    }
}
