//! MariaDB's parallel replica: groups, or everything ahead of its turn; commits always in order within a domain.

use super::costs::Costs;
use super::outcome::Outcome;
use super::rounds::Rounds;
use super::trace::{AppliedTransaction, Trace};

/// `slave_parallel_mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Minimal,
    Conservative,
    Optimistic,
    Aggressive,
}

/// What the current round began with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub domain: u32,
    pub group: u32,
    /// The transaction before is one that nothing may run beside.
    pub after_barrier: bool,
}

impl Mode {
    fn speculates(self) -> bool {
        matches!(self, Self::Optimistic | Self::Aggressive)
    }

    /// The server's rule, rows apart: whether a transaction waits for the round that is under way. The engine's `minimal`,
    /// `conservative`, `optimistic` and `aggressive` have the same one within a domain; they keep the order across domains, too.
    pub(super) fn waits(self, applied: &AppliedTransaction, round: Round) -> bool {
        match self {
            Self::Minimal => true,
            // Other domains do not wait.
            Self::Conservative => round.domain == applied.domain && round.group != applied.group,
            Self::Optimistic => applied.doubtful || applied.never_ahead || round.after_barrier,
            Self::Aggressive => applied.never_ahead || round.after_barrier,
        }
    }
}

/// What the threads have at the same time commits as one group, as with MySQL. A round ends where the next transaction may not be run beside it:
/// by the mode, or (aggressive, optimistic) because it meets the row of one in the round and has to wait for its commit.
pub(super) fn run(trace: &Trace, costs: &Costs, workers: usize, mode: Mode) -> Outcome {
    let mut rounds = Rounds::new(costs, workers);
    let (mut round, mut first, mut conflicts, mut again_us) = (Round::default(), 1_u32, 0, 0.0);
    for (number, applied) in (1_u32..).zip(&trace.transactions) {
        let meets = trace.follows(applied).iter().any(|&before| before >= first);
        let waits = mode.waits(applied, round);
        if !rounds.is_empty() && (waits || meets || rounds.is_full()) {
            if meets && !waits && mode.speculates() && !rounds.is_full() {
                // Run ahead, rolled back, and half of it done again.
                conflicts += 1;
                again_us += costs.execution(applied).0 / 2.0;
            }
            rounds.end(std::mem::take(&mut again_us));
            first = number;
        }
        let after_barrier = applied.never_ahead && mode.speculates();
        round = Round { domain: applied.domain, group: applied.group, after_barrier };
        rounds.take(applied);
    }
    let mut outcome = rounds.outcome(trace);
    outcome.conflicts = conflicts;
    outcome
}
