//! Heddle: transactions one by one, or many in one target transaction.

use engine::schedule::{ROWS_MAX, TRANSACTIONS_MAX};

use super::Policy;
use super::mysql::Commits;
use super::policy::Past;
use super::resources::{Cores, Pool};
use super::{Applied, Costs, Outcome, Trace, Waits};

/// How far ahead of the first that has not committed others are looked at.
const AHEAD: usize = 10_000;

/// Until a lock wait of an optimistic policy is noticed.
const NOTICED_US: f64 = 10_000.0;

/// Each transaction by itself: statements, their answer, then the commit.
pub(super) fn single(trace: &Trace, costs: &Costs, workers: usize, policy: Policy, ordered: bool) -> Outcome {
    let mut pool = Pool::new(workers);
    let mut cores = Cores::new(costs.cores);
    let mut commits = Commits::from_outside(costs, ordered, workers);
    let own_us = if ordered { costs.heddle_us } else { costs.relaxed_us };
    let mut past = Past::new(trace, policy);
    let (mut now, mut floor, mut waits, mut conflicts) = (0.0_f64, 0.0_f64, Waits::default(), 0);
    for (index, applied) in trace.transactions.iter().enumerate() {
        now = cores.charge(now, costs.dispatching(applied));
        now = now.max(index.checked_sub(AHEAD).map_or(0.0, |far| past.done_at(far)));
        let after = floor.max(past.after(applied));
        if past.blocks() {
            now = now.max(after);
        }
        let (worker, begin) = pool.next_idle(now.max(after));
        let (processor, pages) = costs.execution(applied);
        let processor = processor + own_us + commits.before_us(costs);
        let mut executed = cores.run(begin, processor) + pages + costs.round_trip_us;
        waits.work_us += processor;
        waits.machine_us += executed - begin - processor;
        if policy.speculates() && past.followed(applied) > begin {
            // Rolled back when it is noticed; runs again when all before have committed.
            conflicts += 1;
            let again = cores.run(past.all().max(begin + NOTICED_US), processor) + pages + costs.round_trip_us;
            waits.order_us += again - executed - processor;
            waits.work_us += processor;
            executed = again;
        }
        let done = commits.commit(executed, &mut waits, &mut cores);
        pool.occupy(worker, begin, done);
        past.note(applied, executed, done);
        if applied.barrier {
            floor = past.all();
        }
    }
    let mut outcome = Outcome::new(&pool, &cores, trace, past.all(), waits);
    outcome.conflicts = conflicts;
    outcome
}

/// Groups of consecutive transactions. By the rows, what nothing uncommitted touches is applied at once, the others after the
/// commit that they wait for; with the other policies a group waits as a whole.
pub(super) fn grouped(trace: &Trace, costs: &Costs, workers: usize, policy: Policy, ordered: bool) -> Outcome {
    let mut pool = Pool::new(workers);
    let mut cores = Cores::new(costs.cores);
    let mut commits = Commits::from_outside(costs, ordered, workers);
    let mut past = Past::new(trace, policy);
    let (mut now, mut waits, mut conflicts) = (0.0_f64, Waits::default(), 0);
    let mut rest = trace.transactions.as_slice();
    let mut first_number = 1_u32;
    while !rest.is_empty() {
        let (group, behind) = rest.split_at(group_length(rest).min(rest.len()));
        rest = behind;
        let alone = group.iter().any(|applied| applied.barrier);
        let load = Load::of(group, trace, first_number, costs);
        // Decoding, keys and placement are the feeder's, of which there is one.
        now = cores.charge(now, load.processor_us * costs.feed_share);
        let by_row = policy.name == "writeset" && !alone;
        let whole = if by_row { 0.0 } else { group.iter().map(|applied| past.after(applied)).fold(0.0, f64::max) };
        if past.blocks() {
            now = now.max(whole);
        }
        let (worker, begin) = pool.next_idle(now.max(whole));
        let blocked = |applied: &Applied| past.followed(applied) > begin;
        let held = if by_row {
            Load::of(group.iter().filter(|applied| blocked(applied)), trace, first_number, costs)
        } else {
            Load::default()
        };
        let fixed = (costs.group_us + commits.before_us(costs)).max(0.0);
        let ahead = fixed.max(load.source_us) + load.processor_us - held.processor_us;
        let mut executed = cores.run(begin, ahead) + load.pages_us - held.pages_us + costs.round_trip_us;
        waits.work_us += ahead + held.processor_us;
        if held.processor_us > 0.0 {
            let after = group.iter().map(|applied| past.followed(applied)).fold(0.0, f64::max);
            let from = executed.max(after);
            waits.order_us += from - executed;
            executed = cores.run(from, held.processor_us) + held.pages_us;
        }
        if policy.speculates() && group.iter().any(blocked) {
            conflicts += group.len() as u64;
            let again = cores.run(past.all().max(begin + NOTICED_US), ahead) + load.pages_us;
            waits.order_us += (again - executed - ahead).max(0.0);
            waits.work_us += ahead;
            executed = again;
        }
        let done = commits.commit(executed, &mut waits, &mut cores);
        pool.occupy(worker, begin, done);
        if alone {
            now = now.max(done);
        }
        for applied in group {
            past.note(applied, executed, done);
        }
        first_number += group.len() as u32;
    }
    let mut outcome = Outcome::new(&pool, &cores, trace, past.all(), waits);
    outcome.conflicts = conflicts;
    outcome
}

/// What a group, or a part of it, takes.
#[derive(Debug, Default)]
struct Load {
    processor_us: f64,
    pages_us: f64,
    /// What statements and DDL took on the source.
    source_us: f64,
}

impl Load {
    fn of<'a>(group: impl IntoIterator<Item = &'a Applied>, trace: &Trace, first_number: u32, costs: &Costs) -> Self {
        let mut load = Self::default();
        let (mut transactions, mut rows, mut merged) = (0.0, 0.0, 0.0);
        for applied in group {
            // A predecessor in the same group changes the same row: one change is left of both.
            let inside = trace.follows(applied).iter().filter(|&&number| number >= first_number).count();
            let again = f64::from(applied.rows).min(inside as f64);
            transactions += 1.0;
            rows += f64::from(applied.rows) - again;
            merged += again;
            load.source_us += f64::from(applied.source_us);
        }
        load.processor_us =
            transactions * costs.group_transaction_us + rows * costs.group_row_us + merged * costs.merged_row_us;
        load.pages_us = rows * costs.miss_share * costs.miss_us;
        load
    }
}

fn group_length(rest: &[Applied]) -> usize {
    let mut rows = 0;
    for (at, applied) in rest.iter().take(TRANSACTIONS_MAX).enumerate() {
        rows += u64::from(applied.rows);
        if applied.barrier || rows > ROWS_MAX as u64 {
            return at.max(1);
        }
    }
    rest.len().min(TRANSACTIONS_MAX)
}
