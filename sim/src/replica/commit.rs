//! Commits: syncs that are shared, in the order of the stream or not.

use super::Costs;

/// Commits in the order in which they are asked for.
#[derive(Debug)]
pub(super) struct Ordered {
    sync_us: f64,
    serial_us: f64,
    /// When the last one was ready, that is, everybody before it as well.
    ready: f64,
    /// The last group of commits: when it began to sync, when it is done.
    begin: f64,
    end: f64,
}

/// When a commit could begin, by the order, and when it was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub turn: f64,
    pub done: f64,
}

impl Ordered {
    pub fn new(costs: &Costs) -> Self {
        Self { sync_us: costs.sync_us, serial_us: costs.commit_us, ready: 0.0, begin: f64::NEG_INFINITY, end: 0.0 }
    }

    /// The next in order, executed at `executed`.
    pub fn commit(&mut self, executed: f64) -> Committed {
        self.ready = self.ready.max(executed);
        if self.ready > self.begin {
            self.begin = self.ready.max(self.end);
            self.end = self.begin + self.sync_us;
        }
        self.end += self.serial_us;
        Committed { turn: self.ready, done: self.end }
    }

    /// When all so far are done.
    pub fn end(&self) -> f64 {
        self.end
    }
}

/// Commits one after the other over connections: the next is sent when the one before is answered, so none shares a sync.
#[derive(Debug)]
pub(super) struct OneByOne {
    whole_us: f64,
    end: f64,
}

impl OneByOne {
    pub fn new(costs: &Costs) -> Self {
        Self { whole_us: costs.sync_us + costs.commit_us + costs.round_trip_us, end: 0.0 }
    }

    /// The next in order, executed at `executed`.
    pub fn commit(&mut self, executed: f64) -> Committed {
        let turn = executed.max(self.end);
        self.end = turn + self.whole_us;
        Committed { turn, done: self.end }
    }
}

/// Commits in any order, asked for in the order of the stream. Who is ready while a sync is under way is in the next one; who
/// was ready long before the syncs that are known shared others with transactions that come later in the stream: it waits
/// for half a sync on average, then for its own.
#[derive(Debug)]
pub(super) struct Unordered {
    sync_us: f64,
    serial_us: f64,
    begin: f64,
    end: f64,
    serial_end: f64,
}

impl Unordered {
    pub fn new(costs: &Costs) -> Self {
        Self { sync_us: costs.sync_us, serial_us: costs.commit_us, begin: f64::NEG_INFINITY, end: 0.0, serial_end: 0.0 }
    }

    pub fn commit(&mut self, executed: f64) -> Committed {
        // The serial part limits throughput, whoever comes when.
        self.serial_end += self.serial_us;
        let synced = if executed < self.begin - self.sync_us {
            executed + 1.5 * self.sync_us
        } else {
            if executed > self.begin {
                self.begin = executed.max(self.end);
                self.end = self.begin + self.sync_us;
            }
            self.end
        };
        Committed { turn: executed, done: (synced + self.serial_us).max(self.serial_end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_shared() {
        let costs = Costs { sync_us: 100.0, commit_us: 0.0, ..Costs::default() };
        let mut ordered = Ordered::new(&costs);
        let done: Vec<f64> = [0.0, 10.0, 50.0, 20.0, 150.0, 900.0].map(|at| ordered.commit(at).done).to_vec();
        // The first alone; three that came meanwhile together; one while those sync; one much later.
        assert_eq!(done, [100.0, 200.0, 200.0, 200.0, 300.0, 1000.0]);
    }
}
