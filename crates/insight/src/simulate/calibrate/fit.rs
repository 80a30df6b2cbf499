//! Costs with which the models give what was measured.
//!
//! Each cost is found from the measurement that depends on it most, with the models themselves: what a number means is what the model does with it.

use sim::replica::{AppliedTransaction, Costs, Model, PreparedReplica, Tags, Trace};

use super::calibration::{Calibration, SESSIONS};
use super::server::ROWS_EACH;

/// Transactions of the simulated loop that is compared with the measured one.
const SIMULATED: usize = 600;
/// Grouped, there must be many groups.
const SIMULATED_GROUPED: usize = 40_000;
/// Steps in which a cost is looked for.
const STEPS: u32 = 60;

fn free(rows: u32) -> Trace {
    Trace {
        transactions: vec![AppliedTransaction { rows, ..AppliedTransaction::default() }; SIMULATED],
        ..Trace::default()
    }
}

/// How far off, in either direction.
fn off(found: f64, wanted: f64) -> f64 {
    (found.max(1e-3) / wanted.max(1e-3)).ln().abs()
}

/// The number from 0 to `most` with which `error` is smallest: denser towards 0.
fn nearest(most: f64, error: impl Fn(f64) -> f64) -> f64 {
    let tried = (0..=STEPS).map(|step| most * (f64::from(step) / f64::from(STEPS)).powi(2));
    let best = tried.map(|value| (error(value), value)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(0.0, |(_, value)| value)
}

pub fn derive(measured: &Calibration, defaults: &Costs) -> Costs {
    let row_us = ((measured.twenty_rows_us - measured.one_row_us) / f64::from(ROWS_EACH - 1)).max(1.0);
    let mut costs = server(measured, &Costs { row_us, ..*defaults });
    costs.dispatch_us *= (costs.transaction_us + costs.row_us) / (defaults.transaction_us + defaults.row_us);
    // Beside its rows and its bookkeeping an applier has four events of a transaction; a row has two.
    costs.transaction_us += 4.0 * row_us / 2.0;
    costs.round_trip_us = measured.round_trip_us;
    heddle(measured, &mut costs);
    grouped(measured, &mut costs);
    if measured.synced_log && !measured.logged {
        // Not measured: taken to be like the engine's.
        costs.log_sync_us = costs.sync_us;
    }
    costs
}

/// One after the other a transaction of nothing but bookkeeping takes what was measured. How much of it is processor time, how much syncs, and how much is done one after the other in
/// any case shows with several sessions at the same time: they share the syncs, but not the processors.
fn server(measured: &Calibration, costs: &Costs) -> Costs {
    let fixed = measured.bookkeeping_us.max(1.0);
    let syncs_log = measured.synced_log && measured.logged;
    let syncs = f64::from(u8::from(measured.durable) + u8::from(syncs_log));
    let with = |transaction_us: f64, commit_us: f64| {
        let each = if syncs > 0.0 { (fixed - commit_us - transaction_us).max(0.0) / syncs } else { 0.0 };
        Costs {
            transaction_us: if syncs > 0.0 { transaction_us } else { fixed - commit_us },
            commit_us,
            sync_us: if measured.durable { each } else { 0.0 },
            log_sync_us: if syncs_log { each } else { 0.0 },
            ..*costs
        }
    };
    let trace = free(0);
    let replica = Model::LogicalClock { tags: Tags::Source, ordered: true }.prepare(&trace);
    let error = |costs: &Costs| {
        // Sessions of their own need no one to hand out work.
        let costs = Costs { dispatch_us: 0.0, ..*costs };
        off(replica.microseconds_each(&costs, 4), measured.four_sessions_us)
            + off(replica.microseconds_each(&costs, SESSIONS as usize), measured.sixteen_sessions_us)
    };
    let mut best = with(fixed * 0.9, fixed * 0.01);
    for serial in [0.0, 0.01, 0.02, 0.04, 0.08, 0.12] {
        let commit_us = fixed * serial;
        let transaction_us = nearest(fixed - commit_us, |transaction_us| error(&with(transaction_us, commit_us)));
        let found = with(transaction_us, commit_us);
        if error(&found) + 1e-9 < error(&best) {
            best = found;
        }
    }
    best
}

/// Transactions by themselves: alone, in order with several workers, and in any order.
fn heddle(measured: &Calibration, costs: &mut Costs) {
    let trace = free(1);
    let replica = |ordered| Model::Heddle { policy: engine::policy::DEFAULT, grouping: false, ordered }.prepare(&trace);
    let (ordered, relaxed) = (replica(true), replica(false));
    let tried = |costs: &Costs, set: &dyn Fn(&mut Costs), replica: &PreparedReplica<'_>, workers| {
        let mut costs = *costs;
        set(&mut costs);
        replica.microseconds_each(&costs, workers)
    };
    let most = 4.0 * measured.heddle_us.max(measured.heddle_four_us).max(measured.heddle_relaxed_four_us);
    costs.turn_us = 0.0;
    costs.heddle_us =
        nearest(most, |us| off(tried(costs, &|costs| costs.heddle_us = us, &ordered, 1), measured.heddle_us));
    costs.turn_us =
        nearest(most, |us| off(tried(costs, &|costs| costs.turn_us = us, &ordered, 4), measured.heddle_four_us));
    costs.relaxed_us = nearest(most, |us| {
        let run = |workers| tried(costs, &|costs| costs.relaxed_us = us, &relaxed, workers);
        off(run(4), measured.heddle_relaxed_four_us) + off(run(16), measured.heddle_relaxed_sixteen_us)
    });
}

