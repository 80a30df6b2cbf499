//! The feeder as a stage: reads the log. It runs in its own thread or, for little work, in the thread that has received it.

use std::time::Duration;

use crossbeam_channel::Sender;
use relay::{LogReader, Read};

use super::failures::log_failure;
use super::transactions::{Ended, Feeder};
use crate::errors::exited_unexpectedly;
use crate::flow::handoff::{Handoff, Stage, Then, Thread};
use crate::flow::messages::Fed;

/// Between two looks at whether it is time to stop.
const TICK: Duration = Duration::from_millis(100);
/// The same where transactions wait for the end of an XA branch.
const AHEAD_TICK: Duration = Duration::from_millis(1);

pub struct Reading {
    reader: Box<dyn LogReader>,
    feeder: Feeder,
    ended: bool,
}

/// The loop of the feeder's own thread.
pub fn run(reading: &Handoff<Reading>, out: &Sender<Fed>) {
    if reading.run_loop().is_none() {
        // If the coordinator is gone, it does not need to know.
        let _ = out.send(Fed::Failed(exited_unexpectedly("the feeder thread")));
    }
}

impl Stage for Reading {
    fn run_once(&mut self, thread: Thread) -> Then {
        if self.ended {
            return Then::End;
        }
        match self.feed(thread) {
            Ok(then) => return then,
            Err(Ended::Finished) => self.feeder.end(Fed::End),
            Err(Ended::Failed(failure)) => self.feeder.end(Fed::Failed(failure)),
            Err(Ended::Abandoned) => {}
        }
        self.ended = true;
        Then::End
    }

    fn tick(&self) -> Duration {
        if self.feeder.looks_ahead() { AHEAD_TICK } else { TICK }
    }
}

impl Reading {
    pub fn new(reader: Box<dyn LogReader>, feeder: Feeder) -> Self {
        Self { reader, feeder, ended: false }
    }

    /// Until nothing more is there, or what comes next is for the own thread.
    fn feed(&mut self, thread: Thread) -> Result<Then, Ended> {
        let Self { reader, feeder, .. } = self;
        feeder.go_on(thread)?;
        while thread == Thread::Own || !feeder.is_for_own_thread() {
            if feeder.is_stopping() {
                return Err(Ended::Abandoned);
            }
            if feeder.is_paused() {
                feeder.hand_over()?;
                return Ok(Then::Sleep);
            }
            match reader.next() {
                Ok(Read::Event(located)) => {
                    feeder.take(located, thread)?;
                    // What it takes from here on is counted.
                    reader.release();
                }
                Ok(Read::Large(bytes)) => feeder.large_event(bytes, thread)?,
                Ok(Read::CaughtUp) => {
                    feeder.caught_up()?;
                    feeder.hand_over()?;
                    return Ok(Then::Sleep);
                }
                Ok(Read::End) => {
                    feeder.all_is_read()?;
                    return Err(feeder.end_of_log());
                }
                Err(error) => return Err(Ended::Failed(log_failure(&error, feeder.memory()))),
            }
        }
        Ok(Then::Again)
    }
}
