//! Removes the rows of dropped tables in a thread of its own, while the channel goes on.
//!
//! A record names each such table until all its rows are gone, so that the work goes on after a restart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use fjall::OwnedWriteBatch;

use super::files::Files;
use super::keys;

/// Rows of one write.
const REMOVED_TOGETHER: usize = 2_000;

pub struct DroppedRows {
    stop: Arc<AtomicBool>,
    running: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl DroppedRows {
    pub fn start(files: Arc<Files>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        // Which tables there are, the records say: one word is enough for all that come while the thread is busy.
        let (send, looks) = bounded(1);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("store-removal".to_owned())
            .spawn(move || run(&files, &looks, &stopped))?;
        Ok(Self { stop, running: Mutex::new(Some((send, thread))) })
    }

    /// There are records of dropped tables.
    pub fn look(&self) {
        if let Some((send, _)) = &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            // The thread ends early only when it has panicked: the record keeps the work for the next start.
            let _ = send.try_send(());
        }
    }

    /// Ends the thread; what is left is done after the next start.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((send, thread)) = running {
            drop(send);
            if thread.join().is_err() {
                tracing::error!("the thread that removes rows of dropped tables has panicked");
            }
        }
    }
}

impl Drop for DroppedRows {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(files: &Files, looks: &Receiver<()>, stop: &AtomicBool) {
    for () in looks {
        match remove_all(files, stop) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!("removing the rows of a dropped table: {error}");
                return;
            }
        }
    }
}

/// False when it was stopped before the end.
fn remove_all(files: &Files, stop: &AtomicBool) -> fjall::Result<bool> {
    // Removing a table's rows removes its record: the next one is the first then.
    while let Some(table) = first(files)? {
        if !remove(files, table, stop)? {
            return Ok(false);
        }
        tracing::debug!(table, "rows of a dropped table removed");
    }
    Ok(true)
}

fn first(files: &Files) -> fjall::Result<Option<u32>> {
    for entry in files.data.prefix(keys::garbage()) {
        if let Some(number) = keys::number(&entry.key()?) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// False when it was stopped before the end.
fn remove(files: &Files, table: u32, stop: &AtomicBool) -> fjall::Result<bool> {
    let remove = |batch: &mut OwnedWriteBatch, key: &[u8], _value: &[u8]| {
        batch.remove(&files.data, key);
        batch.len() >= REMOVED_TOGETHER
    };
    if !files.in_pieces(&files.data, &keys::rows(table), remove, || !stop.load(Ordering::Relaxed))? {
        return Ok(false);
    }
    let mut batch = files.db.batch();
    batch.remove(&files.data, keys::garbage_of(table));
    batch.commit()?;
    Ok(true)
}
