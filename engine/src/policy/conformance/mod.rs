//! What every policy has to keep, whatever happens on the way: the target ends as the source did; with preserved order it
//! never shows a state that the source did not have, with an order per lane each lane keeps its own; nothing is lost or
//! applied twice, through failures and crashes; and once there are no more faults it comes to its end, with few transactions
//! in memory.

mod source;
mod target;
mod world;

use std::collections::BTreeSet;

use binlog::Flavour;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use self::source::Source;
use self::world::{Faults, Setting, World};
use super::*;
use crate::group::Grouping;
use crate::scheduler::CommitOrder::{self, PerLane, Preserve, Relaxed};
use crate::tags::{Rules, Tracking};

type Make = fn(CommitOrder) -> Box<dyn Policy>;

struct Case {
    make: Make,
    orders: &'static [CommitOrder],
    sources: &'static [Flavour],
    /// Counts on commits that have begun.
    announce: bool,
}

const BOTH: &[Flavour] = &[Flavour::MySql, Flavour::MariaDb];

fn tags(tracking: Tracking, history_max: usize) -> Box<dyn Policy> {
    Box::new(ServerTags::new(Rules { history_max, ..Rules::new(tracking) }))
}

fn cases() -> Vec<Case> {
    let case = |orders, sources, announce, make: Make| Case { make, orders, sources, announce };
    vec![
        case(&[Preserve, Relaxed], BOTH, false, |_| Box::new(Serial)),
        case(&[Preserve, Relaxed], BOTH, false, |_| Box::<WriteSetPolicy>::default()),
        case(&[Preserve, PerLane, Relaxed], BOTH, false, |_| Box::<Database>::default()),
        case(&[Preserve, Relaxed], &[Flavour::MySql], false, |_| Box::new(LogicalClock::blocking())),
        case(&[Preserve, Relaxed], &[Flavour::MySql], false, |_| Box::new(LogicalClock::unblocked())),
        case(&[Preserve, Relaxed], BOTH, false, |_| tags(Tracking::CommitOrder, 25_000)),
        case(&[Preserve, Relaxed], BOTH, false, |_| tags(Tracking::Writeset, 25_000)),
        case(&[Preserve, Relaxed], BOTH, false, |_| tags(Tracking::Writeset, 12)),
        case(&[Preserve, Relaxed], BOTH, false, |_| tags(Tracking::WritesetSession, 25_000)),
        case(&[Preserve, PerLane, Relaxed], &[Flavour::MariaDb], false, |_| Box::<Domain>::default()),
        case(&[Preserve, Relaxed], BOTH, true, |order| match order {
            Preserve => Box::new(Minimal::in_order()),
            PerLane | Relaxed => Box::new(Minimal::overtaking()),
        }),
        case(&[Preserve, Relaxed], &[Flavour::MariaDb], true, |order| Box::new(Conservative::new(order == Preserve))),
        case(&[Preserve], BOTH, false, |_| Box::<Optimistic>::default()),
        case(&[Preserve], BOTH, false, |_| Box::new(Optimistic::aggressive())),
    ]
}

/// One run, perhaps with crashes; returns retries and aborts.
fn run(case: &Case, setting: Setting, seed: u64, flavour: Flavour, crashes: usize, fail: u32) -> (u64, u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let source = Source::make(seed, 60, flavour);
    let (mut database, mut committed) = (target::Database::default(), BTreeSet::new());
    for _ in 0..crashes {
        let mut world = World::new(&source, setting, (case.make)(setting.order), database, committed);
        world.shake(&mut random, 250, Faults { fail });
        (database, committed) = world.crash();
    }
    let mut world = World::new(&source, setting, (case.make)(setting.order), database, committed);
    world.shake(&mut random, 250, Faults { fail });
    world.heal(&mut random);
    let all: BTreeSet<Seq> = (1..=source.transactions.len() as Seq).collect();
    assert_eq!(world.committed, all);
    assert_eq!(world.database.visible(), source.end.visible());
    (world.retries, world.aborts)
}

fn grouping() -> impl Strategy<Value = Grouping> {
    prop_oneof![3 => Just(Grouping::Off), 1 => Just(Grouping::Auto), 1 => (2usize..6).prop_map(Grouping::UpTo)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_policy_ends_as_the_source_did(
        seed: u64,
        grouping in grouping(),
        workers in 1usize..7,
        lane_groups_max in 1usize..4,
        ahead_rows_min in prop_oneof![Just(0usize), 1usize..10, Just(usize::MAX)],
        crashes in 0usize..3,
        fail in prop_oneof![Just(0u32), Just(5), Just(40)],
    ) {
        for case in &cases() {
            for &order in case.orders {
                for &flavour in case.sources {
                    let lane_groups_max = if order == Preserve { workers } else { lane_groups_max };
                    let setting = Setting { order, grouping, workers, announce: case.announce, lane_groups_max, ahead_rows_min };
                    let name = (case.make)(order).name();
                    eprintln!("{name} {setting:?} {flavour:?} seed {seed}, {crashes} crashes, {fail}/1000 fail");
                    run(case, setting, seed, flavour, crashes, fail);
                }
            }
        }
    }
}

/// Speculation does collide in this workload, and the write sets' exact order does not.
#[test]
fn only_speculation_is_rolled_back() {
    for case in &cases() {
        let name = (case.make)(Preserve).name();
        let setting = Setting {
            order: Preserve,
            grouping: Grouping::Off,
            workers: 6,
            announce: case.announce,
            lane_groups_max: 6,
            ahead_rows_min: 0,
        };
        let (mut retries, mut aborts) = (0, 0);
        for seed in 0..20 {
            let (more, again) = run(case, setting, seed, case.sources[0], 0, 0);
            (retries, aborts) = (retries + more, aborts + again);
        }
        let collides = matches!(name, "optimistic" | "aggressive");
        assert_eq!((retries > 0, aborts > 0), (collides, collides), "{name}: {retries} retries, {aborts} aborts");
    }
}

/// Orders nothing.
struct Reckless;

impl Policy for Reckless {
    fn name(&self) -> &'static str {
        "reckless"
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        Placement::alone(transaction).unwrap_or_default()
    }

    fn low_water(&mut self, _seq: Seq) {}
}

/// A suite that lets everything pass would be of no use.
#[test]
fn a_policy_that_orders_nothing_is_found_out() {
    let case = Case { make: |_| Box::new(Reckless), orders: &[], sources: &[], announce: false };
    let setting = Setting {
        order: Relaxed,
        grouping: Grouping::Off,
        workers: 6,
        announce: false,
        lane_groups_max: 6,
        ahead_rows_min: 0,
    };
    let passed: Vec<u64> = (0..10)
        .filter(|&seed| std::panic::catch_unwind(|| run(&case, setting, seed, Flavour::MySql, 0, 0)).is_ok())
        .collect();
    assert!(passed.is_empty(), "with these seeds nothing was noticed: {passed:?}");
}
