//! Asks the source for its table definitions, on a thread of its own. That may take a while; tags wait for it only at the start.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::retag::ReadDefinitions;

use super::schema;
use crate::mirror::{Link, Monitor};

const AGAIN_AFTER: Duration = Duration::from_secs(5);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);
/// A source that says nothing for so long is not waited for.
const SILENCE_MAX: Duration = Duration::from_secs(60);

pub(super) struct DefinitionReader {
    monitor: Arc<Monitor>,
    thread: Option<JoinHandle<Result<ReadDefinitions, String>>>,
    /// How many changes the log had when it was last asked with success.
    known: Option<u64>,
    changes: u64,
    not_before: Option<Instant>,
    pause: Duration,
    told: String,
}

impl DefinitionReader {
    pub fn new(monitor: Arc<Monitor>) -> Self {
        let (told, pause) = (String::new(), AGAIN_AFTER);
        Self { monitor, thread: None, known: None, changes: 0, not_before: None, pause, told }
    }

    /// Whether an answer could say more than is known: `changes` of definitions were in the log.
    pub fn is_due(&self, changes: u64) -> bool {
        self.thread.is_none()
            && self.known != Some(changes)
            && self.not_before.is_none_or(|at| at <= Instant::now())
            && matches!(self.monitor.source(), (Link::Connected, Some(_)))
    }

    /// Asks the source, if it is connected.
    pub fn begin(&mut self, changes: u64) -> bool {
        let (Link::Connected, Some((mut options, identity))) = self.monitor.source() else { return false };
        options.limits.read_timeout.get_or_insert(SILENCE_MAX);
        self.changes = changes;
        let ask = move || schema::read(&options, &identity);
        match std::thread::Builder::new().name("schema".to_owned()).spawn(ask) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => self.failed(&error.to_string()),
        }
        self.thread.is_some()
    }

    /// What it has said, once it has.
    pub fn answer(&mut self) -> Option<ReadDefinitions> {
        let thread = self.thread.take_if(|thread| thread.is_finished())?;
        match thread.join() {
            Ok(Ok(read)) => {
                self.known = Some(self.changes);
                self.not_before = Some(Instant::now() + AGAIN_AFTER);
                self.pause = AGAIN_AFTER;
                self.told.clear();
                tracing::info!("retag: the source has {} tables at {}", read.definitions.len(), read.to);
                Some(read)
            }
            Ok(Err(why)) => {
                self.failed(&why);
                None
            }
            Err(_) => {
                self.failed("the thread that asks has panicked");
                None
            }
        }
    }

    pub fn is_asking(&self) -> bool {
        self.thread.is_some()
    }

    /// What was asked is of another log.
    pub fn forget(&mut self) {
        (self.thread, self.known) = (None, None);
    }

    fn failed(&mut self, why: &str) {
        if self.told != why {
            tracing::warn!(
                "retag: the source's table definitions are not known: {why}. Transactions on tables that the log itself does not define keep the source's tags"
            );
            why.clone_into(&mut self.told);
        }
        self.not_before = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(AGAIN_AFTER_MAX);
    }
}
