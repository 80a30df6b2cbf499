//! MariaDB's parallel replica: groups, or everything ahead of its turn; commits always in order within a domain.

use super::rounds::Rounds;
use super::{Costs, Mode, Outcome, Trace};

/// What the threads have at the same time commits as one group, as with MySQL. A round ends where the next transaction may not be run beside it:
/// by the mode, or (aggressive, optimistic) because it meets the row of one in the round and has to wait for its commit.
pub(super) fn run(trace: &Trace, costs: &Costs, workers: usize, mode: Mode) -> Outcome {
    let mut rounds = Rounds::new(costs, workers);
    let (mut group, mut first, mut conflicts, mut again_us) = ((0, 0), 1_u32, 0, 0.0);
    // The last round had what nothing may run beside.
    let mut alone = false;
    for (number, applied) in (1_u32..).zip(&trace.transactions) {
        // Other domains do not wait.
        let same_domain = group.0 == applied.domain;
        let meets = trace.follows(applied).iter().any(|&before| before >= first);
        let waits = match mode {
            Mode::Minimal => true,
            Mode::Conservative => same_domain && group.1 != applied.group,
            Mode::Optimistic => applied.held || applied.alone || alone,
            Mode::Aggressive => applied.alone || alone,
        };
        let speculates = matches!(mode, Mode::Optimistic | Mode::Aggressive);
        if !rounds.is_empty() && (waits || meets || rounds.is_full()) {
            if meets && !waits && speculates && !rounds.is_full() {
                // Run ahead, rolled back, and half of it done again.
                conflicts += 1;
                again_us += costs.execution(applied).0 / 2.0;
            }
            rounds.end(std::mem::take(&mut again_us));
            first = number;
        }
        group = (applied.domain, applied.group);
        alone = applied.alone && speculates;
        rounds.take(applied);
    }
    let mut outcome = rounds.outcome(trace);
    outcome.conflicts = conflicts;
    outcome
}
