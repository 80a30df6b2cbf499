//! Who waits for whose locks on the target, and who may be interrupted.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Instant;

use engine::failure::Failure;
use wire::{Connection, Row};

use crate::lock::locked;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::TargetInfo;

/// Workers whose sessions apply rows of a group that may not commit yet. No other session is interrupted.
#[derive(Debug, Default)]
pub struct Interruptible(Mutex<HashSet<usize>>);

impl Interruptible {
    /// The worker can be interrupted while `run` is under way, and not any more when this returns.
    pub fn while_running<T>(&self, worker: usize, run: impl FnOnce() -> T) -> T {
        locked(&self.0).insert(worker);
        let done = run();
        // Waits for an interruption that is under way.
        locked(&self.0).remove(&worker);
        done
    }

    /// Interrupts the worker if it can be interrupted. `interrupt` returns once the server has answered: so it hits nothing but rows that are
    /// ahead of their turn, or the rollback after them.
    pub fn interrupt(&self, worker: usize, interrupt: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        let interruptible = locked(&self.0);
        if interruptible.contains(&worker) { interrupt() } else { Ok(()) }
    }
}

/// Ends the statement that is under way on a connection.
pub fn kill_query(control: &mut Connection, id: u64) -> Result<(), wire::Error> {
    match control.execute(format!("KILL QUERY {id}")) {
        // The connection has ended by itself.
        Err(error) if error.code() == Some(code::NO_SUCH_THREAD) => Ok(()),
        other => other.map(|_| ()),
    }
}

#[derive(Debug, Default)]
pub struct LockWaits {
    /// When the lock information was last read.
    read: Mutex<Option<Instant>>,
    /// Workers that waited for a lock then.
    waiting: Mutex<HashSet<usize>>,
}

impl LockWaits {
    /// Pairs (waiting worker, blocking worker). `connections`: their ids by worker.
    pub fn read(
        &self,
        info: &TargetInfo,
        rows: impl FnOnce(&str) -> Result<Vec<Row>, Failure>,
        connections: impl FnOnce() -> Vec<u64>,
    ) -> Result<Vec<(usize, usize)>, Failure> {
        let mut read = locked(&self.read);
        if read.is_some_and(|at| at.elapsed() < info.lock_waits_pause()) {
            return Ok(Vec::new());
        }
        let rows = rows(info.lock_waits_sql())?;
        *read = Some(Instant::now());
        let connections = connections();
        let worker =
            |id: Option<u64>| connections.iter().position(|&connection| Some(connection) == id && connection != 0);
        let mut waits = Vec::new();
        let mut waiting_workers = HashSet::new();
        for row in rows {
            let (waiting, blocking) = (row.parse(0).map_err(failed)?, row.parse(1).map_err(failed)?);
            let Some(waiting) = worker(waiting) else { continue };
            waiting_workers.insert(waiting);
            if let Some(blocking) = worker(blocking) {
                waits.push((waiting, blocking));
            }
        }
        *locked(&self.waiting) = waiting_workers;
        Ok(waits)
    }

    /// Whether the worker waited for a lock when that was last asked.
    pub fn is_waiting(&self, worker: usize) -> bool {
        locked(&self.waiting).contains(&worker)
    }
}
