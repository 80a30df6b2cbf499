//! MariaDB's parallel replica: groups, or everything ahead of its turn; commits always in order within a domain.

use std::collections::HashMap;

use super::commit::Ordered;
use super::mysql::execute;
use super::resources::{Cores, Pool};
use super::{Costs, Mode, Outcome, Trace, Waits};

/// One replication domain.
struct Domain {
    commits: Ordered,
    group: u32,
    /// When all of the groups before have begun to commit.
    before: f64,
    /// The same with the group under way.
    executed: f64,
    /// What may not be run ahead has to be over.
    floor: f64,
}

pub(super) fn run(trace: &Trace, costs: &Costs, workers: usize, mode: Mode) -> Outcome {
    let mut pool = Pool::new(workers);
    let mut cores = Cores::new(costs.cores);
    let mut domains: HashMap<u32, Domain> = HashMap::new();
    let mut done_at = Vec::with_capacity(trace.transactions.len() + 1);
    done_at.push(0.0_f64);
    let (mut now, mut end, mut waits, mut conflicts) = (0.0_f64, 0.0_f64, Waits::default(), 0);
    for (index, applied) in trace.transactions.iter().enumerate() {
        let domain = domains.entry(applied.domain).or_insert_with(|| Domain {
            commits: Ordered::new(costs),
            group: 0,
            before: 0.0,
            executed: 0.0,
            floor: 0.0,
        });
        now = cores.charge(now, costs.dispatch_us);
        // Threads take turns; each has a queue of its own.
        let worker = index % workers;
        let mut begin = now.max(pool.free_of(worker)).max(domain.floor);
        let taken = begin;
        match mode {
            // Only commits run beside what comes next.
            Mode::Minimal => begin = begin.max(domain.executed),
            Mode::Conservative => {
                if applied.group != domain.group {
                    domain.group = applied.group;
                    domain.before = domain.executed;
                }
                begin = begin.max(domain.before);
            }
            Mode::Optimistic if applied.held || applied.alone => begin = begin.max(domain.commits.end()),
            Mode::Aggressive if applied.alone => begin = begin.max(domain.commits.end()),
            Mode::Optimistic | Mode::Aggressive => {}
        }
        let mut executed = execute(applied, costs, &mut cores, begin, &mut waits);
        let blocked = trace.follows(applied).iter().filter_map(|&number| done_at.get(number as usize));
        let blocked = blocked.copied().fold(0.0_f64, f64::max);
        if blocked > begin {
            conflicts += 1;
            let (processor, _) = costs.execution(applied);
            let again = cores.run(blocked.max(begin), processor / 2.0);
            waits.work_us += processor / 2.0;
            waits.order_us += (again - executed).max(0.0);
            executed = executed.max(again);
        }
        domain.executed = domain.executed.max(executed);
        let committed = domain.commits.commit(executed);
        waits.order_us += committed.turn - executed;
        waits.commit_us += committed.done - committed.turn;
        if applied.alone && matches!(mode, Mode::Optimistic | Mode::Aggressive) {
            domain.floor = committed.done;
        }
        pool.note(worker, taken, committed.done);
        done_at.push(committed.done);
        end = end.max(committed.done);
    }
    let mut outcome = Outcome::new(&pool, &cores, trace, end, waits);
    outcome.conflicts = conflicts;
    outcome
}
