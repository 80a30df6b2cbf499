//! Whether replicas may attach: written by the thread that looks at the other mirror, read by the listener and by the status.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the module. It begins closed.
#[derive(Debug)]
pub struct Gate {
    /// The other mirror, as `HOST:PORT`.
    of: String,
    is_open: AtomicBool,
    obstacle: Mutex<String>,
}

impl Gate {
    /// A closed one.
    pub fn new(of: String) -> Self {
        Self { of, is_open: AtomicBool::new(false), obstacle: Mutex::default() }
    }

    /// The other mirror.
    pub fn of(&self) -> &str {
        &self.of
    }

    /// Whether replicas may attach here.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// What would keep this mirror from taking over; empty: nothing.
    pub fn obstacle(&self) -> String {
        self.text().clone()
    }

    pub(crate) fn open(&self) {
        self.text().clear();
        self.is_open.store(true, Ordering::Release);
    }

    pub(crate) fn close(&self) {
        self.is_open.store(false, Ordering::Release);
    }

    /// Whether that is news.
    pub(super) fn set_obstacle(&self, obstacle: &str) -> bool {
        let mut text = self.text();
        let is_news = *text != obstacle;
        obstacle.clone_into(&mut text);
        is_news
    }

    fn text(&self) -> MutexGuard<'_, String> {
        self.obstacle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
