//! Workers of a server in step: they execute together, then share the syncs of one group commit.

use super::costs::Costs;
use super::outcome::{Outcome, Waits};
use super::resources::{Cores, Pool};
use super::trace::{AppliedTransaction, Trace};

#[derive(Debug)]
pub(super) struct Rounds<'a> {
    costs: &'a Costs,
    pool: Pool,
    cores: Cores,
    /// Processor and waiting time of those that are in the round.
    round: Vec<(f64, f64)>,
    /// What handing them out takes.
    dispatch_us: f64,
    /// Through queues: how many times as expensive, for the worker, too.
    queued: Option<f64>,
    /// When the round begins.
    begin: f64,
    waits: Waits,
}

impl<'a> Rounds<'a> {
    pub fn new(costs: &'a Costs, workers: usize) -> Self {
        Self::of(costs, workers, None)
    }

    /// Events go through queues: handing one out is so many times as expensive, and its worker has to take it out.
    pub fn queued(costs: &'a Costs, workers: usize, times: f64) -> Self {
        Self::of(costs, workers, Some(times))
    }

    fn of(costs: &'a Costs, workers: usize, queued: Option<f64>) -> Self {
        Self {
            costs,
            pool: Pool::new(workers),
            cores: Cores::new(costs.cores),
            round: Vec::with_capacity(workers),
            dispatch_us: 0.0,
            queued,
            begin: 0.0,
            waits: Waits::default(),
        }
    }

    pub fn is_full(&self) -> bool {
        self.round.len() >= self.pool.len()
    }

    pub fn is_empty(&self) -> bool {
        self.round.is_empty()
    }

    /// One more in the round.
    pub fn take(&mut self, applied: &AppliedTransaction) {
        let (processor, pages) = self.costs.execution(applied);
        let dispatch = self.costs.dispatching(applied) * self.queued.unwrap_or(1.0);
        let taking = if self.queued.is_some() { dispatch } else { 0.0 };
        self.round.push((processor + taking, pages));
        self.dispatch_us += dispatch;
    }

    /// All in it execute, share the processors, and commit; some of them do so much work again.
    pub fn end(&mut self, again_us: f64) {
        if self.round.is_empty() {
            return;
        }
        let costs = self.costs;
        let dispatch = std::mem::take(&mut self.dispatch_us);
        let work: f64 = self.round.iter().map(|(processor, _)| processor).sum::<f64>() + again_us;
        let longest = self.round.iter().map(|(processor, pages)| processor + pages).fold(0.0, f64::max);
        // Handing out goes on beside what is executed, and takes its part of the processors.
        let executed = longest.max((work + dispatch) / costs.cores.max(1) as f64).max(dispatch);
        self.cores.note(work + dispatch);
        let commit = costs.syncs_us() + costs.commit_us * self.round.len() as f64;
        let done = self.begin + executed + commit;
        for (worker, (processor, _)) in std::mem::take(&mut self.round).into_iter().enumerate() {
            self.pool.note(worker, self.begin, done);
            self.waits.work_us += processor;
            self.waits.machine_us += (executed - processor).max(0.0);
            self.waits.commit_us += commit;
        }
        self.waits.work_us += again_us;
        self.begin = done;
    }

    pub fn outcome(mut self, trace: &Trace) -> Outcome {
        self.end(0.0);
        Outcome::new(&self.pool, &self.cores, trace, self.begin, self.waits)
    }
}
