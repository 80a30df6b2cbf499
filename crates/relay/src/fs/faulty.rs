//! A disk in memory that fails on demand, and that forgets in a crash what was not synced. For tests.
//!
//! The model is the pessimistic reading of POSIX: appended bytes survive a crash only up to a random point, the rest is
//! missing, zero or garbage; of the changes of names since the last directory sync some survive, some do not; an fsync
//! that failed has dropped its pages, and a later one that succeeds does not bring them back.

use super::{AppendFile, DirLock, Fs, ReadFile};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happens to the operation that reaches its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A write takes only a part of its bytes.
    ShortWrite,
    /// A write takes a part of its bytes, the next ones find the disk full until [`FaultyFs::heal`].
    DiskFull,
    /// An fsync reports an error and drops the dirty pages.
    FailedSync,
    /// A write reports an input/output error.
    FailedWrite,
    /// The machine stops: this and every later operation fails until [`FaultyFs::restart`].
    Crash,
}

/// A disk in memory with scripted faults. Clones share the disk.
#[derive(Debug, Clone)]
pub struct FaultyFs {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Debug)]
struct Disk {
    random: u64,
    /// Counts writes, syncs and name changes: the operations that a fault can hit.
    operation: u64,
    faults: BTreeMap<u64, Fault>,
    crashed: bool,
    full: bool,
    capacity: Option<u64>,
    /// Handles of before a restart must not touch the disk of after it.
    boot: u64,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    name_log: Vec<NameChange>,
    locks: HashSet<PathBuf>,
}

#[derive(Debug, Default)]
struct Inode {
    cache: Vec<u8>,
    durable: Vec<u8>,
    dirty_from: usize,
}

#[derive(Debug, Clone)]
enum NameChange {
    Link(PathBuf, u64),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            NameChange::Link(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            NameChange::Unlink(path) => {
                names.remove(path);
            }
            NameChange::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }

    fn parent(&self) -> Option<&Path> {
        match self {
            NameChange::Link(path, _) | NameChange::Unlink(path) | NameChange::Rename(path, _) => path.parent(),
        }
    }
}

