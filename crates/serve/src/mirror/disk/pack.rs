//! Compresses the complete files of a mirror, on a thread of its own. At any moment a file is there uncompressed, compressed, or both.
//!
//! A crash may leave a `.zst.new`, which is removed; or both forms, and then the uncompressed one is removed if the other is whole. The last two files stay uncompressed: one is being
//! written, and after a crash the mirror may continue the one before it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use relay::fs::Fs;
use relay::packed;

use super::files;

const NEW: &str = ".zst.new";
const IN_CLEAR: usize = 2;
const POLL: Duration = Duration::from_millis(20);

/// Held while files are compressed or removed.
#[derive(Debug, Clone, Default)]
pub struct FormLock(Arc<Mutex<()>>);

impl FormLock {
    pub fn hold(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread. It ends when this is dropped, after the frame that it is at.
pub struct Packer {
    wake: Option<SyncSender<Vec<PathBuf>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Packer {
    pub fn start(fs: Arc<dyn Fs>, forms: FormLock) -> io::Result<Self> {
        let (wake, woken) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let run = move || run(&*fs, &forms, &woken, &ends);
        let thread = thread::Builder::new().name("compress".to_owned()).spawn(run)?;
        Ok(Self { wake: Some(wake), stop, thread: Some(thread) })
    }

    /// Waits until all is compressed that is complete, or `stop` is set.
    pub fn finish(mut self, stop: &AtomicBool) {
        self.wake = None;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && !stop.load(Ordering::Relaxed) {
            thread::sleep(POLL);
        }
    }

    /// Files may be complete in these folders, the former sources' and the present one's. It waits for nothing.
    pub fn look(&self, dirs: Vec<PathBuf>) {
        if let Some(wake) = &self.wake {
            // It has been told already.
            let _ = wake.try_send(dirs);
        }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(fs: &dyn Fs, forms: &FormLock, woken: &Receiver<Vec<PathBuf>>, stop: &AtomicBool) {
    while let Ok(dirs) = woken.recv() {
        for dir in dirs {
            if let Err(error) = pack_all(fs, &dir, forms, stop) {
                tracing::warn!("{}: compressing: {error}; the files stay as they are", dir.display());
            }
        }
    }
}

/// Compresses all complete files of a folder.
pub fn pack_all(fs: &dyn Fs, dir: &Path, forms: &FormLock, stop: &AtomicBool) -> io::Result<()> {
    let names = files::logs(fs, dir).map_err(io::Error::other)?;
    let complete = names.len().saturating_sub(IN_CLEAR);
    for name in names.iter().take(complete) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        pack(fs, dir, name, forms, stop)?;
    }
    Ok(())
}

fn pack(fs: &dyn Fs, dir: &Path, name: &str, forms: &FormLock, stop: &AtomicBool) -> io::Result<()> {
    let plain = dir.join(name);
    let (whole, new) = (packed::packed_path(&plain), dir.join(format!("{name}{NEW}")));
    let Ok(file) = fs.open_read(&plain) else { return Ok(()) };
    let length = file.len()?;
    if !has_length(fs, &whole, length) {
        // Of a crash, or of a disk that was full.
        remove_if_there(fs, &new)?;
        if let Err(error) = packed::pack(fs, &plain, &new, stop) {
            let _ = remove_if_there(fs, &new);
            return if stop.load(Ordering::Relaxed) { Ok(()) } else { Err(error) };
        }
    }
    let _held = forms.hold();
    // It may have been purged meanwhile.
    if fs.open_read(&plain).is_err() {
        remove_if_there(fs, &new)?;
        return Ok(());
    }
    if !has_length(fs, &whole, length) {
        fs.rename(&new, &whole)?;
        fs.sync_dir(dir)?;
    }
    fs.remove(&plain)?;
    fs.sync_dir(dir)
}

fn has_length(fs: &dyn Fs, packed: &Path, length: u64) -> bool {
    let found = fs.open_read(packed).and_then(packed::PackedFile::new);
    found.and_then(|found| relay::fs::ReadFile::len(&found)).is_ok_and(|found| found == length)
}

fn remove_if_there(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    match fs.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use relay::fs::{Fault, FaultyFs, read_full};

    use super::*;

    fn contents(number: usize) -> Vec<u8> {
        (0..20_000_usize).map(|at| (at * number / 5) as u8).collect()
    }

    fn read(fs: &dyn Fs, path: &Path) -> Vec<u8> {
        let file = packed::open(fs, path).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        assert_eq!(read_full(&*file, &mut bytes, 0).unwrap(), bytes.len());
        bytes
    }

    /// Whatever the disk does, and whenever the machine dies, each file is there, in one form or the other.
    #[test]
    fn a_crash_leaves_either_form() {
        let faults = [Fault::ShortWrite, Fault::DiskFull, Fault::FailedSync, Fault::FailedWrite, Fault::Crash];
        let (dir, stop) = (Path::new("/mirror"), AtomicBool::new(false));
        let mut packed_once = 0;
        for seed in 0..300 {
            let fs = FaultyFs::new(seed);
            fs.create_dir_all(dir).unwrap();
            for number in 1..=4 {
                let mut file = fs.create(&dir.join(format!("b.00000{number}"))).unwrap();
                file.write_all(&contents(number)).unwrap();
                file.sync_data().unwrap();
            }
            fs.sync_dir(dir).unwrap();
            fs.inject(seed % 25, faults[seed as usize % faults.len()]);
            let _ = pack_all(&fs, dir, &FormLock::default(), &stop);
            fs.crash();
            fs.restart();
            for number in 1..=4 {
                assert_eq!(read(&fs, &dir.join(format!("b.00000{number}"))), contents(number), "{seed} {number}");
            }
            assert_eq!(files::logs(&fs, dir).unwrap().len(), 4, "{seed}");
            pack_all(&fs, dir, &FormLock::default(), &stop).unwrap();
            let names = fs.list(dir).unwrap();
            assert!(!names.iter().any(|name| name.ends_with(NEW)), "{seed}: {names:?}");
            packed_once +=
                usize::from(names.contains(&"b.000001.zst".to_owned()) && !names.contains(&"b.000001".to_owned()));
            assert!(names.contains(&"b.000003".to_owned()) && names.contains(&"b.000004".to_owned()));
            for number in 1..=4 {
                assert_eq!(read(&fs, &dir.join(format!("b.00000{number}"))), contents(number), "{seed} {number}");
            }
        }
        assert_eq!(packed_once, 300);
    }
}
