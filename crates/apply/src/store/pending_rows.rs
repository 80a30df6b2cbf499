//! The changes of a transaction that is not committed: net effect per key, on top of what the store holds.
//!
//! A huge transaction moves them to the staging keyspace piece by piece. Nothing reads that before its commit.

use std::io::Read;

use fjall::{OwnedWriteBatch, Slice};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::files::Files;
use super::keys;

#[derive(Debug, Default)]
pub struct PendingRows {
    /// `None`: removed.
    rows: HashMap<Slice, Option<Slice>, FixedState>,
    bytes: usize,
    /// Older changes of this transaction are in the staging keyspace.
    staged: bool,
    savepoints: Vec<(String, usize)>,
    /// What changed since the first savepoint: the key, and what was pending for it.
    undo: Vec<(Slice, Option<Option<Slice>>)>,
}

/// What an entry costs beside its bytes.
const ENTRY_BYTES: usize = 96;
/// More than this moves to the staging keyspace, in bytes.
const STAGE_BYTES: usize = 8 << 20;
/// One write when moving takes this much at the most, in bytes.
const MOVED_TOGETHER_BYTES: usize = 4 << 20;
/// What both may take.
pub const BUFFERS_BYTES: u64 = (STAGE_BYTES + MOVED_TOGETHER_BYTES) as u64;
/// Staged entries begin with one of these.
const REMOVED: u8 = 0;
const PUT: u8 = 1;

/// A savepoint was asked for whose changes are no longer known one by one.
#[derive(Debug)]
pub struct NoSavepoint;

impl PendingRows {
    pub fn clear(&mut self) {
        // A large map is not kept for small transactions.
        if self.rows.capacity() > 1 << 16 {
            self.rows = HashMap::default();
        }
        self.rows.clear();
        self.bytes = 0;
        self.staged = false;
        self.savepoints.clear();
        self.undo.clear();
    }

    pub fn is_staged(&self) -> bool {
        self.staged
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn get(&self, files: &Files, key: &[u8]) -> fjall::Result<Option<Slice>> {
        if let Some(known) = self.rows.get(key) {
            return Ok(known.clone());
        }
        if self.staged
            && let Some(staged) = files.staging.get(key)?
        {
            return Ok(unstage(&staged));
        }
        files.data.get(key)
    }

    pub fn contains(&self, files: &Files, key: &[u8]) -> fjall::Result<bool> {
        if let Some(known) = self.rows.get(key) {
            return Ok(known.is_some());
        }
        if self.staged
            && let Some(staged) = files.staging.get(key)?
        {
            return Ok(staged.first() == Some(&PUT));
        }
        files.data.contains_key(key)
    }

    pub fn set(&mut self, key: &[u8], value: Option<Slice>) {
        let key = Slice::from(key);
        self.bytes += key.len() + value.as_ref().map_or(0, |value| value.len()) + ENTRY_BYTES;
        let undo = (!self.savepoints.is_empty()).then(|| key.clone());
        let before = self.rows.insert(key, value);
        if let Some(key) = undo {
            self.undo.push((key, before));
        }
    }

    /// Whether a table has rows, these changes included.
    pub fn has_rows(&self, files: &Files, table: u32) -> fjall::Result<bool> {
        let prefix = keys::rows(table);
        if self.rows.iter().any(|(key, value)| value.is_some() && key.starts_with(&prefix)) {
            return Ok(true);
        }
        if self.staged {
            for entry in files.staging.prefix(prefix) {
                if entry.value()?.first() == Some(&PUT) {
                    return Ok(true);
                }
            }
        }
        for entry in files.data.prefix(prefix) {
            if self.contains(files, &entry.key()?)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn savepoint(&mut self, name: &str) {
        self.release(name);
        self.savepoints.push((name.to_owned(), self.undo.len()));
    }

    pub fn release(&mut self, name: &str) {
        if let Some(at) = self.find(name) {
            self.savepoints.remove(at);
        }
    }

    pub fn rollback_to(&mut self, name: &str) -> Result<(), NoSavepoint> {
        let at = self.find(name).ok_or(NoSavepoint)?;
        let length = self.savepoints.get(at).map_or(0, |(_, length)| *length);
        self.savepoints.truncate(at + 1);
        while self.undo.len() > length {
            match self.undo.pop() {
                Some((key, Some(before))) => drop(self.rows.insert(key, before)),
                Some((key, None)) => drop(self.rows.remove(&key)),
                None => break,
            }
        }
        Ok(())
    }

    /// Servers compare the names of savepoints without case.
    fn find(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().position(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// All changes, for the write that commits them.
    pub fn drain(&mut self) -> impl Iterator<Item = (Slice, Option<Slice>)> + '_ {
        self.bytes = 0;
        self.undo.clear();
        self.savepoints.clear();
        self.rows.drain()
    }

    /// Moves the changes to the staging keyspace when they have become too many to hold.
    pub fn stage_if_large(&mut self, files: &Files) -> fjall::Result<()> {
        // One large row alone takes more memory there than here.
        if self.bytes > STAGE_BYTES && self.rows.len() > 1 { self.stage(files) } else { Ok(()) }
    }

    /// Moves all changes there.
    pub fn stage(&mut self, files: &Files) -> fjall::Result<()> {
        let mut batch = files.db.batch();
        let mut bytes = 0;
        for (key, value) in self.rows.drain() {
            let staged = match &value {
                Some(value) => joined(&[PUT], value)?,
                None => Slice::from([REMOVED]),
            };
            bytes += key.len() + staged.len() + ENTRY_BYTES;
            batch.insert(&files.staging, key, staged);
            if bytes > MOVED_TOGETHER_BYTES {
                std::mem::replace(&mut batch, files.db.batch()).commit()?;
                files.wait_for_memory();
                bytes = 0;
            }
        }
        batch.commit()?;
        self.bytes = 0;
        self.staged = true;
        self.undo.clear();
        self.savepoints.clear();
        Ok(())
    }
}

/// One after the other, in memory once.
pub fn joined(head: &[u8], rest: &[u8]) -> std::io::Result<Slice> {
    Slice::from_reader(&mut head.chain(rest), head.len() + rest.len())
}

fn unstage(staged: &[u8]) -> Option<Slice> {
    staged.split_first().filter(|(tag, _)| **tag == PUT).map(|(_, value)| Slice::from(value))
}

/// Applies a staged transaction that is committed. Can be repeated after a crash.
pub fn replay(files: &Files) -> fjall::Result<()> {
    let mut bytes = 0;
    let add = |batch: &mut OwnedWriteBatch, key: &[u8], staged: &[u8]| {
        bytes += key.len() + staged.len() + ENTRY_BYTES;
        match unstage(staged) {
            Some(value) => batch.insert(&files.data, key, value),
            None => batch.remove(&files.data, key),
        }
        let is_full = bytes > MOVED_TOGETHER_BYTES;
        if is_full {
            bytes = 0;
        }
        is_full
    };
    files.in_pieces(&files.staging, &[], add, || true)?;
    let mut batch = files.db.batch();
    batch.remove(&files.data, keys::staged());
    batch.commit()?;
    clear(files)
}

/// Empties the staging keyspace: what is in it was never committed, or is applied.
pub fn clear(files: &Files) -> fjall::Result<()> {
    if files.staging.is_empty()? { Ok(()) } else { files.staging.clear() }
}
