//! Workers wait while a server has more to do than it should.

use std::thread;
use std::time::{Duration, Instant};

use wire::{Connection, Error};

use crate::source::threads_running;

const ASK_EVERY: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Of one worker.
#[derive(Debug)]
pub struct Throttle {
    /// `None`: nobody waits.
    threads_running_max: Option<u64>,
    asked: Option<Instant>,
}

impl Throttle {
    pub fn new(threads_running_max: Option<u64>) -> Self {
        Self { threads_running_max, asked: None }
    }

    /// Returns when none of the servers has more threads running, or `is_ending` says so. Heddle's own sessions count: each runs while it is asked.
    ///
    /// # Errors
    /// A server can not be asked.
    pub fn wait(&mut self, servers: &mut [&mut Connection], is_ending: &dyn Fn() -> bool) -> Result<(), Error> {
        let Some(max) = self.threads_running_max else { return Ok(()) };
        if self.asked.is_some_and(|asked| asked.elapsed() < ASK_EVERY) {
            return Ok(());
        }
        while !is_ending() {
            let mut running = 0;
            for server in servers.iter_mut() {
                running = running.max(threads_running(server)?);
            }
            self.asked = Some(Instant::now());
            if running <= max {
                break;
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}