impl Disk {
    /// SplitMix64: enough to spread faults, repeatable from its seed.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as usize }
    }

    fn up(&self) -> io::Result<()> {
        if self.crashed { Err(io::Error::other("the machine has crashed")) } else { Ok(()) }
    }

    /// Takes a turn and says which fault hits it.
    fn turn(&mut self) -> io::Result<Option<Fault>> {
        self.up()?;
        self.operation += 1;
        let fault = self.faults.remove(&self.operation);
        match fault {
            Some(Fault::Crash) => {
                self.crashed = true;
                self.up()?;
            }
            Some(Fault::DiskFull) => self.full = true,
            _ => {}
        }
        Ok(fault)
    }

    fn used(&self) -> u64 {
        self.names.values().filter_map(|inode| self.inodes.get(inode)).map(|inode| inode.cache.len() as u64).sum()
    }

    fn change_name(&mut self, change: NameChange) -> io::Result<()> {
        self.turn()?;
        change.apply(&mut self.names);
        self.name_log.push(change);
        Ok(())
    }

    fn inode_of(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl FaultyFs {
    /// An empty disk whose accidents follow from `seed`.
    pub fn new(seed: u64) -> Self {
        FaultyFs {
            disk: Arc::new(Mutex::new(Disk {
                random: seed,
                operation: 0,
                faults: BTreeMap::new(),
                crashed: false,
                full: false,
                capacity: None,
                boot: 0,
                inodes: BTreeMap::new(),
                next_inode: 0,
                names: BTreeMap::new(),
                durable_names: BTreeMap::new(),
                name_log: Vec::new(),
                locks: HashSet::new(),
            })),
        }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `fault` hit the write, sync or name change that comes `after` further ones (1 = the next).
    pub fn inject(&self, after: u64, fault: Fault) {
        let mut disk = self.disk();
        let at = disk.operation.saturating_add(after);
        disk.faults.insert(at, fault);
    }

    /// How many operations that a fault can hit were done so far.
    pub fn operations(&self) -> u64 {
        self.disk().operation
    }

    /// Limits what all files together may hold, in bytes.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk().capacity = bytes;
    }

    /// Takes all faults back: the disk is empty enough and works.
    pub fn heal(&self) {
        let mut disk = self.disk();
        disk.faults.clear();
        disk.full = false;
        disk.capacity = None;
    }

    /// The machine stops now.
    pub fn crash(&self) {
        self.disk().crashed = true;
    }

    /// The machine comes back with what the disk kept. Handles opened before are dead.
    pub fn restart(&self) {
        let mut guard = self.disk();
        let disk = &mut *guard;
        disk.crashed = false;
        disk.full = false;
        disk.faults.clear();
        disk.boot += 1;
        disk.locks.clear();
        let log = std::mem::take(&mut disk.name_log);
        let mut names = std::mem::take(&mut disk.durable_names);
        for change in &log {
            if disk.below(2) == 0 {
                change.apply(&mut names);
            }
        }
        let mut inodes = std::mem::take(&mut disk.inodes);
        inodes.retain(|number, _| names.values().any(|n| n == number));
        for inode in inodes.values_mut() {
            let mut bytes = std::mem::take(&mut inode.durable);
            let dirty = inode.cache.get(inode.dirty_from..).unwrap_or_default();
            let survived = disk.below(dirty.len() + 1);
            if survived > 0 {
                bytes.resize(inode.dirty_from, 0);
                bytes.extend(dirty.iter().take(survived));
                // What follows may have got its length but not its contents.
                let torn = disk.below((dirty.len() - survived).min(4096) + 1);
                match disk.below(3) {
                    0 => {}
                    1 => bytes.resize(bytes.len() + torn, 0),
                    _ => (0..torn).for_each(|_| bytes.push(disk.next() as u8)),
                }
            }
            inode.dirty_from = bytes.len();
            inode.cache = bytes.clone();
            inode.durable = bytes;
        }
        disk.names = names.clone();
        disk.durable_names = names;
        disk.inodes = inodes;
    }

    /// Flips one bit of a file, on the disk and in memory; false when there is no such byte.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> bool {
        let mut disk = self.disk();
        let Ok(number) = disk.inode_of(path) else {
            return false;
        };
        let Some(inode) = disk.inodes.get_mut(&number) else {
            return false;
        };
        let mask = 1u8 << (bit % 8);
        let at = offset as usize;
        if let Some(byte) = inode.durable.get_mut(at) {
            *byte ^= mask;
        }
        match inode.cache.get_mut(at) {
            Some(byte) => {
                *byte ^= mask;
                true
            }
            None => false,
        }
    }

    /// Cuts a file, on the disk and in memory.
    pub fn truncate(&self, path: &Path, len: u64) {
        let mut disk = self.disk();
        let Ok(number) = disk.inode_of(path) else {
            return;
        };
        if let Some(inode) = disk.inodes.get_mut(&number) {
            inode.cache.truncate(len as usize);
            inode.durable.truncate(len as usize);
            inode.dirty_from = inode.dirty_from.min(len as usize);
        }
    }

    /// The bytes of a file as a process reads them now.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let disk = self.disk();
        let number = disk.inode_of(path).ok()?;
        disk.inodes.get(&number).map(|inode| inode.cache.clone())
    }
}

