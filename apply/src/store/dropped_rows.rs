//! Removes the rows of dropped tables in a thread of its own, while the channel goes on.
//!
//! A record names each such table until all its rows are gone, so that the work goes on after a restart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use fjall::OwnedWriteBatch;

use super::files::Files;
use super::keys;

/// Rows of one write.
const REMOVED_TOGETHER: usize = 2_000;

pub struct DroppedRows {
    stop: Arc<AtomicBool>,
    running: Mutex<Option<(Sender<u32>, JoinHandle<()>)>>,
}

impl DroppedRows {
    pub fn start(files: Arc<Files>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        // Bounded by the number of dropped tables whose rows are still there.
        let (send, tables) = unbounded();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("store-removal".to_owned())
            .spawn(move || run(&files, &tables, &stopped))?;
        Ok(Self { stop, running: Mutex::new(Some((send, thread))) })
    }

    pub fn remove(&self, table: u32) {
        if let Some((send, _)) = &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            // The thread ends early only when it has panicked: the record keeps the work for the next start.
            let _ = send.send(table);
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

fn run(files: &Files, tables: &Receiver<u32>, stop: &AtomicBool) {
    for table in tables {
        match remove(files, table, stop) {
            Ok(true) => tracing::debug!(table, "rows of a dropped table removed"),
            Ok(false) => return,
            Err(error) => {
                tracing::warn!("removing the rows of a dropped table: {error}");
                return;
            }
        }
    }
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
