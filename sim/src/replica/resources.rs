//! Processors and workers, as the times at which they are free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time in nanoseconds, so that it can be ordered.
fn ticks(us: f64) -> u64 {
    (us * 1e3) as u64
}

/// Processors: first come, first served.
#[derive(Debug)]
pub(super) struct Cores {
    free: BinaryHeap<Reverse<u64>>,
    busy_us: f64,
}

impl Cores {
    pub fn new(cores: usize) -> Self {
        Self { free: (0..cores.max(1)).map(|_| Reverse(0)).collect(), busy_us: 0.0 }
    }

    /// Computes for `us`, from `at` on at the earliest; says when it is done.
    pub fn run(&mut self, at: f64, us: f64) -> f64 {
        self.busy_us += us;
        let Some(mut first) = self.free.peek_mut() else { return at + us };
        let begin = (first.0 as f64 / 1e3).max(at);
        first.0 = ticks(begin + us);
        begin + us
    }

    /// Computes at once: for the thread that hands out work, which waits in no queue behind the workers. The time is
    /// missing for the others.
    pub fn charge(&mut self, at: f64, us: f64) -> f64 {
        self.busy_us += us;
        if let Some(mut first) = self.free.peek_mut() {
            first.0 = first.0.max(ticks(at)) + ticks(us);
        }
        at + us
    }

    /// Work that was done at times that are known otherwise.
    pub fn note(&mut self, us: f64) {
        self.busy_us += us;
    }

    /// Share of all processors' time until `end`.
    pub fn utilisation(&self, end: f64) -> f64 {
        let whole = end * self.free.len() as f64;
        if whole > 0.0 { (self.busy_us / whole).min(1.0) } else { 0.0 }
    }
}

/// Workers by number.
#[derive(Debug)]
pub(super) struct Pool {
    free_us: Vec<f64>,
    busy_us: Vec<f64>,
    shares: Vec<u64>,
    /// Idle, as far as was asked, by number; the others by when they are free.
    idle: BinaryHeap<Reverse<u32>>,
    busy: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Pool {
    pub fn new(workers: usize) -> Self {
        Self {
            free_us: vec![0.0; workers],
            busy_us: vec![0.0; workers],
            shares: vec![0; workers],
            idle: (0..workers as u32).map(Reverse).collect(),
            busy: BinaryHeap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.free_us.len()
    }

    /// The idle worker of the lowest number at `at`, else the one that is free first: (worker, when). Times may go back and forth.
    pub fn next_idle(&mut self, at: f64) -> (usize, f64) {
        let now = ticks(at);
        while let Some(&Reverse((_, worker))) = self.busy.peek().filter(|Reverse((free, _))| *free <= now) {
            self.busy.pop();
            self.idle.push(Reverse(worker));
        }
        while let Some(Reverse(worker)) = self.idle.pop() {
            let free = ticks(self.free_of(worker as usize));
            if free <= now {
                return (worker as usize, at.max(self.free_of(worker as usize)));
            }
            // Somebody later has asked for it, and did not take it.
            self.busy.push(Reverse((free, worker)));
        }
        let worker = self.busy.pop().map_or(0, |Reverse((_, worker))| worker as usize);
        (worker, at.max(self.free_of(worker)))
    }

    /// When a worker is free.
    pub fn free_of(&self, worker: usize) -> f64 {
        self.free_us.get(worker).copied().unwrap_or(0.0)
    }

    /// A worker taken by [`Pool::next_idle`] has one transaction from `from` to `to`.
    pub fn occupy(&mut self, worker: usize, from: f64, to: f64) {
        self.note(worker, from, to);
        self.busy.push(Reverse((ticks(to), worker as u32)));
    }

    /// The same for workers that have queues and are not taken when idle.
    pub fn note(&mut self, worker: usize, from: f64, to: f64) {
        if let (Some(free), Some(busy), Some(share)) =
            (self.free_us.get_mut(worker), self.busy_us.get_mut(worker), self.shares.get_mut(worker))
        {
            *free = free.max(to);
            *busy += to - from;
            *share += 1;
        }
    }

    pub fn busy_us(&self) -> f64 {
        self.busy_us.iter().sum()
    }

    pub fn shares(&self) -> &[u64] {
        &self.shares
    }
}
