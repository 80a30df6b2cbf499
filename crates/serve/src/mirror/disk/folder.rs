//! The log files of one source on disk. It appends bytes, and reports how far they are durable. Of events it knows only where they end.
//!
//! The files have the source's names. `BASE.index` lists them, as a server's own index does, so that `heddle inspect`, `mysqlbinlog` and a server can read the folder.
//! `heddle-mirror.json` names their source. After a crash the last file is cut behind its last whole event.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlog::{FIRST_OFFSET, LogPosition, MAGIC};
use relay::fs::{AppendFile, Fs, ReadFile, read_full};

use super::background_sync::{BackgroundSync, FinishedSync};
use super::files::{self, FolderError, Result, at, logs, remove};
use super::last_file::{LastFile, scan};
use super::purge::Size;
use crate::mirror::stream::follows;

/// Bytes that are collected before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// The files of one source. `epochs` sees to it that only one process has them.
pub struct Folder {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    /// In the order of the source.
    names: Vec<String>,
    current: Option<CurrentFile>,
    background: BackgroundSync,
    is_unusable: bool,
}

struct CurrentFile {
    path: PathBuf,
    /// To compare with.
    reader: Arc<dyn ReadFile>,
    file: Box<dyn AppendFile>,
    /// The end of what was appended.
    end: LogPosition,
    written: u64,
    durable: u64,
    waiting: Vec<u8>,
}

impl Folder {
    /// Opens a folder, and mends what a crash has left.
    pub fn open(fs: Arc<dyn Fs>, dir: &Path) -> Result<(Self, Option<LastFile>)> {
        let names = logs(&*fs, dir)?;
        for pair in names.windows(2) {
            if let [before, behind] = pair
                && !follows(before, behind)
            {
                return Err(FolderError::Gap { dir: dir.to_owned(), before: before.clone(), behind: behind.clone() });
            }
        }
        let mut folder = Self {
            fs,
            dir: dir.to_owned(),
            names,
            current: None,
            background: BackgroundSync::default(),
            is_unusable: false,
        };
        let last = folder.reread()?;
        Ok((folder, last))
    }

    /// Names of the files, oldest first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The end of what would survive a crash.
    pub fn durable(&self) -> Option<LogPosition> {
        self.current.as_ref().map(|current| LogPosition::new(Arc::clone(&current.end.file), current.durable))
    }

    /// The end of what was appended.
    pub fn end(&self) -> Option<&LogPosition> {
        self.current.as_ref().map(|current| &current.end)
    }

