//! New tags for a mirror that grows. The mirror's files stay the source's. Each has a file of tags beside it, and replicas are sent the two together.
//!
//! One thread reads durable bytes, in the order of the log, and releases them to replicas when their tags are durable, too. So every replica is sent the same, whenever it attaches, and
//! whatever ended the process in between.

mod definitions;
mod file_pass;
mod follower;
mod lookahead;
mod monitor;
mod outcome;
pub mod schema;
mod settings;
mod tags_file;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use engine::failure::{Failure, FailureKind};

use self::follower::Follower;
pub use self::monitor::TagMonitor;
use self::settings::{POLL, StreamState};
pub use self::settings::{Schema, Settings};
pub use self::tags_file::TagsReader;
use crate::inventory::Inventory;
use crate::mirror::Monitor;

/// The thread.
pub struct Retagger {
    shared: Arc<StreamState>,
    monitor: Arc<TagMonitor>,
    thread: Option<JoinHandle<()>>,
}

impl Retagger {
    /// Begins: before replicas can attach.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(settings: Settings, inventory: &Arc<Inventory>, monitor: &Arc<Monitor>) -> Result<Self, Failure> {
        inventory.serve_tagged();
        let shared = Arc::new(StreamState::default());
        let tags = Arc::new(TagMonitor::default());
        let (inventory, source) = (Arc::clone(inventory), Arc::clone(monitor));
        let mut follower = Follower::new(settings, inventory, source, Arc::clone(&tags), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("retag".to_owned()).spawn(move || follower.run());
        let thread = thread.map_err(|error| Failure::new(FailureKind::Exhausted, format!("retag: {error}")))?;
        Ok(Self { shared, monitor: tags, thread: Some(thread) })
    }

    /// The progress of the new tags.
    pub fn monitor(&self) -> Arc<TagMonitor> {
        Arc::clone(&self.monitor)
    }

    /// Until all that is there has its tags, or `stop` is set.
    pub fn wait_for_end(&self, inventory: &Inventory, stop: &AtomicBool) {
        let is_alive = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while is_alive() && !inventory.is_all_tagged() && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(POLL);
        }
    }

    /// Ends the thread; what went wrong with it, if something did.
    pub fn finish(mut self) -> Option<Failure> {
        self.shared.stop.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            return Some(Failure::new(FailureKind::Refused, "the thread that makes tags has panicked"));
        }
        None
    }
}
