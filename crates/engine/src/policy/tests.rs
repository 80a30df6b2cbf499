use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::commit_order::CommitOrder;
use super::*;
use crate::Seq;
use crate::schema::TableId;
use crate::transaction::{BarrierCause, Transaction};
use crate::transaction::{Body, Row, TableAccess, Tags, WriteSet};
use binlog::LogPosition;

/// One row of a generated transaction. Keys are few; 0 is none.
#[derive(Clone, Debug)]
enum RowSpec {
    /// (before, after) of two unique keys.
    Keyed { table: u8, first: (u8, u8), second: (u8, u8) },
    /// A child: its own key, and the parent's key that it refers to, in the parent's table.
    Child { table: u8, key: (u8, u8), parent: u8, reference: u8 },
    /// A child whose parent's key is not known.
    ChildOfUnknown { table: u8, key: (u8, u8), parent: u8 },
    /// Ordered by table.
    Wild { table: u8 },
    /// A parent that is deleted, with a child table that cascades reach.
    Cascade { table: u8, key: u8, child: u8 },
}

#[derive(Clone, Debug)]
struct Spec {
    rows: Vec<RowSpec>,
    barrier: bool,
    /// Commits that the policy hears of before this one.
    low_water: u8,
}

fn hash(table: u8, index: u64, key: u8) -> u64 {
    if key == 0 { 0 } else { u64::from(table) * 1_000_000 + index * 1_000 + u64::from(key) }
}

/// What a transaction really uses, written out.
#[derive(Default)]
struct Uses {
    writes: BTreeSet<u64>,
    reads: BTreeSet<u64>,
    /// Tables of which rows are written, by key or not.
    writes_in: BTreeSet<u8>,
    touches: BTreeSet<u8>,
    reads_all: BTreeSet<u8>,
    writes_all: BTreeSet<u8>,
    barrier: bool,
}

impl Uses {
    fn conflicts(&self, other: &Self) -> bool {
        let one_way = |a: &Self, b: &Self| {
            a.writes.iter().any(|key| b.writes.contains(key) || b.reads.contains(key))
                || a.writes_all.iter().any(|table| b.touches.contains(table))
                || a.reads_all.iter().any(|table| b.writes_in.contains(table))
        };
        self.barrier || other.barrier || one_way(self, other) || one_way(other, self)
    }
}

fn build(seq: Seq, spec: &Spec) -> (Transaction, Uses) {
    let mut set = WriteSet::default();
    let mut uses = Uses { barrier: spec.barrier, ..Uses::default() };
    let id = |table: u8| TableId(table.into());
    for row in &spec.rows {
        let (table, pairs, reference, wild) = match *row {
            RowSpec::Keyed { table, first, second } => (table, vec![(0, first), (1, second)], 0, false),
            RowSpec::Child { table, key, parent, reference } => {
                set.note_table(id(parent), TableAccess::Keys);
                (table, vec![(0, key)], hash(parent, 0, reference), false)
            }
            RowSpec::ChildOfUnknown { table, key, parent } => {
                set.note_table(id(parent), TableAccess::ReadAll);
                uses.reads_all.insert(parent);
                uses.touches.insert(parent);
                (table, vec![(0, key)], 0, false)
            }
            RowSpec::Wild { table } => (table, vec![(0, (0, 0))], 0, true),
            RowSpec::Cascade { table, key, child } => {
                set.note_table(id(child), TableAccess::WriteAll);
                uses.writes_all.insert(child);
                uses.writes_in.insert(child);
                uses.touches.insert(child);
                (table, vec![(0, (key, 0))], 0, false)
            }
        };
        set.note_table(id(table), TableAccess::Keys);
        uses.writes_in.insert(table);
        uses.touches.insert(table);
        if wild {
            set.note_table(id(table), TableAccess::WriteAll);
            uses.writes_all.insert(table);
        }
        let first_hash = set.hashes.len() as u32;
        let unique = pairs.len() as u16;
        for (index, (before, after)) in pairs {
            let both = [hash(table, index, before), hash(table, index, after)];
            set.hashes.extend(both);
            uses.writes.extend(both.into_iter().filter(|&hash| hash != 0));
        }
        if reference != 0 {
            set.hashes.push(reference);
            uses.reads.insert(reference);
        }
        let end_hash = set.hashes.len() as u32;
        set.rows.push(Row { item: 0, before: 0..0, after: 0..0, first_hash, end_hash, unique, wild });
    }
    let position = LogPosition::new("binlog.000001", seq);
    let transaction = Transaction {
        seq,
        gtid: None,
        start: position.clone(),
        end: position,
        tags: Tags::default(),
        server_id: 1,
        commit_time_us: 0,
        original_commit_us: 0,
        bytes: 1,
        map_bytes: 0,
        body: Body::Items(Vec::new()),
        rolls_back: true,
        only_changes: false,
        beside_prepared: false,
        unsafe_statements: Vec::new(),
        left_out: Vec::new(),
        refusal: None,
        branch: None,
        session: None,
        source_starts: 0,
        write_set: set,
        barrier: spec.barrier.then_some(BarrierCause::Ddl),
    };
    (transaction, uses)
}

