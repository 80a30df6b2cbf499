//! How many workers are worth it.
//!
//! As tuning goes by hand (from "Monitoring multi-threaded replication", 2025): raise the number until the waits for
//! workers are gone and what remains are conflicts; more than that only moves chairs. Here: the smallest number that
//! reaches nearly all of what the best number does.

use super::outcome::Outcome;

/// Of the best throughput, what counts as nearly all.
const NEARLY_ALL: f64 = 0.95;

/// The recommendation of one series of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    pub workers: usize,
    pub transactions_per_second: f64,
    /// What further workers would mostly wait for: `dependencies`, `commit_order`, `commits` or `machine`; `work` when no more
    /// were tried.
    pub limited_by: &'static str,
}

/// Of runs with different numbers of workers.
pub fn knee(outcomes: &[Outcome]) -> Option<Knee> {
    let best = outcomes.iter().map(Outcome::transactions_per_second).fold(0.0, f64::max);
    let enough = outcomes.iter().filter(|outcome| outcome.transactions_per_second() >= NEARLY_ALL * best);
    let chosen = enough.min_by_key(|outcome| outcome.workers)?;
    // What one more worker would wait for shows with more workers.
    let more = outcomes.iter().filter(|outcome| outcome.workers > chosen.workers).min_by_key(|outcome| outcome.workers);
    Some(Knee {
        workers: chosen.workers,
        transactions_per_second: chosen.transactions_per_second(),
        limited_by: more.map_or("work", limited_by),
    })
}

/// The greatest of a run's waits.
fn limited_by(outcome: &Outcome) -> &'static str {
    let waits = &outcome.waits;
    let all = [
        ("dependencies", waits.dependency_us),
        ("commit_order", waits.order_us),
        ("commits", waits.commit_us),
        ("machine", waits.machine_us),
    ];
    all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("work", |(name, _)| name)
}
