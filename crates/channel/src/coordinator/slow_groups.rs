//! Warns of a group that has been with the target for long and holds up the others. Where it waits for a lock that another session holds,
//! nothing else says so.

use std::time::{Duration, Instant};

use engine::group::{Group, GroupId};

/// A group that takes longer than this is named, and again when it has taken twice as long.
const SLOW_AFTER: Duration = Duration::from_secs(30);
/// A group that takes longer than this may be held up by something that the target knows.
const HELD_AFTER: Duration = Duration::from_millis(900);
/// Between two looks at what runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct SlowGroups {
    looked: Instant,
    /// The first group, and from when on to name it (again), counted from its dispatch.
    first: (GroupId, Duration),
    /// The first group, and how long it had been with its worker at the last look.
    held: Option<Duration>,
}

impl SlowGroups {
    pub fn new() -> Self {
        Self { looked: Instant::now(), first: (GroupId(0), Duration::MAX), held: None }
    }

    /// Once after each look: the first group has been with the target for a while. What holds it up, the target may know.
    pub fn take_held(&mut self) -> bool {
        self.held.take().is_some_and(|time| time > HELD_AFTER)
    }

    /// `first`: the first group in the log's order that a worker has, and for how long. The others wait for it.
    pub fn look<'a>(&mut self, first: impl FnOnce() -> Option<(&'a Group, Duration)>) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        self.held = None;
        let Some((group, time)) = first() else { return };
        self.held = Some(time);
        if self.first.0 != group.id {
            self.first = (group.id, SLOW_AFTER);
        }
        if time > self.first.1 {
            self.first.1 = time * 2;
            let place = group.transactions.first().map(|transaction| transaction.place()).unwrap_or_default();
            tracing::warn!(
                "{place} and {} more of its group have been with the target for {:.0} s: large changes, a DDL of a large table, or a lock that \
                 another session or a prepared XA transaction holds there: see SHOW FULL PROCESSLIST and XA RECOVER on the target",
                group.transactions.len().saturating_sub(1),
                time.as_secs_f64()
            );
        }
    }
}
