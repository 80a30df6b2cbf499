//! The embedded store as the target: rows in fjall, a log-structured key-value database in a folder of its own.
//!
//! Rows and progress go into one write, which is atomic; an fsync makes all writes before it durable, and groups share
//! it. The store keeps rows, not code: views, routines, triggers, indexes and accounts count as done. It enforces no
//! constraint but its own: a row that a change needs is there, one that an insert brings is not.
//!
//! `files` the folder · `keys` of everything in it · `tables` names, numbers, table maps · `identity` what tells rows apart ·
//! `image` stored rows · `rows` changes · `pending` before their commit · `session` one worker · `alone` and `ddl`
//! transactions that run alone · `catalogue` what ordering sees · `durable` shared fsyncs · `sweep` dropped rows · `dump`
//! and `status` reading a store.

mod alone;
mod catalogue;
mod ddl;
pub mod dump;
mod durable;
mod files;
mod identity;
mod image;
mod keys;
mod pending;
mod progress;
mod rows;
mod session;
mod status;
mod sweep;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use binlog::gtids::GtidState;
use engine::Seq;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;
use engine::schema::Catalogue;
use fjall::{OwnedWriteBatch, PersistMode};

pub use dump::{TableSum, checksum, dump};
pub use status::status;

use self::catalogue::StoreCatalogue;
use self::durable::{Coming, Durable, Ticket};
use self::files::{Files, Found, failure};
use self::pending::Pending;
use self::session::StoreSession;
use self::sweep::Sweeper;
use self::tables::{Tables, Writes};
use super::{Opened, Range, Session, Target};
use crate::checks::{Checks, SourceFacts};

/// What the sessions of one store share.
pub struct Shared {
    pub(self) files: Arc<Files>,
    channel: String,
    tables: Mutex<Tables>,
    /// Changes whenever what sessions remember of tables may be out of date.
    epoch: AtomicU64,
    durable: Arc<Durable>,
    /// The last mark's number; held over each write of progress, so that progress is written in its order.
    low_water: Mutex<Seq>,
    /// The first failed write: fjall takes none after it.
    broken: OnceLock<Failure>,
    sweeper: Sweeper,
}

pub struct StoreTarget {
    path: PathBuf,
    channel: String,
    /// There once [`Target::open`] was called.
    shared: OnceLock<Arc<Shared>>,
}

impl StoreTarget {
    /// For a store in a folder, or a new one where nothing is. Opened, and made, with [`Target::open`].
    pub fn open_path(path: &Path, channel: &str, _workers: usize) -> Result<Self, Failure> {
        files::inspect(path)?;
        Ok(Self { path: path.to_owned(), channel: channel.to_owned(), shared: OnceLock::new() })
    }