    /// The number of bytes that a crash could lose.
    pub fn unsynced(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.end.offset - current.durable)
    }

    /// The file before is complete and durable; `name` begins.
    pub fn begin(&mut self, name: &str) -> Result<()> {
        self.sync()?;
        let path = self.dir.join(name);
        let file = self.fs.create(&path).map_err(at(&path))?;
        let reader = self.fs.open_read(&path).map_err(at(&path))?;
        self.names.push(name.to_owned());
        self.current = Some(CurrentFile {
            path,
            reader,
            file,
            end: LogPosition::new(name, FIRST_OFFSET),
            written: 0,
            durable: 0,
            waiting: MAGIC.to_vec(),
        });
        self.sync()?;
        self.write_index()
    }

    /// Appends bytes to the current file.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(current) = self.current.as_mut().filter(|_| !self.is_unusable) else {
            return Err(FolderError::Unusable);
        };
        current.end.offset += bytes.len() as u64;
        // A large event is not copied.
        let written = if bytes.len() >= WRITE_BYTES {
            current.write().and_then(|()| current.write_all(bytes))
        } else {
            current.waiting.extend_from_slice(bytes);
            if current.waiting.len() >= WRITE_BYTES { current.write() } else { Ok(()) }
        };
        self.is_unusable |= written.is_err();
        written
    }

    /// Begins to make durable what was taken, while more is taken. It does nothing while that is under way.
    pub fn begin_sync(&mut self) -> Result<()> {
        if self.is_unusable {
            return Err(FolderError::Unusable);
        }
        let Some(current) = self.current.as_mut().filter(|current| current.durable < current.end.offset) else {
            return Ok(());
        };
        if self.background.is_pending() {
            return Ok(());
        }
        let begun = current.write().and_then(|()| {
            let begin = current.file.another().and_then(|file| self.background.begin(file, current.written));
            begin.map_err(at(&current.path))
        });
        self.is_unusable |= begun.is_err();
        begun
    }

    /// What [`begin_sync`](Self::begin_sync) has made durable, if it is over by now.
    pub fn end_sync(&mut self) -> Result<Option<FinishedSync>> {
        let outcome = self.background.outcome();
        self.synced(outcome)
    }

    fn synced(&mut self, outcome: std::io::Result<Option<FinishedSync>>) -> Result<Option<FinishedSync>> {
        self.is_unusable |= outcome.is_err();
        let Some(current) = &mut self.current else { return outcome.map_err(at(&self.dir)) };
        let synced = outcome.map_err(at(&current.path))?;
        if let Some(synced) = synced {
            current.durable = current.durable.max(synced.end);
        }
        Ok(synced)
    }

    /// Makes everything durable that was appended.
    pub fn sync(&mut self) -> Result<()> {
        // Its failure would not be said again.
        let outcome = self.background.wait();
        self.synced(outcome)?;
        if self.is_unusable {
            return Err(FolderError::Unusable);
        }
        let Some(current) = self.current.as_mut().filter(|current| current.durable < current.end.offset) else {
            return Ok(());
        };
        let synced = current.write().and_then(|()| current.file.sync_data().map_err(at(&current.path)));
        self.is_unusable |= synced.is_err();
        synced?;
        current.durable = current.written;
        Ok(())
    }

    /// The sizes of all files, oldest first.
    pub fn sizes(&self) -> Result<Vec<Size>> {
        files::sizes(&*self.fs, &self.dir, &self.names)
    }

    /// Removes the oldest files; the last one stays. A crash may leave some of them.
    pub fn purge(&mut self, count: usize) -> Result<usize> {
        let count = count.min(self.names.len().saturating_sub(1));
        if count == 0 {
            return Ok(0);
        }
        let gone: Vec<String> = self.names.drain(..count).collect();
        self.write_index()?;
        remove(&*self.fs, &self.dir, &gone)?;
        Ok(count)
    }

    /// Whether these bytes stand at this place of the current file.
    pub fn holds(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        let Some(current) = &self.current else { return Ok(false) };
        let mut there = vec![0; bytes.len()];
        let read = read_full(&*current.reader, &mut there, offset).map_err(at(&current.path))?;
        Ok(read == bytes.len() && there == bytes)
    }

    /// Writes a small file of the mirror's own, whole or not at all.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        files::replace(&*self.fs, &self.dir, name, bytes)
    }

    /// A small file of the mirror's own, if there is one.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        files::read(&*self.fs, &self.dir, name)
    }

    /// The last file as it is on disk, cut behind its last whole event.
    pub fn reread(&mut self) -> Result<Option<LastFile>> {
        let outcome = self.background.wait();
        self.synced(outcome)?;
        self.current = None;
        while let Some(name) = self.names.last().cloned() {
            if let Some(last) = self.recover(&name)? {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    fn write_index(&self) -> Result<()> {
        files::write_index(&*self.fs, &self.dir, &self.names)
    }

    /// Cuts the last file behind its last whole event. One goes whose beginning did not come, by which it is known to follow the file before it.
    fn recover(&mut self, name: &str) -> Result<Option<LastFile>> {
        let path = self.dir.join(name);
        let read = self.fs.open_read(&path).map_err(at(&path))?;
        let last = scan(&*read, name).map_err(at(&path))?;
        let (end, length) = (last.end.offset, read.len().map_err(at(&path))?);
        if end < length {
            tracing::info!("{} is cut from {length} to {end} bytes, behind its last whole event", path.display());
        }
        if !last.has_begun() {
            self.fs.remove(&path).map_err(at(&path))?;
            self.names.pop();
            self.write_index()?;
            return Ok(None);
        }
        let mut file = self.fs.open_append(&path).map_err(at(&path))?;
        file.set_len(end).and_then(|()| file.sync_data()).map_err(at(&path))?;
        self.current = Some(CurrentFile {
            path,
            reader: read,
            file,
            end: last.end.clone(),
            written: end,
            durable: end,
            waiting: Vec::new(),
        });
        self.write_index()?;
        Ok(Some(last))
    }
}

impl CurrentFile {
    /// What waits.
    fn write(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.write_all(&waiting);
        self.waiting = waiting;
        self.waiting.clear();
        written
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(at(&self.path))?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use relay::RealFs;
    use relay::fs::{Fault, FaultyFs};

    use super::*;

    const GOLDEN: &[u8] = include_bytes!("../../../../binlog/tests/golden/mysql-9.7/rows.binlog");

    fn open(dir: &Path) -> Result<(Folder, Option<LastFile>)> {
        Folder::open(Arc::new(RealFs), dir)
    }

    /// Whatever is left of the last file, what is kept of it ends behind a whole event, and the rest can follow.
    #[test]
    fn a_file_that_is_cut_anywhere_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        for cut in (0..GOLDEN.len()).step_by(61).chain([GOLDEN.len()]) {
            std::fs::write(dir.path().join("b.000001"), GOLDEN).unwrap();
            std::fs::write(dir.path().join("b.000002"), &GOLDEN[..cut]).unwrap();
            let (mut folder, last) = open(dir.path()).unwrap();
            let last = last.unwrap();
            if &*last.end.file == "b.000001" {
                assert_eq!(folder.names(), ["b.000001"]);
                folder.begin("b.000002").unwrap();
                folder.append(&GOLDEN[4..]).unwrap();
            } else {
                assert!(last.format().is_some() && last.again_from < last.end.offset);
                folder.append(&GOLDEN[last.end.offset as usize..]).unwrap();
            }
            folder.sync().unwrap();
            assert_eq!(folder.durable(), Some(LogPosition::new("b.000002", GOLDEN.len() as u64)));
            assert_eq!(std::fs::read(dir.path().join("b.000002")).unwrap(), GOLDEN, "{cut}");
            assert_eq!(std::fs::read_to_string(dir.path().join("b.index")).unwrap(), "./b.000001\n./b.000002\n");
            std::fs::remove_file(dir.path().join("b.000002")).unwrap();
        }
    }

    #[test]
    fn a_crash_of_the_machine_may_leave_anything_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.000001"), [GOLDEN, &[0; 5000]].concat()).unwrap();
        let (folder, last) = open(dir.path()).unwrap();
        assert_eq!(last.unwrap().end.offset, GOLDEN.len() as u64);
        assert!(folder.holds(4, &GOLDEN[4..100]).unwrap() && !folder.holds(5, &GOLDEN[4..100]).unwrap());
    }

    #[test]
    fn a_file_that_is_gone_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.000001", "b.000003"] {
            std::fs::write(dir.path().join(name), GOLDEN).unwrap();
        }
        assert!(matches!(open(dir.path()), Err(FolderError::Gap { .. })));
    }

    /// What is called durable survives a crash of the machine, whatever the disk does before it.
    #[test]
    fn what_is_durable_survives() {
        let faults = [Fault::ShortWrite, Fault::DiskFull, Fault::FailedSync, Fault::FailedWrite, Fault::Crash];
        for seed in 0..400 {
            let fs = FaultyFs::new(seed);
            let dir = Path::new("/mirror");
            let open = || Folder::open(Arc::new(fs.clone()), dir);
            fs.inject(seed % 40, faults[seed as usize % faults.len()]);
            let durable = open().ok().and_then(|(mut folder, _)| {
                let _ = write_two(&mut folder);
                folder.durable().filter(|durable| durable.offset > FIRST_OFFSET)
            });
            fs.crash();
            fs.restart();
            let (folder, last) = open().unwrap();
            let found = last.map(|last| last.end);
            let lost = durable.as_ref().is_some_and(|durable| found.as_ref().is_none_or(|found| found < durable));
            assert!(!lost, "{seed}: {durable:?} {found:?}");
            for name in folder.names() {
                let file = fs.open_read(&dir.join(name)).unwrap();
                let mut bytes = vec![0; file.len().unwrap() as usize];
                read_full(&*file, &mut bytes, 0).unwrap();
                assert_eq!(bytes, GOLDEN[..bytes.len()], "{seed}: {name}");
            }
        }
    }

    /// As events come: some at a time, synced in between.
    fn write_two(folder: &mut Folder) -> Result<()> {
        let mut framer = binlog::Framer::new();
        framer.push(bytes::Bytes::from_static(GOLDEN));
        let mut events = Vec::new();
        while let binlog::Step::Event { event, .. } = framer.next() {
            events.push(event);
        }
        for name in ["b.000001", "b.000002"] {
            folder.begin(name)?;
            for some in events.chunks(events.len() / 8) {
                for (number, event) in some.iter().enumerate() {
                    folder.append(event.bytes())?;
                    // Some while a sync is under way; none inside of the beginning.
                    if number % 3 == 2 {
                        folder.begin_sync()?;
                    }
                    if number % 5 == 4 {
                        folder.end_sync()?;
                    }
                }
                folder.sync()?;
            }
        }
        Ok(())
    }

    #[test]
    fn the_oldest_files_go() {
        let dir = tempfile::tempdir().unwrap();
        for number in 1..=4 {
            std::fs::write(dir.path().join(format!("b.00000{number}")), GOLDEN).unwrap();
        }
        let (mut folder, _) = open(dir.path()).unwrap();
        let begun = u32::from_le_bytes(GOLDEN[4..8].try_into().unwrap());
        assert_eq!(folder.sizes().unwrap(), [Size { bytes: GOLDEN.len() as u64, begun }; 4]);
        assert_eq!(folder.purge(2).unwrap(), 2);
        assert_eq!(std::fs::read_to_string(dir.path().join("b.index")).unwrap(), "./b.000003\n./b.000004\n");
        assert_eq!((folder.purge(9).unwrap(), folder.purge(9).unwrap()), (1, 0));
        drop(folder);
        let (folder, last) = open(dir.path()).unwrap();
        assert_eq!((folder.names(), last.unwrap().end.offset), (&["b.000004".to_owned()][..], GOLDEN.len() as u64));
        drop(folder);
        files::purge_old(&RealFs, dir.path(), 1).unwrap();
        assert!(logs(&RealFs, dir.path()).unwrap().is_empty());
    }

    #[test]
    fn small_files_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, last) = open(dir.path()).unwrap();
        assert!(last.is_none() && folder.read("x.json").unwrap().is_none());
        std::fs::write(dir.path().join("x.json.new"), "half").unwrap();
        folder.replace("x.json", b"whole").unwrap();
        assert_eq!(folder.read("x.json").unwrap().unwrap(), b"whole");
    }
}
