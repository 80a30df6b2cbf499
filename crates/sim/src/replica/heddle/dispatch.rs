//! Who begins when, with so many workers: transactions one by one, or many in one target transaction.
//!
//! It stands for the engine's scheduler, and models of it that a transaction begins when its placement lets it and a worker is
//! idle, in the order of the stream. It leaves out: in the source's order a transaction that waits keeps its worker; a
//! group takes what waits when it is formed (here there is always more), and grows and shrinks with its pace; small
//! transactions in packets; retries but for one rolled back speculation.

use engine::schedule::{ROWS_MAX, TRANSACTIONS_MAX};

use super::placements::Placements;
use super::trace_history::TraceHistory;
use crate::replica::commit::Commits;
use crate::replica::costs::Costs;
use crate::replica::outcome::{Outcome, Waits};
use crate::replica::resources::{Cores, Pool};
use crate::replica::trace::{AppliedTransaction, Trace};

/// How far ahead of the first that has not committed others are looked at.
const AHEAD: usize = 10_000;

/// Until a lock wait of a speculative policy is noticed.
const NOTICED_US: f64 = 10_000.0;

/// What is applied, and how.
pub(in crate::replica) struct Replica<'a> {
    pub trace: &'a Trace,
    pub placements: &'a Placements,
    pub costs: &'a Costs,
    pub workers: usize,
    /// Commits are in the source's order.
    pub ordered: bool,
}

/// Each transaction by itself: statements, their answer, then the commit.
pub(in crate::replica) fn single(replica: &Replica<'_>) -> Outcome {
    run_single(replica, |_, _| ())
}

/// `each` hears when each transaction began and was done.
pub(super) fn run_single(replica: &Replica<'_>, mut each: impl FnMut(f64, f64)) -> Outcome {
    let Replica { trace, placements, costs, workers, ordered } = *replica;
    let mut pool = Pool::new(workers);
    let mut cores = Cores::new(costs.cores);
    let mut commits = Commits::from_outside(costs, ordered, workers);
    let own_us = if ordered { costs.heddle_us } else { costs.relaxed_us };
    let mut past = TraceHistory::new(trace);
    let (mut now, mut floor, mut waits, mut conflicts) = (0.0_f64, 0.0_f64, Waits::default(), 0);
    for (index, (applied, (placed, predecessors))) in trace.transactions.iter().zip(placements.iter()).enumerate() {
        now = cores.charge(now, costs.dispatching(applied));
        now = now.max(index.checked_sub(AHEAD).map_or(0.0, |far| past.done_at(far)));
        let after = floor.max(past.after(placed, predecessors));
        let (worker, begin) = pool.next_idle(now.max(after));
        let (processor, pages) = costs.execution(applied);
        let processor = processor + own_us + commits.before_us(costs);
        let mut executed = cores.run(begin, processor) + pages + costs.round_trip_us;
        waits.work_us += processor;
        waits.machine_us += executed - begin - processor;
        if placed.speculative && past.followed(applied) > begin {
            // Rolled back when it is noticed; runs again when all before have committed.
            conflicts += 1;
            let again = cores.run(past.all().max(begin + NOTICED_US), processor) + pages + costs.round_trip_us;
            waits.order_us += again - executed - processor;
            waits.work_us += processor;
            executed = again;
        }
        let done = commits.commit(executed, &mut waits, &mut cores);
        pool.occupy(worker, begin, done);
        past.add(executed, done);
        each(begin, done);
        if applied.barrier {
            floor = past.all();
        }
    }
    let mut outcome = Outcome::new(&pool, &cores, trace, past.all(), waits);
    outcome.conflicts = conflicts;
    outcome
}

/// Groups of consecutive transactions. With a policy that knows rows, transactions that nothing uncommitted touches are applied at
/// once, the others after the commit that they wait for; with other policies a group waits as a whole.
pub(in crate::replica) fn grouped(replica: &Replica<'_>) -> Outcome {
    let Replica { trace, placements, costs, workers, ordered } = *replica;
    let mut pool = Pool::new(workers);
    let mut cores = Cores::new(costs.cores);
    let mut commits = Commits::from_outside(costs, ordered, workers);
    let mut past = TraceHistory::new(trace);
    let (mut now, mut waits, mut conflicts) = (0.0_f64, Waits::default(), 0);
    let mut rest = trace.transactions.as_slice();
    let mut placed_next = placements.iter();
    let mut first_number = 1_u32;
    while !rest.is_empty() {
        let (group, behind) = rest.split_at(group_length(rest).min(rest.len()));
        rest = behind;
        let is_barrier = group.iter().any(|applied| applied.barrier);
        let load = Load::of(group, trace, first_number, costs);
        // Decoding, keys and placement are the feeder's, of which there is one.
        now = cores.charge(now, load.processor_us * costs.feed_share);
        let (mut speculative, mut whole) = (false, 0.0_f64);
        for (placed, predecessors) in placed_next.by_ref().take(group.len()) {
            speculative |= placed.speculative;
            whole = whole.max(past.after(placed, predecessors));
        }
        let by_row = placements.by_row && !is_barrier;
        let whole = if by_row { 0.0 } else { whole };
        let (worker, begin) = pool.next_idle(now.max(whole));
        let blocked = |applied: &AppliedTransaction| past.followed(applied) > begin;
        let deferred = if by_row {
            Load::of(group.iter().filter(|applied| blocked(applied)), trace, first_number, costs)
        } else {
            Load::default()
        };
        let fixed = (costs.group_us + commits.before_us(costs)).max(0.0);
        let ahead = fixed.max(load.source_us) + load.processor_us - deferred.processor_us;
        let mut executed = cores.run(begin, ahead) + load.pages_us - deferred.pages_us + costs.round_trip_us;
        waits.work_us += ahead + deferred.processor_us;
        if deferred.processor_us > 0.0 {
            let after = group.iter().map(|applied| past.followed(applied)).fold(0.0, f64::max);
            let from = executed.max(after);
            waits.order_us += from - executed;
            executed = cores.run(from, deferred.processor_us) + deferred.pages_us;
        }
        if speculative && group.iter().any(blocked) {
            conflicts += group.len() as u64;
            let again = cores.run(past.all().max(begin + NOTICED_US), ahead) + load.pages_us;
            waits.order_us += (again - executed - ahead).max(0.0);
            waits.work_us += ahead;
            executed = again;
        }
        let done = commits.commit(executed, &mut waits, &mut cores);
        pool.occupy(worker, begin, done);
        if is_barrier {
            now = now.max(done);
        }
        for _ in group {
            past.add(executed, done);
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
    fn of<'a>(
        group: impl IntoIterator<Item = &'a AppliedTransaction>,
        trace: &Trace,
        first_number: u32,
        costs: &Costs,
    ) -> Self {
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

fn group_length(rest: &[AppliedTransaction]) -> usize {
    let mut rows = 0;
    for (at, applied) in rest.iter().take(TRANSACTIONS_MAX).enumerate() {
        rows += u64::from(applied.rows);
        if applied.barrier || rows > ROWS_MAX as u64 {
            return at.max(1);
        }
    }
    rest.len().min(TRANSACTIONS_MAX)
}