    fn shared(&self) -> Result<&Arc<Shared>, Failure> {
        let not_open = || Failure::new(FailureKind::Refused, format!("the store {} is not open", self.path.display()));
        self.shared.get().ok_or_else(not_open)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere ends the run; the values behind are whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A committed transaction in the staging keyspace is applied, one that was cut short is forgotten.
fn finish_staged(files: &Files) -> Result<(), Failure> {
    let finish = || match files.data.contains_key(keys::staged())? {
        true => pending::replay(files),
        false => pending::clear(files),
    };
    finish().map_err(|error| failure(&files.path, &error))
}

fn load_tables(files: &Files) -> Result<Tables, Failure> {
    let mut tables = Tables::default();
    for prefix in [keys::versions(), keys::tables(), keys::garbage()] {
        for entry in files.data.prefix(prefix) {
            let (key, value) = entry.into_inner().map_err(|error| failure(&files.path, &error))?;
            tables.load(&key, &value).map_err(|why| {
                Failure::new(FailureKind::Refused, format!("the store {} is damaged: {why}", files.path.display()))
            })?;
        }
    }
    Ok(tables)
}

impl Shared {
    /// Opens the store. Only one process can have it open.
    fn open(path: &Path, channel: &str) -> Result<Self, Failure> {
        let files = Arc::new(Files::open(path, true)?);
        finish_staged(&files)?;
        let tables = load_tables(&files)?;
        let sweeper = Sweeper::start(Arc::clone(&files))
            .map_err(|error| Failure::new(FailureKind::Exhausted, format!("starting a thread: {error}")))?;
        for entry in files.data.prefix(keys::garbage()) {
            let key = entry.key().map_err(|error| failure(path, &error))?;
            if let Some(number) = keys::number(&key) {
                sweeper.sweep(number);
            }
        }
        let shared = Self {
            files,
            channel: channel.to_owned(),
            tables: Mutex::new(tables),
            epoch: AtomicU64::new(1),
            durable: Arc::default(),
            low_water: Mutex::new(0),
            broken: OnceLock::new(),
            sweeper,
        };
        *locked(&shared.low_water) = shared.mark()?.map_or(0, |mark| mark.seq);
        Ok(shared)
    }

    pub(self) fn tables(&self) -> MutexGuard<'_, Tables> {
        locked(&self.tables)
    }

    pub(self) fn forget_resolved(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    pub(self) fn failed(&self, error: &fjall::Error) -> Failure {
        failure(&self.files.path, error)
    }

    /// Of a write: every later one fails as well, and says why the first did.
    fn broke(&self, error: &fjall::Error) -> Failure {
        self.broken.get_or_init(|| self.failed(error)).clone()
    }

    pub(self) fn check(&self) -> Result<(), Failure> {
        self.broken.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Writes records outside any transaction.
    pub(self) fn write(&self, writes: Writes) -> Result<(), Failure> {
        self.files.check_space()?;
        let mut batch = self.files.db.batch();
        self.add(&mut batch, writes);
        batch.commit().map_err(|error| self.broke(&error))
    }

    /// The last write of each key: all entries of a batch are of one moment, and two of one key have no order.
    fn add(&self, batch: &mut OwnedWriteBatch, writes: Writes) {
        let last: BTreeMap<Vec<u8>, Option<Vec<u8>>> = writes.into_iter().collect();
        for (key, value) in last {
            match value {
                Some(value) => batch.insert(&self.files.data, key, value),
                None => batch.remove(&self.files.data, key),
            }
        }
    }

    /// Writes rows, records and progress at once. Not yet durable: see [`Shared::sync`].
    pub(self) fn commit(&self, pending: &mut Pending, records: Writes, range: Range<'_>) -> Result<Ticket, Failure> {
        self.check()?;
        self.files.check_space()?;
        let files = &self.files;
        let mut batch = OwnedWriteBatch::with_capacity(files.db.clone(), pending.len() + records.len() + 2);
        let staged = pending.is_staged();
        if staged {
            pending.stage(files).map_err(|error| self.broke(&error))?;
            batch.insert(&files.data, keys::staged(), range.mark.seq.to_be_bytes());
        }
        // Neighbours in the table are neighbours in memory: that is where the time of a write goes.
        let mut rows: Vec<_> = pending.drain().collect();
        rows.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (key, value) in rows {
            match value {
                Some(value) => batch.insert(&files.data, key, value),
                None => batch.remove(&files.data, key),
            }
        }
        let dropped = dropped_tables(&records);
        self.add(&mut batch, records);
        let mut low_water = locked(&self.low_water);
        if range.is_committed_range() {
            batch.insert(&files.data, keys::island(&self.channel, range.first), range.mark.seq.to_be_bytes());
        } else {
            if *low_water != range.before {
                return Err(Failure::new(
                    FailureKind::Refused,
                    format!(
                        "the store's progress is at {}, but {} is to be committed after {}",
                        *low_water, range.first, range.before
                    ),
                ));
            }
            batch.insert(&files.data, keys::progress(&self.channel), progress::encode(range.mark, now_us()));
        }
        batch.commit().map_err(|error| self.broke(&error))?;
        if !range.is_committed_range() {
            *low_water = range.mark.seq;
        }
        drop(low_water);
        let ticket = self.durable.written();
        if staged {
            self.sync(ticket)?;
            pending::replay(files).map_err(|error| self.broke(&error))?;
        }
        dropped.into_iter().for_each(|table| self.sweeper.sweep(table));
        Ok(ticket)
    }

    /// A session waits for its turn to write.
    pub(self) fn coming(&self) -> Coming {
        self.durable.coming()
    }

    /// Waits until a write is on disk.
    pub(self) fn sync(&self, ticket: Ticket) -> Result<(), Failure> {
        self.check()?;
        self.durable.wait(ticket, || self.files.db.persist(PersistMode::SyncData)).map_err(|error| self.broke(&error))
    }

    pub(self) fn clear_staging(&self) -> Result<(), Failure> {
        pending::clear(&self.files).map_err(|error| self.broke(&error))
    }

    fn mark(&self) -> Result<Option<Mark>, Failure> {
        read_channel_mark(&self.files, &self.channel)
    }

    fn islands(&self) -> Result<Vec<(Seq, Seq)>, Failure> {
        read_islands(&self.files, &self.channel)
    }

    /// Up to where a range is committed.
    pub(self) fn committed(&self, range: Range<'_>) -> Result<Seq, Failure> {
        let before = range.first.saturating_sub(1);
        if !range.is_committed_range() {
            return Ok(*locked(&self.low_water));
        }
        let inside = |&(first, last): &(Seq, Seq)| first >= range.first && last <= range.mark.seq;
        Ok(self.islands()?.into_iter().filter(inside).map(|(_, last)| last).max().unwrap_or(before))
    }
}

/// What a store knows of a channel.
fn known(files: &Files, channel: &str) -> Result<Opened, Failure> {
    let mark = read_channel_mark(files, channel)?;
    let source = files.data.get(keys::source(channel)).map_err(|error| failure(&files.path, &error))?;
    let low_water = mark.as_ref().map_or(0, |mark| mark.seq);
    Ok(Opened {
        prepared: Vec::new(),
        committed_ranges: read_islands(files, channel)?.into_iter().filter(|(_, last)| *last > low_water).collect(),
        source: source.map(|source| String::from_utf8_lossy(&source).into_owned()),
        mark,
        executed: GtidState::None,
        intent: None,
        keeps_branches: false,
    })
}

fn read_channel_mark(files: &Files, channel: &str) -> Result<Option<Mark>, Failure> {
    let value = files.data.get(keys::progress(channel)).map_err(|error| failure(&files.path, &error))?;
    value.map(|value| decode_mark(files, &value)).transpose().map(|mark| mark.map(|(mark, _)| mark))
}

fn decode_mark(files: &Files, value: &[u8]) -> Result<(Mark, u64), Failure> {
    progress::decode(value).map_err(|why| {
        let message = format!("the progress in the store {} is damaged: {why}", files.path.display());
        Failure::new(FailureKind::Refused, message)
    })
}

fn read_islands(files: &Files, channel: &str) -> Result<Vec<(Seq, Seq)>, Failure> {
    let mut islands = Vec::new();
    for entry in files.data.prefix(keys::islands(channel)) {
        let (key, value) = entry.into_inner().map_err(|error| failure(&files.path, &error))?;
        let last = value.first_chunk().map(|bytes| Seq::from_be_bytes(*bytes));
        if let (Some(first), Some(last)) = (keys::island_first(&key), last) {
            islands.push((first, last));
        }
    }
    Ok(islands)
}

/// Microseconds since the epoch; for people only.
fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// Numbers of the tables that records give up.
fn dropped_tables(records: &Writes) -> Vec<u32> {
    let prefix = keys::garbage();
    records.iter().filter(|(key, _)| key.starts_with(&prefix)).filter_map(|(key, _)| keys::number(key)).collect()
}

impl Target for StoreTarget {
    fn describe(&self) -> String {
        format!("store {}", self.path.display())
    }

    fn machine(&self) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    fn open(&self) -> Result<Opened, Failure> {
        if self.shared.get().is_none() {
            let opened = Shared::open(&self.path, &self.channel)?;
            self.shared.get_or_init(|| Arc::new(opened));
        }
        let shared = self.shared()?;
        known(&shared.files, &shared.channel)
    }

    fn peek(&self) -> Result<Opened, Failure> {
        match (self.shared.get(), files::inspect(&self.path)?) {
            (Some(shared), _) => known(&shared.files, &shared.channel),
            (None, Found::Store) => known(&Files::open(&self.path, false)?, &self.channel),
            (None, Found::Nothing) => Ok(Opened::default()),
        }
    }

    fn start_at(&self, mark: &Mark, source: &str) -> Result<(), Failure> {
        let shared = self.shared()?;
        shared.check()?;
        let mut low_water = locked(&shared.low_water);
        shared.write(vec![
            (keys::progress(&shared.channel), Some(progress::encode(mark, now_us()))),
            (keys::source(&shared.channel), Some(source.as_bytes().to_vec())),
        ])?;
        *low_water = mark.seq;
        drop(low_water);
        shared.sync(shared.durable.written())
    }

    fn catalogue(&self) -> Result<Box<dyn Catalogue + Send>, Failure> {
        Ok(Box::new(StoreCatalogue::new(Arc::clone(self.shared()?))))
    }

    fn session(&self, _worker: usize) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(StoreSession::new(Arc::clone(self.shared()?))))
    }

    fn checkpoint(&self, mark: &Mark) -> Result<(), Failure> {
        let shared = self.shared()?;
        shared.check()?;
        let mut low_water = locked(&shared.low_water);
        if *low_water >= mark.seq {
            return Ok(());
        }
        let mut writes = vec![(keys::progress(&shared.channel), Some(progress::encode(mark, now_us())))];
        for (first, last) in shared.islands()? {
            if last <= mark.seq {
                writes.push((keys::island(&shared.channel, first), None));
            }
        }
        shared.write(writes)?;
        *low_water = mark.seq;
        drop(low_water);
        shared.sync(shared.durable.written())
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

    fn syncs_for_several(&self) -> bool {
        true
    }

    fn still_held(&self) -> Result<(), Failure> {
        // The lock on its directory is the operating system's, and goes with the process only.
        Ok(())
    }

    fn close(&self) {
        let Some(shared) = self.shared.get() else { return };
        shared.sweeper.stop();
        if let Err(error) = shared.files.db.persist(PersistMode::SyncAll) {
            tracing::error!("store {}: {error}", self.path.display());
        }
    }

    fn check(&self, _source: Option<&SourceFacts>, report: &mut Checks) {
        match files::inspect(&self.path) {
            Ok(Found::Nothing) => match files::try_making(&self.path) {
                Ok(()) => report.ok.push(format!("a new store is made in {}", self.path.display())),
                Err(failure) => report.problems.push(failure.to_string()),
            },
            Ok(Found::Store) => match Files::open(&self.path, false).and_then(|files| load_tables(&files)) {
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
