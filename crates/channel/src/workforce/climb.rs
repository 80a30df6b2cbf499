//! How many workers: more of them while the target waits for its disk to read, as long as it reads faster then. Pure.
//!
//! A target that has its rows in memory keeps a core busy with one worker: more workers only wait for each other's turn. One that has to read each row
//! from its disk first does nothing meanwhile, and as many workers as can wait at a time make it faster: how many that are depends on the disk.
//!
//! How fast it is, is told by the pages that it reads. Rows are committed a group at a time: on such a target some thousands every few seconds.

/// So many workers there may come to be.
pub fn most(workers: usize) -> usize {
    STEPS.into_iter().fold(workers, usize::max)
}

/// What happened since the last look, while transactions waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClimbSample {
    /// Rows that were committed.
    pub rows: u64,
    pub seconds: f64,
    /// Pages that the target read from its disk.
    pub pages_read: u64,
}

/// A page for fewer rows: the disk is waited for.
const ROWS_PER_PAGE_MAX: u64 = 20;
/// A second: fewer tell nothing.
const PAGES_MIN: f64 = 50.0;
/// More workers have to be so much faster.
const FASTER_BY: f64 = 1.15;
/// Steps, from one number of workers to the next.
const STEPS: [usize; 3] = [8, 16, 32];
/// After a step that was none forward, not again before so many looks.
const REST_LOOKS: u32 = 60;
/// The rows are in memory after so many looks that saw no reads; one may only have seen a target that was writing.
const WITHOUT_READS: u32 = 4;

#[derive(Debug)]
pub struct Climb {
    /// The fewest first.
    levels: Vec<usize>,
    level: usize,
    /// The last change was a look ago: work that was begun before it is still under way.
    is_settling: bool,
    /// Pages per second on the level below, if this one is tried.
    below: Option<f64>,
    rest: u32,
    /// Looks in a row that saw no reads.
    without_reads: u32,
}

impl Climb {
    /// `workers`: at first, and at least.
    pub fn new(workers: usize) -> Self {
        let levels = std::iter::once(workers).chain(STEPS.into_iter().filter(|&step| step > workers)).collect();
        Self { levels, level: 0, is_settling: false, below: None, rest: 0, without_reads: 0 }
    }

    /// How many workers are used from now on.
    pub fn look(&mut self, seen: ClimbSample) -> usize {
        self.decide(seen);
        self.workers()
    }

    fn workers(&self) -> usize {
        self.levels.get(self.level).copied().unwrap_or(1)
    }

    fn decide(&mut self, seen: ClimbSample) {
        if std::mem::take(&mut self.is_settling) {
            return;
        }
        self.rest = self.rest.saturating_sub(1);
        let rate = seen.pages_read as f64 / seen.seconds.max(0.001);
        if rate < PAGES_MIN || seen.pages_read < seen.rows / ROWS_PER_PAGE_MAX {
            self.without_reads += 1;
            // More workers would wait for each other's turn.
            if self.level > 0 && self.without_reads >= WITHOUT_READS {
                self.below = None;
                self.go_to(0);
            }
            return;
        }
        self.without_reads = 0;
        match self.below.take() {
            Some(below) if rate < below * FASTER_BY => {
                self.go_to(self.level - 1);
                self.rest = REST_LOOKS;
            }
            _ if self.rest == 0 && self.level + 1 < self.levels.len() => {
                self.below = Some(rate);
                self.go_to(self.level + 1);
            }
            _ => {}
        }
    }

    fn go_to(&mut self, level: usize) {
        self.level = level;
        self.is_settling = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks so often at a target that reads so many pages a second with so many workers, one for each row, and commits every fourth time; returns all numbers.
    fn looks(climb: &mut Climb, count: usize, pages: impl Fn(usize) -> u64) -> Vec<usize> {
        let (mut workers, mut rows) = (climb.workers(), 0);
        let mut all = Vec::new();
        for look in 1..=count {
            let pages_read = pages(workers) / 2;
            rows += pages_read;
            let committed = if look % 4 == 0 { std::mem::take(&mut rows) } else { 0 };
            workers = climb.look(ClimbSample { rows: committed, seconds: 0.5, pages_read });
            all.push(workers);
        }
        all
    }

    #[test]
    fn as_long_as_it_is_faster() {
        assert_eq!(looks(&mut Climb::new(3), 7, |workers| workers as u64 * 600), [8, 8, 16, 16, 32, 32, 32]);
        // A disk that can not do more than 16 at a time.
        let most = |workers: usize| workers.min(16) as u64 * 600;
        assert_eq!(looks(&mut Climb::new(3), 7, most), [8, 8, 16, 16, 32, 32, 16]);
    }

    #[test]
    fn a_step_that_was_none_forward_is_tried_again_later() {
        let mut climb = Climb::new(3);
        let slower = |workers: usize| 5_000 - workers as u64;
        let all = looks(&mut climb, 80, slower);
        assert_eq!(all.iter().take(4).copied().collect::<Vec<_>>(), [8, 8, 3, 3]);
        let again = all.iter().skip(3).position(|&workers| workers == 8).unwrap_or_default();
        assert!(again >= REST_LOOKS as usize - 2, "{all:?}");
    }

    #[test]
    fn only_where_the_disk_is_waited_for() {
        // None, and a page now and then.
        for pages_read in [0, 900] {
            let mut climb = Climb::new(3);
            for _ in 0..9 {
                assert_eq!(climb.look(ClimbSample { rows: 60_000, seconds: 0.5, pages_read }), 3);
            }
        }
    }

    #[test]
    fn back_once_the_rows_are_in_memory() {
        let mut climb = Climb::new(3);
        let per_worker = |workers: usize| workers as u64 * 600;
        assert_eq!(looks(&mut climb, 4, per_worker), [8, 8, 16, 16]);
        // It only wrote meanwhile.
        assert_eq!(looks(&mut climb, 2, |_| 0), [16, 16]);
        assert_eq!(looks(&mut climb, 1, per_worker), [32]);
        assert_eq!(looks(&mut climb, 6, |_| 0), [32, 32, 32, 32, 3, 3]);
        assert_eq!(looks(&mut climb, 3, per_worker), [8, 8, 16]);
    }

    #[test]
    fn never_fewer_than_at_first() {
        let per_worker = |workers: usize| workers as u64 * 600;
        assert_eq!(looks(&mut Climb::new(20), 4, per_worker), [32; 4]);
        assert_eq!(looks(&mut Climb::new(40), 4, per_worker), [40; 4]);
    }
}
