//! Streams whose right answer can be worked out by hand, and what holds for any stream.

use std::collections::HashMap;

use engine::policy::{ALL, Policies, PolicySpec};
use engine::schema::TableId;
use engine::transaction::{TableAccess, TableUse};
use proptest::prelude::*;

use super::*;

#[path = "../../../engine/src/policy/throwaway.rs"]
pub(super) mod throwaway;

fn policies() -> Policies {
    throwaway::list()
}

const COSTS: Costs = Costs {
    transaction_us: 100.0,
    row_us: 0.0,
    dispatch_us: 0.0,
    commit_us: 0.0,
    sync_us: 0.0,
    log_sync_us: 0.0,
    miss_share: 0.0,
    miss_us: 0.0,
    cores: 1000,
    group_us: 100.0,
    group_transaction_us: 0.0,
    group_row_us: 10.0,
    merged_row_us: 1.0,
    heddle_us: 0.0,
    relaxed_us: 0.0,
    turn_us: 0.0,
    feed_share: 0.0,
    round_trip_us: 0.0,
};

/// (parent by tags, exact predecessor) of each transaction.
fn trace(parents: &[(u32, u32)]) -> Trace {
    let schema_of: HashMap<TableId, u32> = (0..3).map(|schema| (TableId(schema), schema)).collect();
    let mut trace = Trace { schema_of, has_tags: true, has_groups: true, ..Trace::default() };
    for (number, &(parent, follow)) in (1..).zip(parents) {
        let first_follow = trace.follows.len() as u32;
        trace.follows.extend((follow > 0).then_some(follow));
        // Each has a key of its own, and refers to that of the one that it follows.
        trace.writes.push(u64::from(number));
        trace.reads.extend((follow > 0).then_some(u64::from(follow)));
        trace.server.extend([u64::from(number), u64::from(follow)].into_iter().filter(|&key| key > 0));
        trace.uses.push(TableUse { table: TableId(number % 3), access: TableAccess::Keys });
        trace.transactions.push(AppliedTransaction {
            rows: 1,
            source_parent: parent,
            writeset_parent: follow,
            session_parent: number - 1,
            last_committed: parent,
            sequence_number: number,
            session: 1,
            group: parent + 1,
            schemas: 1 << (number % 3),
            first_follow,
            end_follow: trace.follows.len() as u32,
            ends: trace.ends(),
            ..AppliedTransaction::default()
        });
    }
    trace
}

fn policy(name: &str) -> &'static PolicySpec {
    ALL.named(name).unwrap()
}

fn seconds(model: Model, trace: &Trace, workers: usize) -> f64 {
    model.run(trace, &COSTS, workers).seconds * 1e6
}

#[test]
fn by_hand() {
    // Ten that depend on nothing.
    let free = trace(&[(0, 0); 10]);
    // Ten in a chain.
    let chain = trace(&(0..10).map(|n| (n, n)).collect::<Vec<_>>());
    let clock = Model::LogicalClock { tags: Tags::Source, ordered: true };
    let heddle = Model::Heddle { policy: policy("writeset"), grouping: false, ordered: true };
    for (model, of, workers, us) in [
        (Model::Serial, &free, 9, 1000.0),
        (clock, &free, 10, 100.0),
        (clock, &free, 5, 200.0),
        (clock, &free, 1, 1000.0),
        (clock, &chain, 10, 1000.0),
        // Half of a transaction is its commit; in order these come one after the other.
        (heddle, &free, 10, 550.0),
        (heddle, &chain, 10, 1000.0),
        (Model::MariaDb { mode: Mode::Conservative }, &free, 10, 100.0),
        (Model::MariaDb { mode: Mode::Conservative }, &chain, 10, 1000.0),
        (Model::MariaDb { mode: Mode::Aggressive }, &free, 10, 100.0),
        (Model::Database, &free, 3, 400.0),
    ] {
        assert!((seconds(model, of, workers) - us).abs() < 1.0, "{}: {}", model.name(), seconds(model, of, workers));
    }
}

#[test]
fn a_blocked_one_blocks_all_behind_it_under_logical_clock_only() {
    // 2 follows 1, the rest is free.
    let mut parents = vec![(0, 0), (1, 1)];
    parents.extend([(0, 0); 8]);
    let trace = trace(&parents);
    assert!((seconds(Model::LogicalClock { tags: Tags::Source, ordered: true }, &trace, 10) - 200.0).abs() < 1.0);
    let unordered = Model::Heddle { policy: policy("writeset"), grouping: false, ordered: false };
    let outcome = unordered.run(&trace, &Costs { transaction_us: 100.0, ..COSTS }, 10);
    assert!((outcome.seconds * 1e6 - 200.0).abs() < 1.0);
    assert_eq!(outcome.shares.iter().sum::<u64>(), 10);
}

