//! Commits: syncs that are shared, in the order of the stream or not.
//!
//! A commit has up to two syncs, of the engine's log and then of the binary log. Each is a stage: who is ready when a sync begins is in
//! it, and while one group has its binary log synced, the next one has its engine's (as in MySQL's and MariaDB's group commit).

use super::Costs;

/// Syncs of one kind, one after the other.
#[derive(Debug)]
struct Stage {
    sync_us: f64,
    begin: f64,
    end: f64,
}

impl Stage {
    fn new(sync_us: f64) -> Self {
        Self { sync_us, begin: f64::NEG_INFINITY, end: 0.0 }
    }

    /// When one that is ready at `at` is synced. Those before it were ready at the same time or earlier.
    fn enter(&mut self, at: f64) -> f64 {
        if self.sync_us <= 0.0 {
            return at;
        }
        if at > self.begin {
            self.begin = at.max(self.end);
            self.end = self.begin + self.sync_us;
        }
        self.end
    }
}

/// Commits in the order in which they are asked for.
#[derive(Debug)]
pub(super) struct Ordered {
    engine: Stage,
    log: Stage,
    serial_us: f64,
    /// When the last one was ready, that is, everybody before it as well.
    ready: f64,
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
        let (engine, log) = (Stage::new(costs.sync_us), Stage::new(costs.log_sync_us));
        Self { engine, log, serial_us: costs.commit_us, ready: 0.0, end: 0.0 }
    }

    /// The next in order, executed at `executed`.
    pub fn commit(&mut self, executed: f64) -> Committed {
        self.ready = self.ready.max(executed);
        let synced = self.log.enter(self.engine.enter(self.ready));
        self.end = self.end.max(synced) + self.serial_us;
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
        Self { whole_us: costs.syncs_us() + costs.commit_us + costs.round_trip_us, end: 0.0 }
    }

    /// The next in order, executed at `executed`.
    pub fn commit(&mut self, executed: f64) -> Committed {
        let turn = executed.max(self.end);
        self.end = turn + self.whole_us;
        Committed { turn, done: self.end }
    }
}

/// Commits in any order, asked for in the order of the stream. Who was ready long before the syncs that are known shared others with
/// transactions that come later in the stream: it waits for half a sync on average, then for its own.
#[derive(Debug)]
pub(super) struct Unordered {
    engine: Stage,
    log: Stage,
    serial_us: f64,
    serial_end: f64,
}

impl Unordered {
    pub fn new(costs: &Costs) -> Self {
        let (engine, log) = (Stage::new(costs.sync_us), Stage::new(costs.log_sync_us));
        Self { engine, log, serial_us: costs.commit_us, serial_end: 0.0 }
    }

    pub fn commit(&mut self, executed: f64) -> Committed {
        // The serial part limits throughput, whoever comes when.
        self.serial_end += self.serial_us;
        let both = self.engine.sync_us + self.log.sync_us;
        let synced = if executed < self.engine.begin - self.engine.sync_us {
            executed + self.engine.sync_us / 2.0 + both
        } else {
            self.log.enter(self.engine.enter(executed))
        };
        Committed { turn: executed, done: (synced + self.serial_us).max(self.serial_end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_shared() {
        let costs = Costs { sync_us: 100.0, log_sync_us: 0.0, commit_us: 0.0, ..Costs::default() };
        let mut ordered = Ordered::new(&costs);
        let done: Vec<f64> = [0.0, 10.0, 50.0, 20.0, 150.0, 900.0].map(|at| ordered.commit(at).done).to_vec();
        // The first alone; three that came meanwhile together; one while those sync; one much later.
        assert_eq!(done, [100.0, 200.0, 200.0, 200.0, 300.0, 1000.0]);
    }

    #[test]
    fn while_one_group_syncs_its_binary_log_the_next_syncs_the_engines() {
        let costs = Costs { sync_us: 100.0, log_sync_us: 100.0, commit_us: 0.0, ..Costs::default() };
        let mut ordered = Ordered::new(&costs);
        let done: Vec<f64> = [0.0, 10.0, 50.0, 120.0].map(|at| ordered.commit(at).done).to_vec();
        assert_eq!(done, [200.0, 300.0, 300.0, 400.0]);
    }
}
