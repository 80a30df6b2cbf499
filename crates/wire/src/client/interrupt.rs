//! The wish of the whole process to end, as what waits for servers sees it. Sets nothing by itself and starts no timer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A flag, such as one that a signal sets. Once it is set, what is under way may go on for [`Interrupt::GRACE`]; then connecting, logging in, reading
/// and writing end with [`Error::Interrupted`](crate::Error::Interrupted). Clones share all of it. By default nothing sets it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    flag: Arc<AtomicBool>,
    noticed: OnceLock<Instant>,
    /// What is a part of something else ends with it.
    above: Option<Interrupt>,
}

impl Interrupt {
    /// What is under way may take so much longer.
    pub const GRACE: Duration = Duration::from_millis(3500);

    /// Goes by this flag.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Interrupt(Arc::new(Shared { flag, noticed: OnceLock::new(), above: None }))
    }

    /// Another one for a part of what this one ends: it is asked when this one is, and by a flag of its own.
    #[must_use]
    pub fn for_part(&self) -> Self {
        Interrupt(Arc::new(Shared { above: Some(self.clone()), ..Shared::default() }))
    }

    /// What sets it.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0.flag)
    }

    /// The process is asked to end.
    pub fn is_asked(&self) -> bool {
        let is_above_asked = self.0.above.as_ref().is_some_and(Interrupt::is_asked);
        let asked = is_above_asked || self.0.flag.load(Ordering::Relaxed);
        if asked {
            self.0.noticed.get_or_init(Instant::now);
        }
        asked
    }

    /// It is asked to end, and the grace, which begins when the first of all clones notices, is over.
    pub fn is_over(&self) -> bool {
        self.is_asked() && self.0.noticed.get().is_some_and(|noticed| noticed.elapsed() >= Self::GRACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_for_all_clones() {
        let flag = Arc::new(AtomicBool::new(false));
        let (one, other) = (Interrupt::new(Arc::clone(&flag)), Interrupt::default());
        assert!(!one.is_asked() && !one.is_over() && !other.is_asked());
        flag.store(true, Ordering::Relaxed);
        assert!(one.is_asked() && !one.is_over() && !other.is_asked());
        std::thread::sleep(Interrupt::GRACE);
        assert!(one.clone().is_over());
    }

    #[test]
    fn a_part_ends_alone_or_with_the_whole() {
        let whole = Interrupt::default();
        let (one, other) = (whole.for_part(), whole.for_part());
        one.flag().store(true, Ordering::Relaxed);
        assert!(one.is_asked() && !whole.is_asked() && !other.is_asked());
        whole.flag().store(true, Ordering::Relaxed);
        assert!(other.is_asked());
    }
}
