//! The feeder as a stage: reads the log. It runs in its own thread or, for little work, in the thread that has received it.

use std::time::Duration;

use crossbeam_channel::Sender;
use relay::{LogReader, Read};

use super::transactions::{FeedEnd, Feeder};
use crate::errors::exited_unexpectedly;
use crate::flow::handoff::{Handoff, Stage, StageState, Thread};
use crate::flow::messages::FeederMessage;
use crate::log_failures::log_failure;

/// Between two looks at whether it is time to stop.
const TICK: Duration = Duration::from_millis(100);
/// The same where transactions wait for the end of an XA branch.
const AHEAD_TICK: Duration = Duration::from_millis(1);

pub struct FeederStage {
    reader: Box<dyn LogReader>,
    feeder: Feeder,
    ended: bool,
}

/// The loop of the feeder's own thread.
pub fn run(reading: &Handoff<FeederStage>, out: &Sender<FeederMessage>) {
    if reading.run_loop().is_none() {
        // If the coordinator is gone, it does not need to know.
        let _ = out.send(FeederMessage::Failed(exited_unexpectedly("the feeder thread")));
    }
}

impl Stage for FeederStage {
    fn run_once(&mut self, thread: Thread) -> StageState {
        if self.ended {
            return StageState::End;
        }
        match self.feed(thread) {
            Ok(then) => return then,
            Err(FeedEnd::Finished) => self.feeder.end(FeederMessage::End),
            Err(FeedEnd::Failed(failure)) => self.feeder.end(FeederMessage::Failed(failure)),
            Err(FeedEnd::Abandoned) => {}
        }
        self.ended = true;
        StageState::End
    }

    fn tick(&self) -> Duration {
        if self.feeder.looks_ahead() { AHEAD_TICK } else { TICK }
    }
}

impl FeederStage {
    pub fn new(reader: Box<dyn LogReader>, feeder: Feeder) -> Self {
        Self { reader, feeder, ended: false }
    }

    /// Until nothing more is there, or what comes next is for the own thread.
    fn feed(&mut self, thread: Thread) -> Result<StageState, FeedEnd> {
        let Self { reader, feeder, .. } = self;
        feeder.go_on(thread)?;
        while thread == Thread::Own || !feeder.is_for_own_thread() {
            if feeder.is_stopping() {
                return Err(FeedEnd::Abandoned);
            }
            if feeder.is_paused() {
                feeder.hand_over()?;
                return Ok(StageState::Sleep);
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
                    return Ok(StageState::Sleep);
                }
                Ok(Read::End) => {
                    feeder.all_is_read()?;
                    return Err(feeder.end_of_log());
                }
                Err(error) => return Err(FeedEnd::Failed(log_failure(&error, feeder.memory()))),
            }
        }
        Ok(StageState::Again)
    }
}
