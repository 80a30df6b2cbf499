//! MySQL's appliers: one thread; workers by schema (5.6 DATABASE); a coordinator with intervals (5.7 LOGICAL_CLOCK).

use super::commit::UnorderedCommits;
use super::costs::Costs;
use super::outcome::{Outcome, Waits};
use super::resources::{Cores, Pool};
use super::rounds::Rounds;
use super::trace::{AppliedTransaction, Trace};

/// MySQL's coordinator passes each event to its worker through a queue with a lock and a wake-up, where MariaDB's hands over whole transactions: so many times
/// as expensive, and as much again for the worker that takes it out. (Measured on MySQL 9.7 with two processors, four and 16 workers, 5 to 30 events a transaction.)
const QUEUED: f64 = 6.0;

/// One after the other: execution, then commit, then the next. MariaDB reads and hands out beside it; MySQL's applier is without workers then, and takes
/// the events itself, without a queue.
pub(super) fn serial(trace: &Trace, costs: &Costs) -> Outcome {
    let mut pool = Pool::new(1);
    let mut cores = Cores::new(costs.cores);
    let (mut now, mut waits) = (0.0, Waits::default());
    for applied in &trace.transactions {
        let (processor, pages) = costs.execution(applied);
        let taking = if trace.has_groups { 0.0 } else { costs.dispatching(applied) * QUEUED / 2.0 };
        let processor = processor + taking;
        let executed = cores.run(now, processor) + pages;
        let done = executed + costs.commit_us + costs.syncs_us();
        waits.work_us += processor;
        waits.machine_us += pages;
        waits.commit_us += costs.commit_us + costs.syncs_us();
        pool.note(0, now, done);
        now = done;
    }
    Outcome::new(&pool, &cores, trace, now, waits)
}

/// Each schema has a worker, as long as it has transactions; one that touches several schemas waits for all of them.
pub(super) fn database(trace: &Trace, costs: &Costs, workers: usize) -> Outcome {
    let mut pool = Pool::new(workers);
    let mut cores = Cores::new(costs.cores);
    let mut commits = UnorderedCommits::new(costs);
    let mut worker_of: [Option<usize>; 64] = [None; 64];
    let mut schemas_of = vec![0_u32; workers];
    let (mut now, mut end, mut waits) = (0.0_f64, 0.0_f64, Waits::default());
    for applied in &trace.transactions {
        let queued = costs.dispatching(applied) * QUEUED;
        now = cores.charge(now, queued);
        let bits = if applied.schemas == 0 { 1 } else { applied.schemas };
        let (mut chosen, mut after) = (None, 0.0_f64);
        for schema in (0..64).filter(|schema| bits >> schema & 1 != 0) {
            if let Some(worker) = worker_of.get(schema).copied().flatten() {
                after = after.max(pool.free_of(worker));
                chosen.get_or_insert(worker);
            }
        }
        let worker = chosen.unwrap_or_else(|| {
            let least = schemas_of.iter().enumerate().min_by_key(|(_, count)| **count);
            least.map_or(0, |(worker, _)| worker)
        });
        for schema in (0..64).filter(|schema| bits >> schema & 1 != 0) {
            if let Some(slot) = worker_of.get_mut(schema)
                && *slot != Some(worker)
            {
                if let Some(count) = schemas_of.get_mut(worker) {
                    *count += 1;
                }
                if let Some(count) = slot.and_then(|old| schemas_of.get_mut(old)) {
                    *count -= 1;
                }
                *slot = Some(worker);
            }
        }
        // Several schemas with different workers: the coordinator itself waits until they are free.
        if bits.count_ones() > 1 {
            now = now.max(after);
        }
        // A DDL is waited for, and waits.
        if applied.barrier {
            now = now.max(end);
        }
        let begin = now.max(pool.free_of(worker)).max(after);
        let taken = cores.run(begin, queued);
        waits.work_us += queued;
        let executed = execute(applied, costs, &mut cores, taken, &mut waits);
        let committed = commits.commit(executed);
        if applied.barrier {
            now = now.max(committed.done);
        }
        waits.commit_us += committed.done - executed;
        pool.note(worker, begin, committed.done);
        end = end.max(committed.done);
    }
    Outcome::new(&pool, &cores, trace, end, waits)
}

fn execute(applied: &AppliedTransaction, costs: &Costs, cores: &mut Cores, begin: f64, waits: &mut Waits) -> f64 {
    let (processor, pages) = costs.execution(applied);
    let executed = cores.run(begin, processor) + pages;
    waits.work_us += processor;
    waits.machine_us += executed - begin - processor;
    executed
}

/// Whose tags say what may run in parallel under `LOGICAL_CLOCK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tags {
    Source,
    Writeset,
    WritesetSession,
}

/// The coordinator's rule: whether a transaction may run beside those after `committed`. The engine's `logical-clock` has the
/// same one, with the log's tags; it waits besides for all before the first transaction of a file, and after a gap.
pub(super) fn may_join(applied: &AppliedTransaction, committed: u32, tags: Tags) -> bool {
    committed
        >= match tags {
            Tags::Source => applied.source_parent,
            Tags::Writeset => applied.writeset_parent,
            Tags::WritesetSession => applied.session_parent,
        }
}

/// The coordinator waits until `last_committed` is below the low water mark, and for an idle worker; everything behind waits with it.
///
/// What it hands out until it has to wait is executed together: the workers fall into step, since those that are done wait for the syncs
/// of one group commit, and all begin anew after it. (A round lasts what its syncs last, and longer by the same amount with each worker: so it was
/// measured from one to 32 workers.) Commit order makes no difference to that.
pub(super) fn logical_clock(trace: &Trace, costs: &Costs, workers: usize, tags: Tags) -> Outcome {
    let mut rounds = Rounds::queued(costs, workers, QUEUED);
    // The last one that has committed.
    let mut committed = 0_u32;
    for (number, applied) in (1_u32..).zip(&trace.transactions) {
        if !may_join(applied, committed, tags) || rounds.is_full() {
            rounds.end(0.0);
            committed = number - 1;
        }
        rounds.take(applied);
    }
    rounds.outcome(trace)
}
