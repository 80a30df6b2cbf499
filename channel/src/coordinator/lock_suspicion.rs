//! When to ask the target who waits for whose lock: when the oldest group takes long. Soon at first, then less and less often, because the
//! answer costs the target more than many a group.

use std::time::Duration;

use engine::group::GroupId;

/// A group that takes longer than this for each of its commits may be waiting for a lock.
const SUSPECT_AFTER: Duration = Duration::from_millis(10);
/// The longest between two looks for one group.
const AGAIN_MAX: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct LockSuspicion {
    group: GroupId,
    /// When to look (again), counted from the group's dispatch.
    due: Duration,
}

impl LockSuspicion {
    pub fn new() -> Self {
        Self { group: GroupId(0), due: Duration::ZERO }
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
        // Another group; with three commits it may take longer.
        assert!(!suspicion.is_due(GroupId(2), 3, at(30)) && suspicion.is_due(GroupId(2), 3, at(31)));
    }
}
