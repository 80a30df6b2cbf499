//! What the coordinator asks the housekeeper to do.
//!
//! Not a queue but one flag for each kind of chore (and worker): a chore that is asked for again before it is done stays one. So the room
//! that it takes is bounded however long the target does not answer, and the coordinator never waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use engine::progress::Mark;
use engine::schedule::Worker;

/// The coordinator's side. When it is dropped, the housekeeper ends.
#[derive(Debug)]
pub struct ChoreSender {
    list: Arc<List>,
    wake: Sender<()>,
}

/// The housekeeper's side.
#[derive(Debug)]
pub struct ChoreReceiver {
    list: Arc<List>,
    woken: Receiver<()>,
}

#[derive(Debug)]
struct List {
    interrupts: Box<[AtomicBool]>,
    lock_waits: AtomicBool,
    lock_holders: AtomicBool,
    /// How long the last look for lock waits took, in microseconds.
    look_us: AtomicU64,
    low_water: Mutex<Option<Mark>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// There may be chores.
    Woken,
    TimedOut,
    /// There will be no more.
    Ended,
}

pub fn chores(workers: usize) -> (ChoreSender, ChoreReceiver) {
    let list = Arc::new(List {
        interrupts: (0..workers).map(|_| AtomicBool::new(false)).collect(),
        lock_waits: AtomicBool::new(false),
        lock_holders: AtomicBool::new(false),
        look_us: AtomicU64::new(0),
        low_water: Mutex::default(),
    });
    // One place is enough: who has not looked yet finds everything when it does.
    let (wake, woken) = bounded(1);
    (ChoreSender { list: Arc::clone(&list), wake }, ChoreReceiver { list, woken })
}

impl ChoreSender {
    fn wake(&self) {
        // Full: it has been woken and has not looked yet. Disconnected: it has failed, and the coordinator is told so by itself.
        let _ = self.wake.try_send(());
    }

    /// End what the worker's session executes.
    pub fn interrupt(&self, worker: Worker) {
        if let Some(flag) = self.list.interrupts.get(worker) {
            flag.store(true, Ordering::Release);
        }
        self.wake();
    }

    /// Look for workers that wait for each other's locks.
    pub fn look_for_lock_waits(&self) {
        self.list.lock_waits.store(true, Ordering::Release);
        self.wake();
    }

    /// How long the last look took.
    pub fn look_took(&self) -> Duration {
        Duration::from_micros(self.list.look_us.load(Ordering::Relaxed))
    }

    /// Ask who holds what workers wait for, for observers.
    pub fn look_for_lock_holders(&self) {
        self.list.lock_holders.store(true, Ordering::Release);
        self.wake();
    }

    /// Everything up to here is committed.
    pub fn low_water(&self, mark: Mark) {
        *self.list.low_water.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
        self.wake();
    }

    /// The housekeeper has not looked yet at what it was asked for last.
    pub fn is_behind(&self) -> bool {
        !self.wake.is_empty()
    }
}

impl ChoreReceiver {
    pub fn wait(&self, timeout: Duration) -> WaitOutcome {
        match self.woken.recv_timeout(timeout) {
            Ok(()) => WaitOutcome::Woken,
            Err(RecvTimeoutError::Timeout) => WaitOutcome::TimedOut,
            Err(RecvTimeoutError::Disconnected) => WaitOutcome::Ended,
        }
    }

    /// Workers to interrupt.
    pub fn take_interrupts(&self) -> impl Iterator<Item = Worker> + '_ {
        let flags = self.list.interrupts.iter().enumerate();
        flags.filter_map(|(worker, flag)| flag.swap(false, Ordering::Acquire).then_some(worker))
    }

    pub fn take_lock_waits(&self) -> bool {
        self.list.lock_waits.swap(false, Ordering::Acquire)
    }

    /// A look took so long.
    pub fn looked(&self, took: Duration) {
        self.list.look_us.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn take_lock_holders(&self) -> bool {
        self.list.lock_holders.swap(false, Ordering::Acquire)
    }

    pub fn take_low_water(&self) -> Option<Mark> {
        self.list.low_water.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chores_asked_for_twice_are_done_once() {
        let (sender, receiver) = chores(3);
        assert_eq!(receiver.wait(Duration::ZERO), WaitOutcome::TimedOut);
        for seq in [1, 2] {
            sender.interrupt(2);
            sender.interrupt(0);
            sender.look_for_lock_waits();
            sender.low_water(Mark { seq, ..Mark::default() });
        }
        assert!(sender.is_behind());
        assert_eq!(receiver.wait(Duration::ZERO), WaitOutcome::Woken);
        assert!(!sender.is_behind());
        assert_eq!(receiver.take_interrupts().collect::<Vec<_>>(), [0, 2]);
        assert!(receiver.take_lock_waits());
        assert_eq!(receiver.take_low_water().map(|mark| mark.seq), Some(2));
        assert_eq!(receiver.wait(Duration::ZERO), WaitOutcome::TimedOut);
        assert!(!receiver.take_lock_waits() && receiver.take_interrupts().next().is_none());
    }

    #[test]
    fn the_last_chores_come_before_the_end() {
        let (sender, receiver) = chores(1);
        sender.low_water(Mark { seq: 7, ..Mark::default() });
        drop(sender);
        assert_eq!(receiver.wait(Duration::ZERO), WaitOutcome::Woken);
        assert_eq!(receiver.take_low_water().map(|mark| mark.seq), Some(7));
        assert_eq!(receiver.wait(Duration::ZERO), WaitOutcome::Ended);
    }
}
