//! Reads a FIFO, a terminal or another pipe, until a signal asks it to end: who waits in `read` does not see one.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

pub struct Pipe<'a> {
    file: File,
    stopped: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Pipe<'a> {
    /// Does not wait for who writes.
    pub fn open(path: &Path, stopped: &'a (dyn Fn() -> bool + Sync)) -> Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Self { file, stopped })
    }

    fn wait(&self) -> Result<()> {
        loop {
            if (self.stopped)() {
                return Err(Error::new(ErrorKind::TimedOut, "stopped"));
            }
            let mut files = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut files, Some(&LOOK_EVERY)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Pipe<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        loop {
            self.wait()?;
            match self.file.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}
