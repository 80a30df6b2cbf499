//! Reads the log, and has the feeder make transactions of it: by a thread of its own, or by the one that has received little.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::Sender;
use relay::{LogReader, Read};

use crate::errors::exited_unexpectedly;
use crate::feeder::{Ended, Feeder, log_failure};
use crate::flow::handoff::{Handoff, Stage, Then, Thread};
use crate::flow::messages::Fed;

/// Between two looks at whether it is time to stop.
const TICK: Duration = Duration::from_millis(100);

pub struct Reading {
    pub reader: Box<dyn LogReader>,
    pub feeder: Feeder,
    pub ended: bool,
}

/// The feeder's own thread.
pub fn run(handoff: &Handoff<Reading>, out: &Sender<Fed>) {
    if handoff.run_loop().is_none() {
        // A coordinator that has gone does not need to know.
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
        TICK
    }
}

impl Reading {
    /// Until nothing more is there, or what comes next is for the own thread.
    fn feed(&mut self, thread: Thread) -> Result<Then, Ended> {
        let Self { reader, feeder, .. } = self;
        feeder.go_on(thread)?;
        while thread == Thread::Own || !feeder.is_for_own_thread() {
            if feeder.stop.load(Ordering::Relaxed) {
                return Err(Ended::Abandoned);
            }
            match reader.next() {
                Ok(Read::Event(located)) => feeder.take(located, thread)?,
                Ok(Read::CaughtUp) => {
                    feeder.caught_up()?;
                    feeder.hand_over()?;
                    return Ok(Then::Sleep);
                }
                Ok(Read::End) => {
                    feeder.caught_up()?;
                    return Err(feeder.end_of_log());
                }
                Err(error) => return Err(Ended::Failed(log_failure(&error))),
            }
        }
        Ok(Then::Again)
    }
}