/// Groups: a transaction, a row, a change that is merged, and what of it is done by one thread for all workers.
fn grouped(measured: &Calibration, costs: &mut Costs) {
    let rows = f64::from(ROWS_EACH);
    costs.group_row_us = ((measured.grouped_twenty_rows_us - measured.grouped_us) / (rows - 1.0)).max(0.5);
    // A target transaction like any other, but for what is in it.
    costs.group_us = costs.transaction_us + costs.heddle_us;
    let transactions = vec![AppliedTransaction { rows: 1, ..AppliedTransaction::default() }; SIMULATED_GROUPED];
    let trace = Trace { transactions, ..Trace::default() };
    let replica = Model::Heddle { policy: engine::policy::DEFAULT, grouping: true, ordered: true }.prepare(&trace);
    costs.feed_share = 0.0;
    let most = 2.0 * measured.grouped_us;
    costs.group_transaction_us = nearest(most, |us| {
        off(replica.microseconds_each(&Costs { group_transaction_us: us, ..*costs }, 1), measured.grouped_us)
    });
    costs.merged_row_us =
        (measured.grouped_merged_us - costs.group_transaction_us).clamp(0.1, costs.group_row_us.max(0.1));
    costs.feed_share = nearest(1.0, |share| {
        off(replica.microseconds_each(&Costs { feed_share: share, ..*costs }, 4), measured.grouped_four_us)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(model: Model, trace: &Trace, costs: &Costs, workers: usize) -> f64 {
        model.prepare(trace).microseconds_each(costs, workers)
    }

    /// What would be measured where things cost this much.
    fn measured(costs: &Costs) -> Calibration {
        let of = |model, rows, costs: &Costs, workers| each(model, &free(rows), costs, workers);
        let without_events = costs.transaction_us - 2.0 * costs.row_us;
        let sessions = Costs { dispatch_us: 0.0, transaction_us: without_events, ..*costs };
        let clock = Model::LogicalClock { tags: Tags::Source, ordered: true };
        let heddle = |grouping, ordered| Model::Heddle { policy: engine::policy::DEFAULT, grouping, ordered };
        let many = Trace {
            transactions: vec![AppliedTransaction { rows: 1, ..AppliedTransaction::default() }; SIMULATED_GROUPED],
            ..Trace::default()
        };
        let grouped_us = each(heddle(true, true), &many, costs, 1);
        Calibration {
            // Sent by a client: no thread hands them out.
            one_row_us: of(Model::Serial, 1, &Costs { dispatch_us: 0.0, ..*costs }, 1),
            twenty_rows_us: of(Model::Serial, ROWS_EACH, &Costs { dispatch_us: 0.0, ..*costs }, 1),
            four_sessions_us: of(clock, 0, &sessions, 4),
            sixteen_sessions_us: of(clock, 0, &sessions, 16),
            round_trip_us: costs.round_trip_us,
            bookkeeping_us: of(Model::Serial, 0, &sessions, 1),
            heddle_us: of(heddle(false, true), 1, costs, 1),
            heddle_four_us: of(heddle(false, true), 1, costs, 4),
            heddle_relaxed_four_us: of(heddle(false, false), 1, costs, 4),
            heddle_relaxed_sixteen_us: of(heddle(false, false), 1, costs, 16),
            grouped_us,
            grouped_four_us: each(heddle(true, true), &many, costs, 4),
            grouped_twenty_rows_us: grouped_us + f64::from(ROWS_EACH - 1) * costs.group_row_us,
            grouped_merged_us: costs.group_transaction_us + costs.merged_row_us,
            durable: costs.sync_us > 0.0,
            synced_log: costs.log_sync_us > 0.0,
            logged: true,
            ..Calibration::default()
        }
    }

    #[test]
    fn the_models_give_what_was_measured() {
        let defaults = Costs { cores: 2, ..Costs::default() };
        for (transaction_us, sync_us, log_sync_us, turn_us, relaxed_us) in [
            (100.0, 350.0, 350.0, 60.0, 150.0),
            (300.0, 150.0, 150.0, 300.0, 400.0),
            (500.0, 50.0, 0.0, 10.0, 100.0),
            (200.0, 0.0, 0.0, 100.0, 100.0),
        ] {
            let costs = Costs { transaction_us, sync_us, log_sync_us, turn_us, relaxed_us, ..defaults };
            let wanted = measured(&costs);
            let found = measured(&derive(&wanted, &defaults));
            for (name, wanted, found) in [
                ("one row", wanted.one_row_us, found.one_row_us),
                ("twenty rows", wanted.twenty_rows_us, found.twenty_rows_us),
                ("4 sessions", wanted.four_sessions_us, found.four_sessions_us),
                ("16 sessions", wanted.sixteen_sessions_us, found.sixteen_sessions_us),
                ("heddle", wanted.heddle_us, found.heddle_us),
                ("heddle, 4 workers", wanted.heddle_four_us, found.heddle_four_us),
                ("relaxed, 4 workers", wanted.heddle_relaxed_four_us, found.heddle_relaxed_four_us),
                ("relaxed, 16 workers", wanted.heddle_relaxed_sixteen_us, found.heddle_relaxed_sixteen_us),
                ("grouped", wanted.grouped_us, found.grouped_us),
                ("grouped, 4 workers", wanted.grouped_four_us, found.grouped_four_us),
                ("grouped, merged", wanted.grouped_merged_us, found.grouped_merged_us),
            ] {
                assert!(off(found, wanted) < 0.12, "{name}: {found:.1} for {wanted:.1} with {costs:?}");
            }
        }
    }

    #[test]
    fn a_binary_log_that_was_not_measured_is_a_second_sync() {
        let costs = Costs { cores: 2, log_sync_us: 0.0, ..Costs::default() };
        let of = |synced_log, logged| derive(&Calibration { synced_log, logged, ..measured(&costs) }, &costs);
        let (without, guessed, both) = (of(false, false), of(true, false), of(true, true));
        assert_eq!((without.log_sync_us, guessed.log_sync_us), (0.0, without.sync_us));
        assert_eq!(both.sync_us, both.log_sync_us);
    }
}