#[test]
fn processors_and_syncs_limit() {
    let free = trace(&[(0, 0); 1000]);
    let clock = Model::LogicalClock { tags: Tags::Source, ordered: true };
    let two = clock.run(&free, &Costs { cores: 2, ..COSTS }, 64);
    assert!((two.transactions_per_second() - 20_000.0).abs() < 100.0, "{two:?}");
    let durable = Costs { sync_us: 1000.0, ..COSTS };
    let alone = Model::Serial.run(&free, &durable, 1).transactions_per_second();
    assert!((alone - 1e6 / 1100.0).abs() < 1.0);
    let many = clock.run(&free, &durable, 64).transactions_per_second();
    assert!(many > 25.0 * alone, "{many}");
}

/// Groups share what a transaction costs; who guesses pays for it.
fn groups_or_guesses(model: Model) -> bool {
    matches!(model, Model::Heddle { policy, grouping, .. } if grouping || policy.speculates())
}

#[test]
fn every_policy_has_a_name_of_its_own() {
    let mut names: Vec<String> = Model::all(policies()).into_iter().map(Model::name).collect();
    for name in &names {
        assert_eq!(Model::by_name(name, policies()).map(Model::name).as_ref(), Some(name));
    }
    for name in [
        "heddle",
        "heddle-grouping",
        "heddle-logical-clock-unordered",
        "heddle-pairs-grouping",
        "mysql-writeset-session-unordered",
    ] {
        assert!(Model::by_name(name, policies()).is_some(), "{name}");
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn heddle_by_hand() {
    // Four in two group commits; the last changes what the first does.
    let trace = trace(&[(0, 0), (0, 0), (2, 0), (2, 1)]);
    let mut untagged = trace.clone();
    (untagged.has_tags, untagged.has_groups) = (false, false);
    untagged.transactions.iter_mut().for_each(|applied| applied.sequence_number = 0);
    let us = |policy: &'static PolicySpec, costs: &Costs| {
        // Where the source says nothing of its commits, sessions are all that a server goes by.
        let trace = if policy.name == "writeset-session" { &untagged } else { &trace };
        Model::Heddle { policy, grouping: false, ordered: costs.sync_us > 0.0 }.run(trace, costs, 4).seconds * 1e6
    };
    for (policy, wanted) in [
        (policy("serial"), 400.0),
        (policy("writeset"), 200.0),
        (policy("commit-order"), 200.0),
        (policy("conservative"), 200.0),
        (policy("minimal"), 400.0),
        // Schemas 1, 2, 0, 1.
        (policy("database"), 200.0),
        (policy("writeset-session"), 400.0),
    ] {
        assert!((us(policy, &COSTS) - wanted).abs() < 1.0, "{}: {}", policy.name, us(policy, &COSTS));
    }
    // In order each commit waits for the answer of the one before, syncs and all.
    let durable = Costs { sync_us: 1000.0, ..COSTS };
    assert!(us(policy("writeset"), &durable) >= 4100.0);
    // In one group the second change of a row is merged into the first.
    let grouped = Model::Heddle { policy: policy("writeset"), grouping: true, ordered: true };
    assert!((grouped.run(&trace, &COSTS, 4).seconds * 1e6 - 131.0).abs() < 1.0);
}

proptest! {
    /// No replica is faster than its longest chain or than all workers at full speed; none loses a transaction.
    #[test]
    fn bounds(follows in prop::collection::vec(0..100_u32, 1..100), workers in 1..20_usize, sync in 0..3_u8) {
        let parents: Vec<(u32, u32)> = (0..).zip(&follows).map(|(n, &f)| (n.min(f), n.min(f))).collect();
        let trace = trace(&parents);
        let costs = Costs { sync_us: f64::from(sync) * 50.0, ..COSTS };
        for model in Model::all(policies()).into_iter().filter(|model| !groups_or_guesses(*model)) {
            let outcome = model.run(&trace, &costs, workers);
            let us = outcome.seconds * 1e6;
            let n = trace.transactions.len() as f64;
            let used = if model == Model::Serial { 1 } else { workers };
            prop_assert!(us >= n * 100.0 / used as f64 - 1.0, "{}: {us}", model.name());
            prop_assert!(us <= n * (250.0 + 2.0 * costs.sync_us) + 1.0, "{}: {us}", model.name());
            prop_assert!((0.0..=1.0).contains(&outcome.utilisation));
            prop_assert_eq!(outcome.shares.iter().sum::<u64>(), trace.transactions.len() as u64);
        }
    }
}

#[test]
fn the_knee_is_where_more_does_not_help() {
    let outcome = |workers, seconds| Outcome { workers, seconds, transactions: 1000, ..Outcome::default() };
    let outcomes = [outcome(1, 10.0), outcome(2, 5.0), outcome(4, 2.6), outcome(8, 2.5), outcome(16, 2.5)];
    assert_eq!(knee(&outcomes).map(|knee| knee.workers), Some(4));
    assert_eq!(knee(&[]), None);
}
