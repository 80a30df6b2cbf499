//! Every model with every number of workers, several at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use sim::replica::{Costs, Model, Outcome, Trace, fits};

/// The outcomes of each model, in the order of `workers`.
pub fn all(
    trace: &Trace,
    costs: &Costs,
    models: &[Model],
    workers: &[usize],
    threads: usize,
) -> Vec<(Model, Vec<Outcome>)> {
    let jobs: Vec<(usize, usize)> =
        (0..models.len()).flat_map(|model| (0..workers.len()).map(move |number| (model, number))).collect();
    let outcomes: Mutex<Vec<Vec<Option<Outcome>>>> = Mutex::new(vec![vec![None; workers.len()]; models.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&(model, number)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (Some(kind), Some(&count)) = (models.get(model), workers.get(number)) else { continue };
            let outcome = kind.run(trace, costs, count);
            let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(slot) = outcomes.get_mut(model).and_then(|row| row.get_mut(number)) {
                *slot = Some(outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    models.iter().copied().zip(outcomes.into_iter().map(|row| row.into_iter().flatten().collect())).collect()
}

/// The models that a log has what it takes for.
pub fn applicable(trace: &Trace) -> Vec<Model> {
    let fits = |model: &Model| match model {
        Model::Serial => true,
        Model::Heddle { policy, .. } => fits(policy, trace),
        Model::LogicalClock { tags: sim::replica::Tags::Source, .. } => trace.has_tags,
        Model::Database | Model::LogicalClock { .. } => !trace.has_groups,
        Model::MariaDb { .. } => trace.has_groups,
    };
    Model::all().into_iter().filter(fits).collect()
}
