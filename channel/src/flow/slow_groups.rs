//! Names the group that holds up the others when it has been with the target for long: nothing else says so where it waits for a lock of somebody else's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::group::{Group, GroupId};

/// A group that takes longer than this is named, and again when it has taken twice as long.
const SLOW_AFTER: Duration = Duration::from_secs(30);
/// Between two looks at what runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct SlowGroups {
    looked: Instant,
    /// The first group, and from when on to name it (again), counted from its dispatch.
    first: (GroupId, Duration),
}

impl SlowGroups {
    pub fn new() -> Self {
        Self { looked: Instant::now(), first: (GroupId(0), Duration::MAX) }
    }

    /// `running`: for each worker its group, and since when. The first group in the log's order is the one that others wait for.
    pub fn look(&mut self, running: &[Option<(Arc<Group>, Instant)>]) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        let first = running.iter().flatten().min_by_key(|(group, _)| group.first());
        let Some((group, time)) = first.map(|(group, since)| (group, since.elapsed())) else { return };
        if self.first.0 != group.id {
            self.first = (group.id, SLOW_AFTER);
        }
        if time > self.first.1 {
            self.first.1 = time * 2;
            let place = group.transactions.first().map(|transaction| transaction.place()).unwrap_or_default();
            tracing::warn!(
                "{place} and {} more of its group have been with the target for {:.0} s: large changes, a definition of a large table, or a lock that \
                 somebody else holds there (another session, a prepared XA transaction): see SHOW FULL PROCESSLIST and XA RECOVER on the target",
                group.transactions.len().saturating_sub(1),
                time.as_secs_f64()
            );
        }
    }
}
