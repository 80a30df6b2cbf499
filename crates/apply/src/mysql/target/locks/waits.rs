//! Who waits for whose locks on the target, and who may be interrupted.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

use engine::failure::Failure;
use wire::{Connection, Row};

use crate::lock::locked;
use crate::mysql::server::errors::{code, failed};
use crate::mysql::server::info::TargetInfo;

/// Workers whose sessions apply rows of a group that may not commit yet. No other session is interrupted.
#[derive(Debug, Default)]
pub struct InterruptibleWorkers(Mutex<HashSet<usize>>);

impl InterruptibleWorkers {
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
    /// Whether the session that asked had a transaction then.
    marked: AtomicBool,
    /// So many times it was old since it was surely new.
    old: AtomicU32,
    /// The look before was as it should be.
    was_right: AtomicBool,
}

/// One other reader now and then, such as a monitoring tool, makes the information old once. Who reads it all the time does so for good.
const OLD_MAX: u32 = 3;

/// How lock information is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    Plainly,
    /// In a transaction of the session that asks.
    InTransaction,
}

impl LockWaits {
    /// Pairs (waiting worker, blocking worker). `connections`: their ids by worker.
    ///
    /// Who reads InnoDB's tables in `information_schema` all the time keeps them as they are, for everybody. So every second time they are read in a transaction:
    /// where they do not show it, or show it without one, they are old. Where they stay so, everybody who is in a statement may be waiting.
    pub fn read(
        &self,
        info: &TargetInfo,
        rows: impl FnOnce(&str, ReadMode) -> Result<Vec<Row>, Failure>,
        connections: impl FnOnce() -> Vec<u64>,
    ) -> Result<Vec<(usize, usize)>, Failure> {
        let mut read = locked(&self.read);
        if read.is_some_and(|at| at.elapsed() < info.lock_waits_pause()) {
            return Ok(Vec::new());
        }
        let is_marked = !info.lock_waits_pause().is_zero() && !self.marked.fetch_xor(true, Ordering::Relaxed);
        let rows = rows(info.lock_waits_sql(), if is_marked { ReadMode::InTransaction } else { ReadMode::Plainly })?;
        *read = Some(Instant::now());
        let connections = connections();
        let mut waits = Waits::default();
        let (mut in_statement, mut shows_mark) = (Vec::new(), false);
        for row in rows {
            let at = |index| row.parse::<u64>(index).map(Option::unwrap_or_default).map_err(failed);
            let session = at(0)?;
            match at(2)? {
                0 => waits.behind_unknown.push(session),
                1 => waits.for_rows.entry(session).or_default().push(at(1)?),
                2 => in_statement.push(session),
                _ => shows_mark = true,
            }
        }
        let is_old = shows_mark != is_marked;
        if is_old {
            waits.for_rows.clear();
        }
        if self.is_never_new(is_old) {
            waits.behind_unknown.append(&mut in_statement);
        }
        let is_waiting = |&(_, id): &(usize, &u64)| waits.for_rows.contains_key(id);
        *locked(&self.waiting) = connections.iter().enumerate().filter(is_waiting).map(|(worker, _)| worker).collect();
        Ok(waits.between_workers(&connections))
    }

    /// Who else of us reads InnoDB's tables keeps them as they are, too: they are left alone for a while.
    pub fn read_beside(&self) {
        *locked(&self.read) = Some(Instant::now());
    }

    /// Whether the information stays as it is. What never changes is right every second time: only two right answers in a row, one with our transaction and one
    /// without, say that it is new.
    fn is_never_new(&self, is_old: bool) -> bool {
        let was_right = self.was_right.swap(!is_old, Ordering::Relaxed);
        if is_old {
            self.old.fetch_add(1, Ordering::Relaxed);
        } else if was_right {
            self.old.store(0, Ordering::Relaxed);
        }
        self.old.load(Ordering::Relaxed) >= OLD_MAX
    }

    /// Whether the worker waited for a lock when that was last asked.
    pub fn is_waiting(&self, worker: usize) -> bool {
        locked(&self.waiting).contains(&worker)
    }
}

/// Who waits for whom, by the ids of connections; 0 is nobody's.
#[derive(Debug, Default)]
struct Waits {
    /// For locks of rows: waiting session → sessions that hold what it needs.
    for_rows: HashMap<u64, Vec<u64>>,
    /// For another lock (of a table, a schema, the server), whose holder is not known.
    behind_unknown: Vec<u64>,
}

impl Waits {
    /// Pairs (waiting worker, blocking worker). Clients of the target may be between the two: a worker waits for a client, and the client for the
    /// other worker. Who waits for a lock whose holder is not known may wait for every other worker: a client that waits for the table lock of one
    /// worker holds up all that come behind it.
    fn between_workers(&self, connections: &[u64]) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let workers = || connections.iter().enumerate().filter(|&(_, &id)| id != 0);
        for (worker, &id) in workers() {
            if self.behind_unknown.contains(&id) {
                pairs.extend(workers().filter(|&(other, _)| other != worker).map(|(other, _)| (worker, other)));
                continue;
            }
            let mut seen = HashSet::from([id]);
            let mut next = vec![id];
            while let Some(session) = next.pop() {
                for &blocking in self.for_rows.get(&session).into_iter().flatten() {
                    if blocking == 0 || !seen.insert(blocking) {
                        continue;
                    }
                    match connections.iter().position(|&connection| connection == blocking) {
                        Some(other) => pairs.push((worker, other)),
                        None => next.push(blocking),
                    }
                }
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everybody who is in a statement is taken for waiting then, and those groups begin again: on a disk that is slow to read that costs more than it saves.
    #[test]
    fn old_once_is_not_old_for_good() {
        let waits = LockWaits::default();
        let looks = |list: &[bool]| -> Vec<bool> { list.iter().map(|&is_old| waits.is_never_new(is_old)).collect() };
        assert_eq!(looks(&[true, false, false, true, true, false, false]), [false; 7]);
        // As it is where the answer never changes.
        assert_eq!(
            looks(&[true, false, true, false, true, false, true]),
            [false, false, false, false, true, true, true]
        );
        assert_eq!(looks(&[false, false, true]), [true, false, false]);
    }

    #[test]
    fn chains_go_through_clients_of_the_target() {
        let check = |rows: &[(u64, u64)], behind_unknown: &[u64], expected: &[(usize, usize)]| {
            let mut waits = Waits { behind_unknown: behind_unknown.to_vec(), ..Waits::default() };
            rows.iter().for_each(|&(waiting, blocking)| waits.for_rows.entry(waiting).or_default().push(blocking));
            assert_eq!(waits.between_workers(&[10, 11, 0, 12]), expected, "{rows:?} {behind_unknown:?}");
        };
        check(&[(10, 11)], &[], &[(0, 1)]);
        check(&[(10, 99), (99, 11)], &[], &[(0, 1)]);
        check(&[(10, 99), (99, 98), (98, 12), (98, 99)], &[], &[(0, 3)]);
        // A worker in between speaks for itself.
        check(&[(10, 11), (11, 12)], &[], &[(0, 1), (1, 3)]);
        // Nobody's; clients among themselves; a client that waits for the worker that waits for it.
        check(&[(10, 0), (0, 11), (99, 98), (99, 11)], &[], &[]);
        check(&[(10, 99), (99, 10)], &[], &[]);
        check(&[], &[11, 99], &[(1, 0), (1, 3)]);
    }
}
