//! Exclusive row locks, held until commit, handed on in the order of asking.

use std::collections::{HashMap, VecDeque};

use crate::schema::TableIndex;
use crate::value::Key;

/// A row, there or not: inserts lock too.
pub type RowId = (TableIndex, Key);
/// Index of a session.
pub type SessionId = usize;

#[derive(Debug, Default)]
pub struct Locks {
    held: HashMap<RowId, Lock>,
}

#[derive(Debug)]
struct Lock {
    owner: SessionId,
    waiting: VecDeque<SessionId>,
}

/// Whether a session got what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAnswer {
    /// It did not have the lock before.
    Granted,
    /// It had the lock, perhaps because it was handed on to it.
    Owned,
    /// It is woken when the lock is its own.
    Waits,
}

impl Locks {
    pub fn ask(&mut self, row: RowId, session: SessionId) -> LockAnswer {
        let mut granted = false;
        let lock = self.held.entry(row).or_insert_with(|| {
            granted = true;
            Lock { owner: session, waiting: VecDeque::new() }
        });
        if granted {
            LockAnswer::Granted
        } else if lock.owner == session {
            LockAnswer::Owned
        } else {
            lock.waiting.push_back(session);
            LockAnswer::Waits
        }
    }

    /// Gives a lock back; whose it is then.
    pub fn release(&mut self, row: RowId) -> Option<SessionId> {
        let lock = self.held.get_mut(&row)?;
        match lock.waiting.pop_front() {
            Some(next) => {
                lock.owner = next;
                Some(next)
            }
            None => {
                self.held.remove(&row);
                None
            }
        }
    }
}
