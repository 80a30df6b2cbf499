//! The embedded store as the target: rows in fjall, a log-structured key-value database in a folder of its own.
//!
//! Rows and progress go into one write, which is atomic; an fsync makes all writes before it durable, and groups share
//! it. The store keeps rows, not code: views, routines, triggers, indexes and accounts count as done. It enforces no
//! constraint but its own: a row that a change needs is there, one that an insert brings is not.
//!
//! `files` the folder · `keys` of everything in it · `tables` names, numbers, table maps · `records` what it says of itself ·
//! `identity` what tells rows apart · `image` stored rows · `rows` changes · `pending` before their commit · `shared` the open store ·
//! `session` one worker · `barrier` and `ddl` transactions that run as barriers · `catalogue` what ordering sees · `durable` shared
//! fsyncs · `dropped_rows` their removal · `dump` and `status` reading a store.

mod barrier;
mod catalogue;
mod ddl;
mod dropped_rows;
pub mod dump;
mod durable_writes;
mod files;
mod identity;
mod image;
mod keys;
mod pending_rows;
mod progress;
mod records;
mod rows;
mod session;
mod status;
mod store_state;
mod tables;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;
use engine::schema::Catalogue;

pub use dump::{TableSum, checksum, dump};
pub use status::status;

use self::catalogue::StoreCatalogue;
use self::files::{Files, FolderContent};
use self::records::{known, load_tables};
use self::session::StoreSession;
use self::store_state::StoreState;
use super::{ChannelRecord, Footprint, PROCESS_BYTES, Session, Target};
use crate::checks::{Checks, SourceFacts};

pub struct StoreTarget {
    path: PathBuf,
    channel: String,
    /// There once [`Target::open`] was called.
    shared: OnceLock<Arc<StoreState>>,
}

impl StoreTarget {
    /// For a store in a folder, or a new one where nothing is. Opened, and made, with [`Target::open`].
    pub fn open_path(path: &Path, channel: &str, _workers: usize) -> Result<Self, Failure> {
        files::inspect(path)?;
        Ok(Self { path: path.to_owned(), channel: channel.to_owned(), shared: OnceLock::new() })
    }

    fn shared(&self) -> Result<&Arc<StoreState>, Failure> {
        let not_open = || Failure::new(FailureKind::Refused, format!("the store {} is not open", self.path.display()));
        self.shared.get().ok_or_else(not_open)
    }
}

impl Target for StoreTarget {
    fn describe(&self) -> String {
        format!("store {}", self.path.display())
    }

    fn machine(&self) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    fn open(&self) -> Result<ChannelRecord, Failure> {
        if self.shared.get().is_none() {
            let opened = StoreState::open(&self.path, &self.channel)?;
            self.shared.get_or_init(|| Arc::new(opened));
        }
        self.shared()?.known()
    }

    fn peek(&self) -> Result<ChannelRecord, Failure> {
        match (self.shared.get(), files::inspect(&self.path)?) {
            (Some(shared), _) => shared.known(),
            (None, FolderContent::Store) => known(&Files::open(&self.path)?, &self.channel),
            (None, FolderContent::Nothing) => Ok(ChannelRecord::default()),
        }
    }

    fn start_at(&self, mark: &Mark, source: &str) -> Result<(), Failure> {
        self.shared()?.start_at(mark, source)
    }

    fn record_part(&self, part: Option<&str>) -> Result<(), Failure> {
        self.shared()?.record_part(part)
    }

    fn catalogue(&self) -> Result<Box<dyn Catalogue + Send>, Failure> {
        Ok(Box::new(StoreCatalogue::new(Arc::clone(self.shared()?))))
    }

    fn session(&self, _worker: usize) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(StoreSession::new(Arc::clone(self.shared()?))))
    }

    fn checkpoint(&self, mark: &Mark) -> Result<(), Failure> {
        self.shared()?.checkpoint(mark)
    }

    /// Sessions hold no locks.
    fn lock_waits(&self) -> Result<Vec<(usize, usize)>, Failure> {
        Ok(Vec::new())
    }

    fn interrupt(&self, _worker: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn locks_rows(&self) -> bool {
        false
    }

    fn footprint(&self) -> Footprint {
        Footprint { base_bytes: PROCESS_BYTES + files::BUFFERS_BYTES + pending_rows::BUFFERS_BYTES, event_copies: 3 }
    }

    fn syncs_for_several(&self) -> bool {
        true
    }

    fn still_held(&self) -> Result<(), Failure> {
        // The lock on its directory is the operating system's, and goes with the process only.
        Ok(())
    }

    fn close(&self) {
        if let Some(shared) = self.shared.get() {
            shared.close();
        }
    }

    fn check(&self, _source: Option<&SourceFacts>, report: &mut Checks) {
        match files::inspect(&self.path) {
            Ok(FolderContent::Nothing) => match files::try_making(&self.path) {
                Ok(()) => report.ok.push(format!("a new store is made in {}", self.path.display())),
                Err(failure) => report.problems.push(failure.to_string()),
            },
            Ok(FolderContent::Store) => match Files::open(&self.path).and_then(|files| load_tables(&files)) {
                Ok(tables) => report.ok.push(format!("the store has {} tables", tables.names().len())),
                Err(failure) => report.problems.push(failure.to_string()),
            },
            Err(failure) => report.problems.push(failure.to_string()),
        }
        report.warnings.push(
            "the store holds rows: statements that change data stop the channel, and so do partial JSON updates; \
             binlog_row_metadata=FULL on the source names primary keys"
                .to_owned(),
        );
    }
}
