//! The thread: file after file, with the table definitions that are known at each beginning. What fails now is tried again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::retag::Tagger;
use engine::survey::Definitions;
use relay::fs::{Fs, RealFs};

use super::definitions::DefinitionReader;
use super::lookahead::ahead;
use super::monitor::TagMonitor;
use super::outcome::{FileOutcome, Trouble};
use super::settings::{POLL, Schema, Settings, StreamState};
use super::tags_file::is_complete;
use crate::inventory::{Inventory, LogFile};
use crate::mirror::{Link, Monitor};
use crate::retag::TagMeasures;

/// So long the first connection to the source is waited for, and a mirror that gets nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// So long replicas wait for what the source says of its tables: one of them may be locked there.
const DEFINITIONS_PATIENCE: Duration = Duration::from_secs(30);
const AGAIN_AFTER: Duration = Duration::from_secs(5);

pub(super) struct Follower {
    pub settings: Settings,
    pub inventory: Arc<Inventory>,
    /// How the source is reached.
    monitor: Arc<Monitor>,
    pub tags: Arc<TagMonitor>,
    pub shared: Arc<StreamState>,
    pub fs: Arc<dyn Fs>,
    /// `None`: one begins with the next file.
    pub tagger: Option<Tagger>,
    /// Whose files the tagger has read.
    dir: PathBuf,
    pub asking: DefinitionReader,
    /// A table was not known since the source was asked.
    pub has_unknown: bool,
    /// What the tagger had changed of definitions when they were shown to clients last.
    pub shown: Option<u64>,
    told: String,
    /// Measures since this process began.
    pub measured: TagMeasures,
}

impl Follower {
    pub fn new(
        settings: Settings,
        inventory: Arc<Inventory>,
        monitor: Arc<Monitor>,
        tags: Arc<TagMonitor>,
        shared: Arc<StreamState>,
    ) -> Self {
        let asking = DefinitionReader::new(Arc::clone(&monitor));
        let (fs, dir, told) = (Arc::new(RealFs), PathBuf::new(), String::new());
        Self {
            settings,
            inventory,
            monitor,
            tags,
            shared,
            fs,
            tagger: None,
            dir,
            asking,
            has_unknown: false,
            shown: None,
            told,
            measured: TagMeasures::default(),
        }
    }

    pub fn run(&mut self) {
        let mut before: Option<Arc<LogFile>> = None;
        while !self.shared.is_stopped() {
            let Some(file) = self.next(&mut before) else {
                std::thread::sleep(POLL);
                continue;
            };
            match self.file(&file) {
                Ok(FileOutcome::Whole) => before = Some(file),
                Ok(FileOutcome::Again) => self.tagger = None,
                Ok(FileOutcome::Stopped) => {}
                Err(Trouble(why)) => {
                    if self.told != why {
                        tracing::error!("retag: {why}. Replicas get nothing after this place until it is repaired");
                        self.told = why;
                    }
                    self.tagger = None;
                    self.pause(AGAIN_AFTER);
                }
            }
        }
    }

    /// The first file behind `before` that is not complete.
    fn next(&mut self, before: &mut Option<Arc<LogFile>>) -> Option<Arc<LogFile>> {
        loop {
            let file = self.inventory.behind(before.as_deref())?;
            let Some(length) = file.sealed().filter(|length| is_complete(file.path(), *length)) else {
                return Some(file);
            };
            self.inventory.tagged_to(&file, length, length);
            self.tagger = None;
            *before = Some(file);
        }
    }

    /// There is a tagger, from the beginning of this file on if it is the first.
    pub fn begin(&mut self, file: &Arc<LogFile>) -> Result<(), Trouble> {
        let dir = file.path().parent().unwrap_or(file.path());
        if self.tagger.is_some() && self.dir == dir {
            return Ok(());
        }
        dir.clone_into(&mut self.dir);
        self.asking.forget();
        self.has_unknown = false;
        self.shown = None;
        self.tagger = Some(self.new_tagger(file)?);
        Ok(())
    }

    fn new_tagger(&mut self, file: &Arc<LogFile>) -> Result<Tagger, Trouble> {
        let options = self.settings.options;
        let mut without = Tagger::new(options, Definitions::default(), &[]);
        let Some(schema) = self.settings.schema.clone() else { return Ok(without) };
        // Nobody can be asked for a former source's.
        if !self.inventory.is_present(file) || !self.is_connected() {
            return Ok(without);
        }
        let (definitions, read, to) = match schema {
            Schema::Given(definitions) => (definitions, None, self.settled_end()),
            Schema::OfSource => match self.ask() {
                Some(read) => (read.definitions.clone(), Some(read.clone()), Some(read.to)),
                None => {
                    // Its answer counts when it comes.
                    if self.asking.is_asking() {
                        without.expect_definitions();
                    }
                    return Ok(without);
                }
            },
        };
        let Some(to) = to.filter(|to| self.comes_to(file, to)) else {
            tracing::warn!(
                "retag: the mirror does not reach the position at which the source's tables were read, so their definitions are not used"
            );
            return Ok(without);
        };
        let go_on = || !self.shared.is_stopped();
        let later = ahead(&self.inventory, file, &to, options.transaction_bytes_max, &go_on)?;
        let mut tagger = Tagger::new(options, definitions, &later);
        if let Some(read) = read {
            tagger.expect_definitions();
            tagger.take_definitions(read);
        }
        Ok(tagger)
    }

    /// Whether the source is there, or comes soon.
    fn is_connected(&self) -> bool {
        let began = Instant::now();
        while self.monitor.source().0 != Link::Connected {
            if self.shared.is_stopped() || began.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(POLL);
        }
        true
    }

    /// The source's definitions, waited for. `None`, and it is still being asked: it takes long.
    fn ask(&mut self) -> Option<engine::retag::ReadDefinitions> {
        self.asking.begin(0);
        let began = Instant::now();
        loop {
            let answer = self.asking.answer();
            if answer.is_some() || !self.asking.is_asking() || self.shared.is_stopped() {
                return answer;
            }
            if began.elapsed() > DEFINITIONS_PATIENCE {
                tracing::warn!(
                    "retag: the source's table definitions are not read yet: until then, transactions on tables that the log does not define keep the source's tags"
                );
                return None;
            }
            std::thread::sleep(POLL / 5);
        }
    }

    /// Where the source's log ended when the mirror connected, or behind it.
    fn settled_end(&self) -> Option<LogPosition> {
        while self.inventory.is_settling() && !self.shared.is_stopped() {
            std::thread::sleep(POLL);
        }
        self.inventory.end().filter(|_| self.monitor.source().0 == Link::Connected)
    }

    /// Waits until the mirror has come to a place in the log of this file.
    fn comes_to(&self, file: &LogFile, to: &LogPosition) -> bool {
        let (mut end, mut moved) = (None, Instant::now());
        while !self.shared.is_stopped() && self.inventory.is_present(file) {
            let now = self.inventory.end();
            if now.as_ref().is_some_and(|now| now >= to) {
                return true;
            }
            if now != end {
                (end, moved) = (now, Instant::now());
            }
            if moved.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(POLL / 5);
        }
        false
    }

    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.shared.is_stopped() {
            std::thread::sleep(POLL);
        }
    }
}