fn keyed() -> impl Strategy<Value = RowSpec> {
    let key = || (0u8..9, 0u8..9);
    (0u8..3, key(), key()).prop_map(|(table, first, second)| RowSpec::Keyed { table, first, second })
}

fn any_row() -> impl Strategy<Value = RowSpec> {
    let key = || (0u8..9, 0u8..9);
    prop_oneof![
        6 => keyed(),
        3 => (0u8..3, key(), 0u8..3, 0u8..9)
            .prop_map(|(table, key, parent, reference)| RowSpec::Child { table, key, parent, reference }),
        1 => (0u8..3, key(), 0u8..3).prop_map(|(table, key, parent)| RowSpec::ChildOfUnknown { table, key, parent }),
        1 => (0u8..3).prop_map(|table| RowSpec::Wild { table }),
        1 => (0u8..3, 1u8..9, 0u8..3).prop_map(|(table, key, child)| RowSpec::Cascade { table, key, child }),
    ]
}

fn specs(row: impl Strategy<Value = RowSpec>, barriers: f64) -> impl Strategy<Value = Vec<Spec>> {
    let spec = (prop::collection::vec(row, 0..4), prop::bool::weighted(barriers), any::<u8>())
        .prop_map(|(rows, barrier, low_water)| Spec { rows, barrier, low_water });
    prop::collection::vec(spec, 1..40)
}

/// The low water that the policy hears of before transaction `seq`: never back, and below it.
fn low_water_before(specs: &[Spec], seq: Seq) -> Seq {
    let heard = |(at, spec): (Seq, &Spec)| {
        if spec.low_water.is_multiple_of(3) { (at - 1).saturating_sub(spec.low_water.into()) } else { 0 }
    };
    (1..=seq).zip(specs).map(heard).max().unwrap_or(0)
}

fn place_all(policy: &mut dyn Policy, specs: &[Spec]) -> Vec<(Placement, Uses, Transaction)> {
    let mut placed = Vec::new();
    for (seq, spec) in (1..).zip(specs) {
        policy.low_water(low_water_before(specs, seq));
        let (transaction, uses) = build(seq, spec);
        placed.push((policy.place(&transaction), uses, transaction));
    }
    placed
}

/// Whatever is ordered before each transaction: directly, or through another.
fn closure(placed: &[(Placement, Uses, Transaction)], specs: &[Spec]) -> BTreeMap<Seq, BTreeSet<Seq>> {
    let mut before: BTreeMap<Seq, BTreeSet<Seq>> = BTreeMap::new();
    for (seq, (placement, _, _)) in (1..).zip(placed) {
        let mut direct: BTreeSet<Seq> = placement.after_transactions.iter().copied().collect();
        let watermark = match placement.after {
            Watermark::None => 0,
            Watermark::Committed(to) | Watermark::CommitBegun(to) => to,
        };
        direct.extend(1..=watermark.max(low_water_before(specs, seq)));
        assert!(direct.iter().all(|&predecessor| predecessor < seq), "{seq} waits for {direct:?}");
        let indirect: BTreeSet<Seq> = direct.iter().filter_map(|seq| before.get(seq)).flatten().copied().collect();
        direct.extend(indirect);
        before.insert(seq, direct);
    }
    before
}

