//! An open store, which the sessions of its channel share: one write holds rows, records and progress.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use engine::Seq;
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;
use fjall::{OwnedWriteBatch, PersistMode};

use super::dropped_rows::DroppedRows;
use super::durable_writes::{DurableWrites, PendingWrite, Ticket};
use super::files::{Files, failure};
use super::pending_rows::PendingRows;
use super::records::{finish_staged, known, load_tables, now_us, read_channel_mark, read_committed_ranges};
use super::tables::{Tables, Writes};
use super::{keys, pending_rows, progress};
use crate::lock::locked;
use crate::{ChannelRecord, Range};

/// What the sessions of one store share.
pub struct StoreState {
    pub files: Arc<Files>,
    channel: String,
    tables: Mutex<Tables>,
    /// Changes whenever what sessions remember of tables may be out of date.
    epoch: AtomicU64,
    durable: Arc<DurableWrites>,
    /// The last mark's number; held over each write of progress, so that progress is written in its order.
    low_water: Mutex<Seq>,
    /// The first failed write: fjall takes none after it.
    broken: OnceLock<Failure>,
    dropped_rows: DroppedRows,
}

impl StoreState {
    /// Opens the store. Only one process can have it open.
    pub fn open(path: &Path, channel: &str) -> Result<Self, Failure> {
        let files = Arc::new(Files::open_or_make(path)?);
        finish_staged(&files)?;
        let tables = load_tables(&files)?;
        let dropped_rows = DroppedRows::start(Arc::clone(&files))
            .map_err(|error| Failure::new(FailureKind::Exhausted, format!("starting a thread: {error}")))?;
        dropped_rows.look();
        let shared = Self {
            files,
            channel: channel.to_owned(),
            tables: Mutex::new(tables),
            epoch: AtomicU64::new(1),
            durable: Arc::default(),
            low_water: Mutex::new(0),
            broken: OnceLock::new(),
            dropped_rows,
        };
        *locked(&shared.low_water) = shared.mark()?.map_or(0, |mark| mark.seq);
        Ok(shared)
    }

    pub fn tables(&self) -> MutexGuard<'_, Tables> {
        locked(&self.tables)
    }

    pub fn forget_resolved(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    pub fn failed(&self, error: &fjall::Error) -> Failure {
        failure(&self.files.path, error)
    }

    /// Of a write: every later one fails as well, and says why the first did.
    fn broke(&self, error: &fjall::Error) -> Failure {
        self.broken.get_or_init(|| self.failed(error)).clone()
    }

    pub fn check(&self) -> Result<(), Failure> {
        self.broken.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Writes records outside any transaction.
    pub fn write(&self, writes: Writes) -> Result<(), Failure> {
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

    /// Writes rows, records and progress at once. Not yet durable: see [`StoreState::sync`].
    pub fn commit(&self, pending: &mut PendingRows, records: Writes, range: Range<'_>) -> Result<Ticket, Failure> {
        self.check()?;
        self.files.check_space()?;
        self.files.wait_for_memory();
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
        let drops_tables = records.iter().any(|(key, _)| key.starts_with(&keys::garbage()));
        self.add(&mut batch, records);
        let mut low_water = locked(&self.low_water);
        if range.is_committed_range() {
            batch.insert(&files.data, keys::committed_range(&self.channel, range.first), range.mark.seq.to_be_bytes());
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
            pending_rows::replay(files).map_err(|error| self.broke(&error))?;
        }
        if drops_tables {
            self.dropped_rows.look();
        }
        Ok(ticket)
    }

    /// A session waits for its turn to write.
    pub fn coming(&self) -> PendingWrite {
        self.durable.coming()
    }

    /// Waits until a write is on disk.
    pub fn sync(&self, ticket: Ticket) -> Result<(), Failure> {
        self.check()?;
        self.durable.wait(ticket, || self.files.db.persist(PersistMode::SyncData)).map_err(|error| self.broke(&error))
    }

    pub fn clear_staging(&self) -> Result<(), Failure> {
        pending_rows::clear(&self.files).map_err(|error| self.broke(&error))
    }

    fn mark(&self) -> Result<Option<Mark>, Failure> {
        read_channel_mark(&self.files, &self.channel)
    }

    fn committed_ranges(&self) -> Result<Vec<(Seq, Seq)>, Failure> {
        read_committed_ranges(&self.files, &self.channel)
    }

    /// Up to where a range is committed.
    pub fn committed(&self, range: Range<'_>) -> Result<Seq, Failure> {
        let before = range.first.saturating_sub(1);
        if !range.is_committed_range() {
            return Ok(*locked(&self.low_water));
        }
        let inside = |&(first, last): &(Seq, Seq)| first >= range.first && last <= range.mark.seq;
        Ok(self.committed_ranges()?.into_iter().filter(inside).map(|(_, last)| last).max().unwrap_or(before))
    }

    /// Records where a new channel starts, and what it is fed from.
    pub fn start_at(&self, mark: &Mark, source: &str) -> Result<(), Failure> {
        self.check()?;
        let mut low_water = locked(&self.low_water);
        self.write(vec![
            (keys::progress(&self.channel), Some(progress::encode(mark, now_us()))),
            (keys::source(&self.channel), Some(source.as_bytes().to_vec())),
        ])?;
        *low_water = mark.seq;
        drop(low_water);
        self.sync(self.durable.written())
    }

    /// Records the part of the source that the channel takes.
    pub fn record_part(&self, part: Option<&str>) -> Result<(), Failure> {
        self.check()?;
        self.write(vec![(keys::part(&self.channel), part.map(|part| part.as_bytes().to_vec()))])?;
        self.sync(self.durable.written())
    }

    /// Moves the low water to the mark, and forgets the committed ranges below it.
    pub fn checkpoint(&self, mark: &Mark) -> Result<(), Failure> {
        self.check()?;
        let mut low_water = locked(&self.low_water);
        if *low_water >= mark.seq {
            return Ok(());
        }
        let mut writes = vec![(keys::progress(&self.channel), Some(progress::encode(mark, now_us())))];
        for (first, last) in self.committed_ranges()? {
            if last <= mark.seq {
                writes.push((keys::committed_range(&self.channel, first), None));
            }
        }
        self.write(writes)?;
        *low_water = mark.seq;
        drop(low_water);
        self.sync(self.durable.written())
    }

    /// Changes whenever what sessions remember of tables may be out of date.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// What the store knows of the channel.
    pub fn known(&self) -> Result<ChannelRecord, Failure> {
        known(&self.files, &self.channel)
    }

    /// Ends what goes on in the background, and brings everything to the disk.
    pub fn close(&self) {
        self.dropped_rows.stop();
        if let Err(error) = self.files.db.persist(PersistMode::SyncAll) {
            tracing::error!("store {}: {error}", self.files.path.display());
        }
    }
}
