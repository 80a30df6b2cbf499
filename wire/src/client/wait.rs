//! Waiting for a stream's next event and for something else at once. It reads nothing.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::dump::BinlogStream;

impl BinlogStream {
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
