//! The native servers' rules beside the engine's policies of the same kind, on random streams.

use engine::policy::ALL;
use engine::policy::CommitOrder;
use proptest::prelude::*;

use super::heddle::{TransactionPlacement, WaitPoint, place};
use super::mariadb::{Mode, Round};
use super::model::Model;
use super::mysql::{Tags, may_join};
use super::random::{COSTS, Spec, specs, trace};
use super::trace::Trace;

/// What the engine's policy says, in preserved order.
fn placed(trace: &Trace, policy: &str) -> Vec<TransactionPlacement> {
    let policy = ALL.named(policy).unwrap();
    place(trace, policy, CommitOrder::Preserve).iter().map(|(placed, _)| placed).collect()
}

fn number(after: WaitPoint) -> u32 {
    match after {
        WaitPoint::Committed(number) | WaitPoint::CommitBegun(number) => number,
    }
}

/// Without what the two do differently on purpose.
fn plain(specs: Vec<Spec>) -> Vec<Spec> {
    specs.into_iter().map(|spec| Spec { barrier: false, domain: 0, ..spec }).collect()
}

proptest! {
    /// Where MySQL's coordinator has to wait for all before, the engine's policy of the same name waits, too.
    #[test]
    fn mysql_logical_clock(specs in specs()) {
        let mut trace = trace(&plain(specs), false);
        // The engine's waits at the first transaction of a log: later ones have a parent.
        trace.transactions.iter_mut().skip(1).for_each(|applied| {
            applied.last_committed = applied.last_committed.max(1);
            applied.source_parent = applied.source_parent.max(1);
        });
        let mut committed = 0;
        for (before, (applied, placed)) in (0..).zip(trace.transactions.iter().zip(placed(&trace, "logical-clock"))) {
            let joins = may_join(applied, committed, Tags::Source);
            prop_assert_eq!(joins, number(placed.after) <= committed, "after {}", before);
            if !joins {
                committed = before;
            }
        }
    }

    /// A transaction that MariaDB does not run beside the one before waits for it in the engine, and only such a one.
    #[test]
    fn mariadb_modes(specs in specs()) {
        let trace = trace(&plain(specs), true);
        for (mode, policy) in [
            (Mode::Minimal, "minimal"),
            (Mode::Conservative, "conservative"),
            (Mode::Optimistic, "optimistic"),
            (Mode::Aggressive, "aggressive"),
        ] {
            let mut round = Round::default();
            for (before, (applied, placed)) in (0..).zip(trace.transactions.iter().zip(placed(&trace, policy))) {
                if before > 0 {
                    let waits = mode.waits(applied, round);
                    prop_assert_eq!(waits, number(placed.after) == before, "{} after {}", policy, before);
                }
                round = Round { domain: applied.domain, group: applied.group, after_barrier: false };
            }
        }
    }

    /// MySQL's workers by schema take as long as the engine's lanes, if there is a worker for each schema.
    #[test]
    fn mysql_database(specs in specs()) {
        let mut trace = trace(&plain(specs), false);
        for applied in &mut trace.transactions {
            let table_use = trace.uses[applied.ends.uses as usize - 1];
            applied.schemas = 1 << trace.schema_of[&table_use.table];
        }
        let lanes = Model::Heddle { policy: ALL.named("database").unwrap(), grouping: false, ordered: false };
        let [native, engine] = [Model::Database, lanes].map(|model| model.run(&trace, &COSTS, 4).seconds);
        prop_assert!((native - engine).abs() < 1e-9, "{native} and {engine}");
    }
}
