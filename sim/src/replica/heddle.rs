//! Heddle with exact dependencies: transactions one by one, or many in one target transaction.

use super::commit::Ordered;
use super::mysql::{Commits, execute};
use super::resources::{Cores, Pool};
use super::{Applied, Costs, Outcome, Trace, Waits};

/// A group's limits, as the scheduler's.
const GROUP_TRANSACTIONS_MAX: usize = 2_000;
const GROUP_ROWS_MAX: u64 = 10_000;

/// How far ahead of the first that has not committed others are looked at.
const AHEAD: usize = 10_000;

/// A transaction that waits for another does not keep later ones from starting.
pub(super) fn single(trace: &Trace, costs: &Costs, workers: usize, ordered: bool) -> Outcome {
    let mut pool = Pool::new(workers);
    let mut cores = Cores::new(costs.cores);
    let mut commits = Commits::new(costs, ordered);
    let mut done_at = Vec::with_capacity(trace.transactions.len() + 1);
    done_at.push(0.0_f64);
    let (mut now, mut all, mut floor, mut waits) = (0.0_f64, 0.0_f64, 0.0_f64, Waits::default());
    for (index, applied) in trace.transactions.iter().enumerate() {
        now = cores.charge(now, costs.dispatch_us);
        if let Some(&far) = index.checked_sub(AHEAD).and_then(|index| done_at.get(index)) {
            now = now.max(far);
        }
        let after = if applied.barrier { all } else { floor.max(latest(trace, applied, &done_at)) };
        let (worker, begin) = pool.next_idle(now.max(after));
        let executed = execute(applied, costs, &mut cores, begin, &mut waits);
        let done = commits.commit(executed, &mut waits);
        pool.occupy(worker, begin, done);
        done_at.push(done);
        all = all.max(done);
        if applied.barrier {
            floor = all;
        }
    }
    Outcome::new(&pool, &cores, trace, all, waits)
}

fn latest(trace: &Trace, applied: &Applied, done_at: &[f64]) -> f64 {
    let done = trace.follows(applied).iter().filter_map(|&number| done_at.get(number as usize));
    done.copied().fold(0.0, f64::max)
}

/// Groups of consecutive transactions. Rows that nothing uncommitted touches are applied at once, the others after the commit
/// that they wait for.
pub(super) fn grouped(trace: &Trace, costs: &Costs, workers: usize) -> Outcome {
    let mut pool = Pool::new(workers);
    let mut cores = Cores::new(costs.cores);
    let mut commits = Ordered::new(costs);
    let mut done_at = Vec::with_capacity(trace.transactions.len() + 1);
    done_at.push(0.0_f64);
    let (mut now, mut all, mut waits) = (0.0_f64, 0.0_f64, Waits::default());
    let mut rest = trace.transactions.as_slice();
    let mut first_number = 1_u32;
    while !rest.is_empty() {
        let length = group_length(rest);
        let (group, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        let alone = group.iter().any(|applied| applied.barrier);
        now = cores.charge(now, costs.dispatch_us * group.len() as f64 / 4.0);
        let (worker, mut begin) = pool.next_idle(now);
        if alone {
            begin = begin.max(all);
        }
        let (mut held_rows, mut rows, mut after, mut source_us) = (0.0, 0.0, 0.0_f64, 0.0_f64);
        for applied in group {
            let own = f64::from(applied.rows);
            rows += own;
            source_us += f64::from(applied.source_us);
            let before = trace.follows(applied).iter().filter(|&&number| number < first_number);
            let blocked = before.filter_map(|&number| done_at.get(number as usize)).copied().fold(0.0_f64, f64::max);
            if blocked > begin {
                held_rows += own;
                after = after.max(blocked);
            }
        }
        let row_us = if group.len() > 1 { costs.group_row_us } else { costs.row_us };
        let pages = costs.miss_share * costs.miss_us;
        let ahead = costs.group_us.max(source_us) + (rows - held_rows) * row_us;
        let mut executed = cores.run(begin, ahead) + (rows - held_rows) * pages;
        if held_rows > 0.0 {
            let from = executed.max(after);
            waits.order_us += from - executed;
            executed = cores.run(from, held_rows * row_us) + held_rows * pages;
        }
        waits.work_us += ahead + held_rows * row_us;
        let committed = commits.commit(executed);
        waits.order_us += committed.turn - executed;
        waits.commit_us += committed.done - committed.turn;
        pool.occupy(worker, begin, committed.done);
        if alone {
            now = now.max(committed.done);
        }
        all = all.max(committed.done);
        done_at.resize(done_at.len() + group.len(), committed.done);
        first_number += group.len() as u32;
    }
    Outcome::new(&pool, &cores, trace, all, waits)
}

fn group_length(rest: &[Applied]) -> usize {
    let mut rows = 0;
    for (at, applied) in rest.iter().take(GROUP_TRANSACTIONS_MAX).enumerate() {
        rows += u64::from(applied.rows);
        if applied.barrier {
            return at.max(1);
        }
        if rows > GROUP_ROWS_MAX {
            return at.max(1);
        }
    }
    rest.len().min(GROUP_TRANSACTIONS_MAX)
}