fn conflicts_are_ordered(policy: &mut dyn Policy, specs: &[Spec]) {
    let placed = place_all(policy, specs);
    let before = closure(&placed, specs);
    for (seq, (placement, uses, _)) in (1..).zip(&placed) {
        assert_eq!(placement.barrier.is_some(), uses.barrier);
        for (other, (_, theirs, _)) in (1..seq).zip(&placed) {
            assert!(!uses.conflicts(theirs) || before[&seq].contains(&other), "{seq} does not follow {other}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn write_sets_order_every_conflict(specs in specs(any_row(), 0.05)) {
        conflicts_are_ordered(&mut WriteSetPolicy::default(), &specs);
    }

    #[test]
    fn serial_orders_every_conflict(specs in specs(any_row(), 0.05)) {
        conflicts_are_ordered(&mut SerialPolicy, &specs);
    }

    /// Row by row: of the rows with a key, one at least says that it follows the last other user of the key.
    #[test]
    fn rows_know_what_they_follow(specs in specs(any_row(), 0.05)) {
        let placed = place_all(&mut WriteSetPolicy::default(), &specs);
        for (seq, (placement, uses, transaction)) in (1..).zip(&placed) {
            if uses.barrier {
                continue;
            }
            let set = &transaction.write_set;
            prop_assert_eq!(placement.row_after.len(), set.rows.len());
            let low_water = low_water_before(&specs, seq);
            let last_barrier = (1..seq).zip(&placed).filter(|(_, other)| other.1.barrier).map(|(at, _)| at).last().unwrap_or(0);
            for (other, (_, theirs, _)) in (1..seq).zip(&placed) {
                if other <= low_water.max(last_barrier) {
                    continue;
                }
                let writes = uses.writes.iter().filter(|key| theirs.writes.contains(key) || theirs.reads.contains(key));
                let reads = uses.reads.iter().filter(|key| theirs.writes.contains(key));
                for key in writes.chain(reads) {
                    let with_key = set.rows.iter().zip(&placement.row_after).filter(|(row, _)| {
                        set.unique_hashes(row).contains(key) || set.reference_hashes(row).contains(key)
                    });
                    let follows = with_key.map(|(_, &after)| after).max().unwrap_or(0);
                    prop_assert!(follows >= other, "no row of {seq} with {key} follows {other}");
                }
                let by_table = uses.writes_all.iter().any(|table| theirs.touches.contains(table))
                    || theirs.writes_all.iter().any(|table| uses.touches.contains(table))
                    || uses.reads_all.iter().any(|table| theirs.writes_in.contains(table))
                    || theirs.reads_all.iter().any(|table| uses.writes_in.contains(table));
                prop_assert!(!by_table || placement.row_after.iter().all(|&after| after >= other));
            }
        }
    }

    /// On tables with keys and nothing else: whom a transaction waits for, it conflicts with.
    #[test]
    fn nobody_waits_in_vain(specs in specs(keyed(), 0.0)) {
        let placed = place_all(&mut WriteSetPolicy::default(), &specs);
        for (seq, (placement, uses, _)) in (1..).zip(&placed) {
            prop_assert_eq!(placement.after, Watermark::None);
            for &other in &placement.after_transactions {
                prop_assert!(uses.conflicts(&placed[other as usize - 1].1), "{seq} waits for {other}");
            }
        }
    }
}

fn single(seq: Seq, key: u8, other: u8) -> Transaction {
    let row = RowSpec::Keyed { table: 0, first: (key, key), second: (other, other) };
    build(seq, &Spec { rows: vec![row], barrier: false, low_water: 1 }).0
}

/// Keys below the low water are forgotten, those above are not.
#[test]
fn forgets_only_what_is_committed() {
    let mut policy = WriteSetPolicy::default();
    let mut seq = 0;
    let mut place = |policy: &mut WriteSetPolicy, hash: u64| {
        seq += 1;
        let mut transaction = single(seq, 1, 0);
        transaction.write_set.hashes = vec![hash, hash, 0, 0].into();
        policy.place(&transaction)
    };
    for hash in 1..=100_000 {
        assert!(place(&mut policy, hash).after_transactions.is_empty());
    }
    policy.low_water(99_000);
    assert_eq!(place(&mut policy, 99_500).after_transactions.as_slice(), [99_500]);
    assert_eq!(place(&mut policy, 99_500).after_transactions.as_slice(), [100_001]);
    assert!(place(&mut policy, 7).after_transactions.is_empty());
}

/// As many predecessors as there are: none is lost, and it does not take long.
#[test]
fn a_transaction_may_follow_very_many() {
    let mut policy = WriteSetPolicy::default();
    const MANY: u64 = 30_000;
    for seq in 1..=MANY {
        let mut transaction = single(seq, 1, 0);
        transaction.write_set.hashes = vec![seq, seq, 0, 0].into();
        policy.place(&transaction);
    }
    let mut all = single(MANY + 1, 1, 0);
    all.write_set = WriteSet::default();
    // Each key twice, as with secondary keys that came with the same transactions.
    for hash in (1..=MANY).chain(1..=MANY) {
        let first_hash = all.write_set.hashes.len() as u32;
        all.write_set.hashes.extend([hash, hash]);
        let row =
            Row { item: 0, before: 0..0, after: 0..0, first_hash, end_hash: first_hash + 2, unique: 1, wild: false };
        all.write_set.rows.push(row);
    }
    let placement = policy.place(&all);
    let after: BTreeSet<Seq> = placement.after_transactions.iter().copied().collect();
    assert_eq!(after.len() as u64, MANY);
}

fn policy(name: &str) -> &'static PolicySpec {
    throwaway::list().named(name).unwrap()
}

#[test]
fn every_policy_bears_its_name() {
    let (list, options) = (throwaway::list(), PolicyOptions::default());
    assert_eq!(list.iter().count(), ALL.iter().count() + 1);
    for policy in list.iter() {
        assert_eq!(list.iter().filter(|other| other.name == policy.name).count(), 1, "{}", policy.name);
        assert_eq!(list.named(policy.name).unwrap(), policy);
        for &order in policy.requires.orders {
            let made = (policy.make)(&Setting { order, locks_rows: true, options: &options });
            assert_eq!(made.name(), policy.name);
        }
    }
    assert!(ALL.named("pairs").is_err());
    assert_eq!(ALL.iter().next(), Some(DEFAULT));
}

/// What a file says of its policy does not contradict itself.
#[test]
fn requirements_go_together() {
    for PolicySpec { name, requires, .. } in throwaway::list().iter() {
        assert!(!requires.orders.is_empty(), "{name}");
        assert_eq!(requires.orders.contains(&CommitOrder::PerLane), requires.lane.is_some(), "{name}");
        if requires.conflicts == Conflicts::RolledBack {
            assert_eq!((requires.orders, requires.target), (&[CommitOrder::Preserve][..], TargetLocks::Rows), "{name}");
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    use CommitOrder::{PerLane, Preserve, Relaxed};
    let options = PolicyOptions::default();
    for (name, order, locks_rows, message) in [
        ("writeset", Relaxed, false, None),
        ("optimistic", Preserve, true, None),
        (
            "optimistic",
            Relaxed,
            true,
            Some("--commit-order preserve (or take --policy writeset with --commit-order relaxed)"),
        ),
        ("optimistic", PerLane, true, Some("--commit-order preserve")),
        ("aggressive", Preserve, false, Some("locks rows")),
        (
            "writeset",
            PerLane,
            true,
            Some("policy with lanes: --policy database (a lane is a schema) or --policy domain"),
        ),
        ("pairs", PerLane, true, Some("policy with lanes")),
        ("domain", PerLane, false, None),
    ] {
        let said = throwaway::list()
            .check(policy(name), &Setting { order, locks_rows, options: &options })
            .err()
            .map(|error| error.to_string());
        assert_eq!(said.is_some(), message.is_some(), "{name} {order:?}");
        let said = said.unwrap_or_default();
        assert!(said.contains(message.unwrap_or_default()), "{name} {order:?}: {said}");
    }
}
