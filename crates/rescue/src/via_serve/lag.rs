//! How far behind a replica is: the age of the newest answer of its source that it has all of. One clock, ours.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use binlog::gtids::GtidState;

/// Answers that the replica does not have yet, at the most: when it is far behind, the newer of them are left out.
const ANSWERS_MAX: usize = 256;

/// What the source had, and when.
#[derive(Debug, Default)]
pub struct Lag(VecDeque<(Instant, GtidState)>);

impl Lag {
    pub fn wants_more(&self) -> bool {
        self.0.len() < ANSWERS_MAX
    }

    pub fn source_has(&mut self, at: Instant, executed: GtidState) {
        self.0.push_back((at, executed));
    }

    /// Transactions that the source had when it answered last, and the replica has not.
    pub fn left(&self, has: &GtidState) -> Option<u64> {
        self.0.back()?.1.count_since(has)
    }

    /// The age of the newest answer that the replica has; the older ones are forgotten. `None`: it has none of them.
    pub fn now(&mut self, has: &GtidState) -> Option<Duration> {
        let mut newest = None;
        while let Some((at, _)) = self.0.front().filter(|(_, executed)| has.contains_state(executed)) {
            newest = Some(at.elapsed());
            self.0.pop_front();
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_answer_counts() {
        let state = |text: &str| text.parse::<GtidState>().unwrap();
        let mut lag = Lag::default();
        assert_eq!(lag.now(&state("0-1-9")), None);
        let now = Instant::now();
        let before = |seconds| now.checked_sub(Duration::from_secs(seconds)).unwrap();
        lag.source_has(before(60), state("0-1-5"));
        lag.source_has(before(20), state("0-1-7"));
        lag.source_has(before(1), state("0-1-9"));
        let age = lag.now(&state("0-1-8")).unwrap().as_secs();
        assert!((20..30).contains(&age), "{age}");
        assert_eq!(lag.now(&state("0-1-8")), None, "nothing new");
        assert_eq!(lag.left(&state("0-1-8")), Some(1));
        assert!(lag.now(&state("0-1-9")).unwrap() < Duration::from_secs(10));
    }
}
