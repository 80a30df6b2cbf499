//! The byte stream of a client's connection, plain or inside TLS, maybe compressed. Until the login is through, all that is read and written together has one deadline.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use rustls::{ServerConnection, StreamOwned};

use crate::codec::compressed::CompressedStream;

/// How often a write that waits looks for room: one that takes in a little at a time must not count as silent.
const STEP: Duration = Duration::from_secs(1);

/// A socket whose waits end in time.
#[derive(Debug)]
pub(crate) struct TimedSocket {
    tcp: TcpStream,
    /// None after the login.
    deadline: Option<Instant>,
    /// After the login: how long a write waits without any progress.
    write_timeout: Duration,
    /// A read that would wait is [`io::ErrorKind::WouldBlock`].
    waits_not: bool,
}

impl TimedSocket {
    pub(crate) fn new(tcp: TcpStream, deadline: Instant) -> Self {
        TimedSocket { tcp, deadline: Some(deadline), write_timeout: Duration::MAX, waits_not: false }
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// From here on a read waits for so long, and a write for so long without any progress.
    pub(crate) fn logged_in(&mut self, read: Duration, write: Duration) -> io::Result<()> {
        self.deadline = None;
        self.write_timeout = write;
        self.tcp.set_write_timeout(None)?;
        self.tcp.set_read_timeout(Some(read))
    }

    /// A write waits for so long without any progress.
    pub(crate) fn set_write_timeout(&mut self, timeout: Duration) {
        self.write_timeout = timeout;
    }

    /// A blocking write would come back after each timeout with what it has sent until then, and count from zero again.
    fn send(&self, mut send: impl FnMut(SendFlags) -> rustix::io::Result<usize>) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match send(SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Err(rustix::io::Errno::AGAIN) => {}
                sent => return Ok(sent?),
            }
            let left = self.write_timeout.saturating_sub(began.elapsed()).min(STEP);
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let step = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&self.tcp, PollFlags::OUT)], Some(&step)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// From here on reads do not wait.
    pub(crate) fn read_without_waiting(&mut self) {
        self.waits_not = true;
    }

    fn remaining(&self) -> io::Result<Option<Duration>> {
        match self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
            remaining => Ok(remaining),
        }
    }
}

impl Read for TimedSocket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(remaining) = self.remaining()? {
            self.tcp.set_read_timeout(Some(remaining))?;
        }
        if self.waits_not {
            let (read, _) = recv(&self.tcp, out, RecvFlags::DONTWAIT)?;
            return Ok(read);
        }
        self.tcp.read(out)
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(remaining) = self.remaining()? {
            self.tcp.set_write_timeout(Some(remaining))?;
            return self.tcp.write(bytes);
        }
        self.send(|flags| send(&self.tcp, bytes, flags))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if let Some(remaining) = self.remaining()? {
            self.tcp.set_write_timeout(Some(remaining))?;
            return self.tcp.write_vectored(slices);
        }
        self.send(|flags| sendmsg(&self.tcp, slices, &mut SendAncillaryBuffer::default(), flags))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What packets are read from and written to.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TimedSocket),
    Tls(Box<StreamOwned<ServerConnection, TimedSocket>>),
    Compressed(Box<CompressedStream<Stream>>),
}

impl Stream {
    pub(crate) fn timed(&self) -> &TimedSocket {
        match self {
            Stream::Plain(timed) => timed,
            Stream::Tls(tls) => &tls.sock,
            Stream::Compressed(compressed) => compressed.inner().timed(),
        }
    }

    pub(crate) fn timed_mut(&mut self) -> &mut TimedSocket {
        match self {
            Stream::Plain(timed) => timed,
            Stream::Tls(tls) => &mut tls.sock,
            Stream::Compressed(compressed) => compressed.inner_mut().timed_mut(),
        }
    }

    /// What is sent is numbered from this on.
    pub(crate) fn number_from(&mut self, sequence: u8) {
        if let Stream::Compressed(compressed) = self {
            compressed.number_from(sequence);
        }
    }

    /// Whether the client has shown a certificate, which TLS has then verified.
    pub(crate) fn has_certificate(&self) -> bool {
        matches!(self, Stream::Tls(tls) if tls.conn.peer_certificates().is_some_and(|chain| !chain.is_empty()))
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.read(out),
            Stream::Tls(tls) => tls.read(out),
            Stream::Compressed(compressed) => compressed.read(out),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
            Stream::Compressed(compressed) => compressed.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Plain(timed) => timed.write_vectored(slices),
            Stream::Tls(tls) => tls.write_vectored(slices),
            Stream::Compressed(compressed) => compressed.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(timed) => timed.flush(),
            Stream::Tls(tls) => tls.flush(),
            Stream::Compressed(compressed) => compressed.flush(),
        }
    }
}
