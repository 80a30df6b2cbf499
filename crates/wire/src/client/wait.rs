//! Waiting for a stream's next event and for something else at once. It reads nothing.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::dump::BinlogStream;

impl BinlogStream {
    /// Waits for at most so long until something of the next event has come, more than what is taken in already.
    pub fn comes_within(&mut self, time: Duration) -> bool {
        if self.connection.stream.has_buffered() {
            return true;
        }
        let timeout = Timespec::try_from(time).ok();
        let mut stream = [PollFd::new(&self.connection, PollFlags::IN)];
        poll(&mut stream, timeout.as_ref()).is_ok_and(|count| count > 0)
    }

    /// Waits until something of the next event has come, `other` can be read, or nothing has come for as long as [`next`](Self::next) would wait. True: `next` is to be called.
    pub fn comes_before(&mut self, other: BorrowedFd<'_>) -> bool {
        if self.next_is_buffered() || self.connection.stream.has_buffered() {
            return true;
        }
        let timeout = self.connection.read_timeout().and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut both = [PollFd::new(&self.connection, PollFlags::IN), PollFd::from_borrowed_fd(other, PollFlags::IN)];
        match poll(&mut both, timeout.as_ref()) {
            // The end of the wait, and errors, are the next read's.
            Ok(0) => true,
            Ok(_) => both.first().is_some_and(|stream| !stream.revents().is_empty()),
            Err(error) => error != rustix::io::Errno::INTR,
        }
    }
}
