//! When to ask the target who waits for whose lock: when the oldest group takes long. Soon at first, then less and less often, because the
//! answer costs the target more than many a group: the more locks there are, the more (docs/design-notes.md, "Many tables").

use std::time::{Duration, Instant};

use engine::group::GroupId;

/// A group that takes longer than this for each of its commits may be waiting for a lock.
const SUSPECT_AFTER: Duration = Duration::from_millis(10);
/// The longest between two looks for one group.
const AGAIN_MAX: Duration = Duration::from_millis(200);
/// After a look there is none for so many times as long as it took.
const PAUSE_TIMES: u32 = 10;

#[derive(Debug)]
pub struct LockSuspicion {
    group: GroupId,
    /// When to look (again), counted from the group's dispatch.
    due: Duration,
    /// When it was due last.
    looked: Option<Instant>,
}

impl LockSuspicion {
    pub fn new() -> Self {
        Self { group: GroupId(0), due: Duration::ZERO, looked: None }
    }

    /// `took`: how long the last look did.
    pub fn may_look(&self, took: Duration) -> bool {
        self.looked.is_none_or(|at| at.elapsed() > took * PAUSE_TIMES)
    }

    /// `oldest`: the group that has been with a worker for the longest time. `commits`: how many commits it needs.
    pub fn is_due(&mut self, oldest: GroupId, commits: usize, time: Duration) -> bool {
        if self.group != oldest {
            self.group = oldest;
            self.due = SUSPECT_AFTER * u32::try_from(commits).unwrap_or(u32::MAX);
        }
        let is_due = time > self.due;
        if is_due {
            self.due = time + time.min(AGAIN_MAX);
            self.looked = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_less_and_less_often() {
        let mut suspicion = LockSuspicion::new();
        let at = |millis| Duration::from_millis(millis);
        let one = GroupId(1);
        let looks: Vec<u64> = (0..1000).filter(|&millis| suspicion.is_due(one, 1, at(millis))).collect();
        assert_eq!(looks, [11, 23, 47, 95, 191, 383, 584, 785, 986]);
        assert!(suspicion.may_look(Duration::ZERO) && !suspicion.may_look(Duration::from_secs(60)));
        // Another group; with three commits it may take longer.
        assert!(!suspicion.is_due(GroupId(2), 3, at(30)) && suspicion.is_due(GroupId(2), 3, at(31)));
    }
}
