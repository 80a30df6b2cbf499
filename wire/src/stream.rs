//! The byte stream under a connection: TCP or unix socket, plain or inside TLS; and the handle that ends it.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use crate::error::Error;
use crate::options::ConnectOptions;

/// A socket without TLS.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn connect(options: &ConnectOptions) -> Result<Socket, Error> {
        if let Some(path) = &options.socket {
            return UnixStream::connect(path)
                .map(Socket::Unix)
                .map_err(|source| Error::Connect { to: path.display().to_string(), source });
        }
        let to = || format!("{}:{}", options.host, options.port);
        let connect = |source| Error::Connect { to: to(), source };
        let deadline = Instant::now() + options.connect_timeout;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (options.host.as_str(), options.port).to_socket_addrs().map_err(connect)? {
            // A zero timeout is an error of the call, so the last address gets at least a moment.
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => {
                    set_up_tcp(&stream, options.tcp_keepalive).map_err(connect)?;
                    return Ok(Socket::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(connect(last))
    }

    fn try_clone(&self) -> io::Result<Socket> {
        match self {
            Socket::Tcp(stream) => stream.try_clone().map(Socket::Tcp),
            Socket::Unix(stream) => stream.try_clone().map(Socket::Unix),
        }
    }

    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        // The call refuses zero.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(timeout),
            Socket::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        match self {
            Socket::Tcp(stream) => stream.set_write_timeout(timeout),
            Socket::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    fn shutdown(&self) {
        // An error means that it is closed already.
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

fn set_up_tcp(stream: &TcpStream, keepalive: Option<Duration>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if let Some(idle) = keepalive {
        let interval = (idle / 6).max(Duration::from_secs(1));
        let keepalive =
            socket2::TcpKeepalive::new().with_time(idle.max(Duration::from_secs(1))).with_interval(interval);
        socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)?;
    }
    Ok(())
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(out),
            Socket::Unix(stream) => stream.read(out),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write_vectored(slices),
            Socket::Unix(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

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

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// True where a password may go over the stream as it is: nobody can listen in.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self, Stream::Tls(_) | Stream::Plain(Socket::Unix(_)))
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
/// [`Error::ShutDown`], and so does every later call.
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

    /// Closes without marking: the connection's own end.
    pub(crate) fn close(&self) {
        self.inner.0.shutdown();
    }
}
