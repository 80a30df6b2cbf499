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
    free: Earliest,
}

impl Pool {
    pub fn new(workers: usize) -> Self {
        Self {
            free_us: vec![0.0; workers],
            busy_us: vec![0.0; workers],
            shares: vec![0; workers],
            free: Earliest::new(workers),
        }
    }

    pub fn len(&self) -> usize {
        self.free_us.len()
    }

    /// The idle worker of the lowest number at `at`, else the one that is free first: (worker, when). Times may go back and forth.
    pub fn next_idle(&self, at: f64) -> (usize, f64) {
        let worker = self.free.first(ticks(at));
        (worker, at.max(self.free_of(worker)))
    }

    /// When a worker is free.
    pub fn free_of(&self, worker: usize) -> f64 {
        self.free_us.get(worker).copied().unwrap_or(0.0)
    }

    /// A worker taken by [`Pool::next_idle`] has one transaction from `from` to `to`.
    pub fn occupy(&mut self, worker: usize, from: f64, to: f64) {
        self.note(worker, from, to);
        self.free.set(worker, ticks(self.free_of(worker)));
    }

    /// The same for workers that are chosen in another way: [`Pool::next_idle`] does not see it.
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

/// When each worker is free, as a tree of minima: the leaves are the workers, each node above has the least of its two. A question
/// and a change cost as many steps as the tree is high, whatever times were asked before.
#[derive(Debug)]
struct Earliest {
    /// The root is at 1; the children of `n` are at `2n` and `2n + 1`.
    least: Vec<u64>,
    leaves: usize,
}

impl Earliest {
    fn new(workers: usize) -> Self {
        let leaves = workers.max(1).next_power_of_two();
        let mut tree = Self { least: vec![u64::MAX; 2 * leaves], leaves };
        (0..workers.max(1)).for_each(|worker| tree.set(worker, 0));
        tree
    }

    fn at(&self, node: usize) -> u64 {
        self.least.get(node).copied().unwrap_or(u64::MAX)
    }

    fn set(&mut self, worker: usize, free: u64) {
        let mut node = self.leaves + worker;
        if let Some(leaf) = self.least.get_mut(node) {
            *leaf = free;
        }
        while node > 1 {
            node /= 2;
            let least = self.at(2 * node).min(self.at(2 * node + 1));
            if let Some(here) = self.least.get_mut(node) {
                *here = least;
            }
        }
    }

    /// The lowest number of those that are free at `now`; if none is, of those that are free first.
    fn first(&self, now: u64) -> usize {
        let by = now.max(self.at(1));
        let mut node = 1;
        while node < self.leaves {
            node = if self.at(2 * node) <= by { 2 * node } else { 2 * node + 1 };
        }
        node - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idle_worker_of_the_lowest_number_else_the_one_that_is_free_first() {
        for workers in [1, 2, 3, 5, 8, 13] {
            let mut pool = Pool::new(workers);
            let mut seed = workers as u64;
            for _ in 0..500 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (seed >> 54) as f64;
                let frees: Vec<u64> = (0..workers).map(|worker| ticks(pool.free_of(worker))).collect();
                let by = ticks(at).max(*frees.iter().min().unwrap());
                let expected = frees.iter().position(|free| *free <= by).unwrap();
                assert_eq!(
                    pool.next_idle(at),
                    (expected, at.max(pool.free_of(expected))),
                    "{workers} workers at {at}: {frees:?}"
                );
                pool.occupy(expected, at, at.max(pool.free_of(expected)) + (seed >> 40 & 255) as f64);
            }
        }
    }
}