impl Fs for FaultyFs {
    fn create_dir_all(&self, _dir: &Path) -> io::Result<()> {
        self.disk().up()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let mut disk = self.disk();
        if disk.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = disk.next_inode;
        disk.change_name(NameChange::Link(path.to_path_buf(), inode))?;
        disk.next_inode += 1;
        disk.inodes.insert(inode, Inode::default());
        Ok(Box::new(Handle { disk: self.disk.clone(), inode, boot: disk.boot }))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let disk = self.disk();
        disk.up()?;
        let inode = disk.inode_of(path)?;
        Ok(Box::new(Handle { disk: self.disk.clone(), inode, boot: disk.boot }))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let disk = self.disk();
        disk.up()?;
        let inode = disk.inode_of(path)?;
        Ok(Arc::new(Handle { disk: self.disk.clone(), inode, boot: disk.boot }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.inode_of(from)?;
        disk.change_name(NameChange::Rename(from.to_path_buf(), to.to_path_buf()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.inode_of(path)?;
        disk.change_name(NameChange::Unlink(path.to_path_buf()))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let disk = self.disk();
        disk.up()?;
        let inside = disk.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| path.file_name()).filter_map(|name| name.to_str()).map(str::to_owned).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        if disk.turn()? == Some(Fault::FailedSync) {
            return Err(io::Error::other("injected: sync of a directory failed"));
        }
        let (done, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut disk.name_log).into_iter().partition(|change| change.parent() == Some(dir));
        done.iter().for_each(|change| change.apply(&mut disk.durable_names));
        disk.name_log = rest;
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<DirLock> {
        let mut disk = self.disk();
        disk.up()?;
        if !disk.locks.insert(path.to_path_buf()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Held { disk: self.disk.clone(), path: path.to_path_buf(), boot: disk.boot }))
    }
}

struct Held {
    disk: Arc<Mutex<Disk>>,
    path: PathBuf,
    boot: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        if disk.boot == self.boot {
            disk.locks.remove(&self.path);
        }
    }
}

struct Handle {
    disk: Arc<Mutex<Disk>>,
    inode: u64,
    boot: u64,
}

impl Handle {
    fn disk(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        if disk.boot != self.boot {
            return Err(io::Error::other("a handle of before the restart"));
        }
        Ok(disk)
    }
}

fn gone() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl AppendFile for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.disk()?;
        let was_full = disk.full;
        let fault = disk.turn();
        let mut take = bytes.len();
        if let Some(capacity) = disk.capacity {
            take = take.min(capacity.saturating_sub(disk.used()) as usize);
        }
        match &fault {
            Ok(Some(Fault::FailedWrite)) => return Err(io::Error::other("injected: write failed")),
            Ok(Some(Fault::ShortWrite)) if take > 1 => take = 1 + disk.below(take - 1),
            Ok(Some(Fault::DiskFull)) => take = disk.below(take),
            // A crash in the middle of a write leaves a part of it behind.
            Err(_) if !was_full => take = disk.below(take + 1),
            _ => {}
        }
        if was_full {
            take = 0;
        }
        let inode = disk.inodes.get_mut(&self.inode).ok_or_else(gone)?;
        inode.cache.extend(bytes.iter().take(take));
        fault?;
        if take == 0 && !bytes.is_empty() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(take) }
    }

    fn sync_data(&mut self) -> io::Result<()> {
        let mut disk = self.disk()?;
        let fault = disk.turn()?;
        let inode = disk.inodes.get_mut(&self.inode).ok_or_else(gone)?;
        let from = inode.dirty_from;
        inode.dirty_from = inode.cache.len();
        if fault == Some(Fault::FailedSync) {
            // The pages count as clean now although they never reached the disk.
            return Err(io::Error::other("injected: fsync failed"));
        }
        inode.durable.resize(from, 0);
        inode.durable.extend(inode.cache.get(from..).unwrap_or_default());
        Ok(())
    }

    fn another(&self) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(Handle { disk: self.disk.clone(), inode: self.inode, boot: self.boot }))
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut disk = self.disk()?;
        disk.turn()?;
        let inode = disk.inodes.get_mut(&self.inode).ok_or_else(gone)?;
        inode.cache.truncate(len as usize);
        // Pessimistic for a crash: the old contents of the disk stay until the next sync, save what was cut.
        inode.durable.truncate(len as usize);
        inode.dirty_from = inode.dirty_from.min(len as usize);
        Ok(())
    }
}

impl ReadFile for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.disk()?;
        disk.up()?;
        let inode = disk.inodes.get(&self.inode).ok_or_else(gone)?;
        let from = inode.cache.get(offset as usize..).unwrap_or_default();
        let n = from.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..n), from.get(..n)) {
            to.copy_from_slice(from);
        }
        Ok(n)
    }

    fn len(&self) -> io::Result<u64> {
        let disk = self.disk()?;
        disk.up()?;
        disk.inodes.get(&self.inode).map(|inode| inode.cache.len() as u64).ok_or_else(gone)
    }
}
