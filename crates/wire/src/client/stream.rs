//! The byte stream under a connection, plain or inside TLS; and the handle that ends it.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use super::socket::Socket;
use crate::codec::certificate_proof::{Fingerprint, fingerprint};

/// How often a watcher looks whether it is time to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What packets are read from and written to.
pub(crate) enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    pub(crate) fn socket(&self) -> &Socket {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &tls.sock,
        }
    }

    pub(crate) fn socket_mut(&mut self) -> &mut Socket {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &mut tls.sock,
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// Of the certificate that the server has shown.
    pub(crate) fn certificate(&self) -> Option<Fingerprint> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => tls.conn.peer_certificates()?.first().map(|shown| fingerprint(shown)),
        }
    }

    /// Whether bytes have come from the socket that were not read from here yet.
    pub(crate) fn has_buffered(&mut self) -> bool {
        match self {
            Stream::Plain(_) => false,
            // An error is the next read's.
            Stream::Tls(tls) => tls.conn.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(out),
            Stream::Tls(tls) => tls.read(out),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write_vectored(slices),
            Stream::Tls(tls) => tls.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

/// Ends a connection from another thread: a read or write that is blocked returns at once with
/// [`Error::ShutDown`](crate::Error::ShutDown), and so does every later call.
#[derive(Clone, Debug)]
pub struct ShutdownHandle {
    inner: Arc<(Socket, AtomicBool)>,
}

impl ShutdownHandle {
    pub(crate) fn new(socket: &Socket) -> io::Result<Self> {
        Ok(ShutdownHandle { inner: Arc::new((socket.try_clone()?, AtomicBool::new(false))) })
    }

    /// Shuts the connection down. Can be called any number of times.
    pub fn shutdown(&self) {
        let (socket, done) = &*self.inner;
        done.store(true, Ordering::SeqCst);
        socket.shutdown();
    }

    /// True once [`shutdown`](Self::shutdown) was called on any clone.
    pub fn is_shut_down(&self) -> bool {
        self.inner.1.load(Ordering::SeqCst)
    }

    /// Asks the other side something, and shuts the connection down when `stop` is set, whether it answers or not. A thread watches; it ends with the
    /// answer.
    pub fn unless_stopped<T>(&self, stop: &AtomicBool, ask: impl FnOnce() -> T) -> T {
        let (answered, wait) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while wait.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if stop.load(Ordering::Relaxed) {
                        self.shutdown();
                    }
                }
            });
            let answer = ask();
            drop(answered);
            answer
        })
    }

    /// Closes without marking: the connection's own end.
    pub(crate) fn close(&self) {
        self.inner.0.shutdown();
    }
}
