//! Every model with every number of workers, several models at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use engine::policy::Policies;
use sim::replica::{Costs, Model, Outcome, Trace};

/// The outcomes of each model, in the order of `workers`. A model's policy places the trace once for all numbers of workers.
pub fn all(
    trace: &Trace,
    costs: &Costs,
    models: &[Model],
    workers: &[usize],
    threads: usize,
) -> Vec<(Model, Vec<Outcome>)> {
    let outcomes: Mutex<Vec<Vec<Outcome>>> = Mutex::new(vec![Vec::new(); models.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(model) = models.get(number) else { break };
            let prepared = model.prepare(trace);
            let done = workers.iter().map(|&count| prepared.run(costs, count)).collect();
            if let Some(slot) = outcomes.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
                *slot = done;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    models.iter().copied().zip(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// The models that a log has what it takes for.
pub fn applicable(trace: &Trace, policies: Policies) -> Vec<Model> {
    Model::all(policies).into_iter().filter(|model| model.fits(trace)).collect()
}
