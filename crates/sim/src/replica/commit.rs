//! Commits in any order, whose syncs are shared, and commits one by one.
//!
//! A commit has up to two syncs, of the engine's log and then of the binary log. Each is a stage: who is ready when a sync begins is in
//! it, and while one group has its binary log synced, the next one has its engine's (as in MySQL's and MariaDB's group commit).

use super::costs::Costs;
use super::outcome::Waits;
use super::resources::Cores;

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

/// When a commit could begin, by the order, and when it was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitTimes {
    pub turn: f64,
    pub done: f64,
}

/// Commits one after the other over connections: the next is sent when the one before is answered, so none shares a sync.
#[derive(Debug)]
pub(super) struct SerialCommits {
    processor_us: f64,
    waiting_us: f64,
    end: f64,
}

/// Of a transaction's processor time, what its commit takes.
const COMMIT_SHARE: f64 = 0.5;

impl SerialCommits {
    pub fn new(costs: &Costs, workers: usize) -> Self {
        Self {
            processor_us: costs.transaction_us * COMMIT_SHARE + costs.commit_us,
            // The server's answer, and the turn that is handed on to another worker. Where there is none, it all is one packet.
            waiting_us: costs.syncs_us() + if workers > 1 { costs.round_trip_us + costs.turn_us } else { 0.0 },
            end: 0.0,
        }
    }

    /// What is left of a transaction's processor time before its commit.
    pub fn before_us(costs: &Costs) -> f64 {
        -costs.transaction_us * COMMIT_SHARE
    }

    /// The next in order, executed at `executed`.
    pub fn commit(&mut self, executed: f64, cores: &mut Cores) -> CommitTimes {
        let turn = executed.max(self.end);
        let synced = cores.run(turn, self.processor_us);
        self.end = synced + self.waiting_us;
        CommitTimes { turn, done: self.end }
    }
}

/// Commits in any order, asked for in the order of the stream. Who was ready long before the syncs that are known shared others with
/// transactions that come later in the stream: it waits for half a sync on average, then for its own.
#[derive(Debug)]
pub(super) struct UnorderedCommits {
    engine: Stage,
    log: Stage,
    serial_us: f64,
    serial_end: f64,
}

impl UnorderedCommits {
    pub fn new(costs: &Costs) -> Self {
        let (engine, log) = (Stage::new(costs.sync_us), Stage::new(costs.log_sync_us));
        Self { engine, log, serial_us: costs.commit_us, serial_end: 0.0 }
    }

    pub fn commit(&mut self, executed: f64) -> CommitTimes {
        // The serial part limits throughput, whoever comes when.
        self.serial_end += self.serial_us;
        let both = self.engine.sync_us + self.log.sync_us;
        let synced = if executed < self.engine.begin - self.engine.sync_us {
            executed + self.engine.sync_us / 2.0 + both
        } else {
            self.log.enter(self.engine.enter(executed))
        };
        CommitTimes { turn: executed, done: (synced + self.serial_us).max(self.serial_end) }
    }
}

pub(super) enum Commits {
    OneByOne(SerialCommits),
    Unordered(UnorderedCommits),
}

impl Commits {
    /// Of a replica that commits from outside of the server.
    pub fn from_outside(costs: &Costs, ordered: bool, workers: usize) -> Self {
        if ordered {
            Self::OneByOne(SerialCommits::new(costs, workers))
        } else {
            Self::Unordered(UnorderedCommits::new(costs))
        }
    }

    /// Processor time that the commit itself has of a transaction's: negative, to be added to its execution.
    pub fn before_us(&self, costs: &Costs) -> f64 {
        match self {
            Self::OneByOne(_) => SerialCommits::before_us(costs),
            Self::Unordered(_) => 0.0,
        }
    }

    /// When the commit of something executed at `executed` is done.
    pub fn commit(&mut self, executed: f64, waits: &mut Waits, cores: &mut Cores) -> f64 {
        let committed = match self {
            Self::OneByOne(commits) => commits.commit(executed, cores),
            Self::Unordered(commits) => commits.commit(executed),
        };
        waits.order_us += committed.turn - executed;
        waits.commit_us += committed.done - committed.turn;
        committed.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_shared() {
        let mut stage = Stage::new(100.0);
        let done: Vec<f64> = [0.0, 10.0, 50.0, 20.0, 150.0, 900.0].map(|at| stage.enter(at)).to_vec();
        // The first alone; three that came meanwhile together; one while those sync; one much later.
        assert_eq!(done, [100.0, 200.0, 200.0, 200.0, 300.0, 1000.0]);
    }

    #[test]
    fn while_one_group_syncs_its_binary_log_the_next_syncs_the_engines() {
        let costs = Costs { sync_us: 100.0, log_sync_us: 100.0, commit_us: 0.0, ..Costs::default() };
        let mut commits = UnorderedCommits::new(&costs);
        let done: Vec<f64> = [0.0, 10.0, 50.0, 120.0].map(|at| commits.commit(at).done).to_vec();
        assert_eq!(done, [200.0, 300.0, 300.0, 400.0]);
    }

    #[test]
    fn one_by_one_nothing_is_shared() {
        let costs = Costs {
            transaction_us: 80.0,
            sync_us: 100.0,
            log_sync_us: 100.0,
            commit_us: 10.0,
            round_trip_us: 5.0,
            turn_us: 5.0,
            ..Costs::default()
        };
        let (mut commits, mut cores) = (SerialCommits::new(&costs, 4), Cores::new(2));
        assert_eq!([0.0, 0.0].map(|at| commits.commit(at, &mut cores).done), [260.0, 520.0]);
    }
}
