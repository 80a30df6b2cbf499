//! The byte stream of a client's connection, plain or inside TLS, maybe compressed. Until the login is through, all that is read and written together has one deadline.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};
use rustls::{ServerConnection, StreamOwned};

use crate::codec::compressed::Compressed;

/// A socket whose waits end in time.
#[derive(Debug)]
pub(crate) struct Timed {
    tcp: TcpStream,
    /// None after the login: the socket's own timeouts hold.
    deadline: Option<Instant>,
    /// A read that would wait is [`io::ErrorKind::WouldBlock`].
    waits_not: bool,
}

impl Timed {
    pub(crate) fn new(tcp: TcpStream, deadline: Instant) -> Self {
        Timed { tcp, deadline: Some(deadline), waits_not: false }
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// From here on a read waits for so long, and a write for so long without any progress.
    pub(crate) fn logged_in(&mut self, read: Duration, write: Duration) -> io::Result<()> {
        self.deadline = None;
        self.tcp.set_read_timeout(Some(read))?;
        self.tcp.set_write_timeout(Some(write))
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

impl Read for Timed {
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

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(remaining) = self.remaining()? {
            self.tcp.set_write_timeout(Some(remaining))?;
        }
        self.tcp.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if let Some(remaining) = self.remaining()? {
            self.tcp.set_write_timeout(Some(remaining))?;
        }
        self.tcp.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What packets are read from and written to.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Timed),
    Tls(Box<StreamOwned<ServerConnection, Timed>>),
    Compressed(Box<Compressed<Stream>>),
}

impl Stream {
    pub(crate) fn timed(&self) -> &Timed {
        match self {
            Stream::Plain(timed) => timed,
            Stream::Tls(tls) => &tls.sock,
            Stream::Compressed(compressed) => compressed.inner().timed(),
        }
    }

    pub(crate) fn timed_mut(&mut self) -> &mut Timed {
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
