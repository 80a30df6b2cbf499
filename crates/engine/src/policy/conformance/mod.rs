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
use self::world::{Faults, Run, World};
use super::*;
use crate::Seq;
use crate::policy::CommitOrder;
use crate::policy::CommitOrder::{Preserve, Relaxed};
use crate::schedule::{Grouping, Signals};
use crate::transaction::Transaction;

/// A policy as it is run here.
struct Case {
    policy: &'static PolicySpec,
    options: PolicyOptions,
}

/// So few hashes that the history is always full.
const HISTORY_FEW: usize = 12;

/// Every policy of the list, and one more.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for policy in throwaway::list().iter() {
        let options = PolicyOptions::default();
        cases.push(Case { policy, options });
        if policy.requires.write_sets == WriteSets::Server {
            cases.push(Case { policy, options: PolicyOptions { history_max: HISTORY_FEW, ..options } });
        }
    }
    cases
}

impl Case {
    fn sources(&self) -> &'static [Flavour] {
        match self.policy.requires.source {
            SourceTags::Any => &[Flavour::MySql, Flavour::MariaDb],
            SourceTags::LogicalClock => &[Flavour::MySql],
            SourceTags::GroupCommits => &[Flavour::MariaDb],
        }
    }

    fn signals(&self) -> Signals {
        match self.policy.requires.counts_on {
            WaitUnit::BegunCommits => Signals::AppliedFirst,
            WaitUnit::Commits => Signals::Commit,
        }
    }

    fn make(&self, order: CommitOrder) -> Box<dyn Policy> {
        (self.policy.make)(&Setting { order, locks_rows: true, options: &self.options })
    }
}

/// One run, perhaps with crashes; returns retries and aborts.
fn run(case: &Case, setting: Run, seed: u64, flavour: Flavour, crashes: usize, fail: u32) -> (u64, u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let source = Source::make(seed, 60, flavour);
    let (mut database, mut committed) = (target::Database::default(), BTreeSet::new());
    for _ in 0..crashes {
        let mut world = World::new(&source, setting, case.make(setting.order), database, committed);
        world.shake(&mut random, 250, Faults { fail });
        (database, committed) = world.crash();
    }
    let mut world = World::new(&source, setting, case.make(setting.order), database, committed);
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
            for &order in case.policy.requires.orders {
                for &flavour in case.sources() {
                    let lane_groups_max = if order == Preserve { workers } else { lane_groups_max };
                    let setting = Run { order, grouping, workers, signals: case.signals(), lane_groups_max, ahead_rows_min };
                    let name = case.policy.name;
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
        let name = case.policy.name;
        let setting = Run {
            order: Preserve,
            grouping: Grouping::Off,
            workers: 6,
            signals: case.signals(),
            lane_groups_max: 6,
            ahead_rows_min: 0,
        };
        let (mut retries, mut aborts) = (0, 0);
        for seed in 0..20 {
            let flavour = case.sources().first().copied().unwrap();
            let (more, again) = run(case, setting, seed, flavour, 0, 0);
            (retries, aborts) = (retries + more, aborts + again);
        }
        let collides = case.policy.speculates();
        assert_eq!((retries > 0, aborts > 0), (collides, collides), "{name}: {retries} retries, {aborts} aborts");
    }
}

/// Orders nothing.
struct Reckless;

static RECKLESS: PolicySpec = PolicySpec {
    name: "reckless",
    about: PolicyDescription { summary: "", needs: "", guarantees: "", blocked_by: "" },
    requires: Requirements::NONE,
    make: |_| Box::new(Reckless),
};

impl Policy for Reckless {
    fn name(&self) -> &'static str {
        RECKLESS.name
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        Placement::barrier(transaction).unwrap_or_default()
    }

    fn low_water(&mut self, _seq: Seq) {}
}

/// A suite that lets everything pass would be of no use.
#[test]
fn a_policy_that_orders_nothing_is_found_out() {
    let case = Case { policy: &RECKLESS, options: PolicyOptions::default() };
    let setting = Run {
        order: Relaxed,
        grouping: Grouping::Off,
        workers: 6,
        signals: Signals::Commit,
        lane_groups_max: 6,
        ahead_rows_min: 0,
    };
    let passed: Vec<u64> = (0..10)
        .filter(|&seed| std::panic::catch_unwind(|| run(&case, setting, seed, Flavour::MySql, 0, 0)).is_ok())
        .collect();
    assert!(passed.is_empty(), "with these seeds nothing was noticed: {passed:?}");
}
