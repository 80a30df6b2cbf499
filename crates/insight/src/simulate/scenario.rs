//! What other appliers would make of a log, beside the one that applies it now.

use serde::{Deserialize, Serialize};
use sim::replica::{Costs, Model, Trace};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Scenario {
    /// As `heddle simulate --policy` names it.
    pub policy: String,
    pub workers: u64,
    /// As it is now: 1.
    pub times: f64,
}

impl Scenario {
    pub fn words(&self, now: u64) -> String {
        format!(
            "simulated: {} with {} workers is {:.1} times as fast as now ({now} workers)",
            self.policy, self.workers, self.times
        )
    }
}

/// Fewer transactions say nothing of how fast something is.
const TRANSACTIONS_MIN: usize = 100;

/// An applier with so many workers.
pub type ApplierSetting = (Model, usize);

/// The log, as one applier takes it.
pub struct Simulation<'a> {
    trace: &'a Trace,
    costs: Costs,
    /// Transactions a second.
    base: f64,
}

impl<'a> Simulation<'a> {
    /// `None`: nothing can be said of this log.
    pub fn new(trace: &'a Trace, (model, workers): ApplierSetting) -> Option<Self> {
        let costs = Costs::default();
        if trace.transactions.len() < TRANSACTIONS_MIN || !model.fits(trace) {
            return None;
        }
        let base = model.run(trace, &costs, workers).transactions_per_second();
        (base > 0.0).then_some(Self { trace, costs, base })
    }

    pub fn times(&self, (model, workers): ApplierSetting) -> Option<f64> {
        let rate =
            model.fits(self.trace).then(|| model.run(self.trace, &self.costs, workers).transactions_per_second());
        rate.filter(|rate| *rate > 0.0).map(|rate| rate / self.base)
    }

    pub fn what_if(&self, other: ApplierSetting) -> Option<Scenario> {
        let (model, workers) = other;
        Some(Scenario { policy: model.name(), workers: workers as u64, times: self.times(other)? })
    }
}
