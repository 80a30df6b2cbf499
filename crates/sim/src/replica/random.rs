//! Random streams for tests, with all that the engine's policies and the native servers' rules go by.

use std::collections::HashMap;

use engine::quality::ExactModel;
use engine::quality::exact::TouchedRows;
use engine::schema::TableId;
use engine::transaction::{TableAccess, TableUse};
use proptest::prelude::*;

use super::costs::Costs;
use super::trace::{AppliedTransaction, Trace};

/// One transaction of a random stream.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub writes: Vec<u8>,
    pub reads: Vec<u8>,
    pub table: u8,
    pub barrier: bool,
    /// How many before it had not committed on the source.
    pub overlaps: u8,
    pub begins_group: bool,
    pub domain: u8,
    pub session: u8,
    pub doubtful: bool,
}

pub(super) fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let keys = || prop::collection::vec(1..40_u8, 0..4);
    let of_source = (0..6_u8, any::<bool>(), 0..3_u8, 0..4_u8);
    let spec = (keys(), keys(), 0..4_u8, prop::bool::weighted(0.03), of_source, prop::bool::weighted(0.1));
    let spec = spec.prop_map(|(writes, reads, table, barrier, (overlaps, begins_group, domain, session), doubtful)| {
        Spec { writes, reads, table, barrier, overlaps, begins_group, domain, session, doubtful }
    });
    prop::collection::vec(spec, 1..80)
}

/// `mariadb`: with groups in place of a logical clock.
pub(super) fn trace(specs: &[Spec], mariadb: bool) -> Trace {
    let schema_of: HashMap<TableId, u32> = (0..4).map(|table| (TableId(table), table / 2)).collect();
    let mut trace = Trace { schema_of, has_tags: !mariadb, has_groups: mariadb, ..Trace::default() };
    let mut exact = ExactModel::new(usize::MAX, usize::MAX);
    let mut group = 0;
    for (number, spec) in (1..).zip(specs) {
        let hashes = |keys: &[u8]| keys.iter().map(|&key| u64::from(key)).collect::<Vec<_>>();
        let (writes, reads) =
            if spec.barrier { (Vec::new(), Vec::new()) } else { (hashes(&spec.writes), hashes(&spec.reads)) };
        let uses = [TableUse { table: TableId(spec.table.into()), access: TableAccess::Keys }];
        let barrier = spec.barrier.then_some(0);
        let touched = TouchedRows { writes: &writes, reads: &reads, tables: &uses, barrier, cost_us: 1 };
        let first_follow = trace.follows.len() as u32;
        exact.place_and_tell(&touched, |follow| trace.follows.push(follow));
        trace.server.extend(writes.iter().chain(&reads));
        trace.writes.extend(writes);
        trace.reads.extend(reads);
        trace.uses.extend(uses);
        group = if spec.begins_group || group == 0 { number } else { group };
        let parent = number - 1 - u32::from(spec.overlaps).min(number - 1);
        trace.transactions.push(AppliedTransaction {
            rows: 1,
            source_parent: parent,
            last_committed: if mariadb { 0 } else { parent },
            sequence_number: if mariadb { 0 } else { number },
            session: spec.session.into(),
            group,
            domain: spec.domain.into(),
            doubtful: spec.doubtful,
            barrier: spec.barrier,
            first_follow,
            end_follow: trace.follows.len() as u32,
            ends: trace.ends(),
            ..AppliedTransaction::default()
        });
    }
    trace
}

/// A row takes so long, and all else no time.
pub(super) const ROW_US: u64 = 100;

pub(super) const COSTS: Costs = Costs {
    transaction_us: 0.0,
    row_us: ROW_US as f64,
    dispatch_us: 0.0,
    commit_us: 0.0,
    sync_us: 0.0,
    log_sync_us: 0.0,
    miss_share: 0.0,
    miss_us: 0.0,
    cores: 1000,
    group_us: 0.0,
    group_transaction_us: 0.0,
    group_row_us: 0.0,
    merged_row_us: 0.0,
    heddle_us: 0.0,
    relaxed_us: 0.0,
    turn_us: 0.0,
    feed_share: 0.0,
    round_trip_us: 0.0,
};
