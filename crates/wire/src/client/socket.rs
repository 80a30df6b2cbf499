//! TCP and unix sockets: connecting, the options that notice a machine that is gone, and waits that end in time. Knows nothing of packets.
//!
//! # A machine that is gone
//! What is sent to it is acknowledged by nobody, and the system repeats it for a quarter of an hour. `TCP_USER_TIMEOUT` ends that earlier;
//! where nothing was sent, keepalive does. Neither says anything of a server that works on a statement: its machine acknowledges all the same.
//!
//! But Linux ends a connection by `TCP_USER_TIMEOUT` as well when the other side has been without room for so long: a server in a long statement that reads
//! nothing of what was sent behind it. So who sends much ahead lifts it for that time ([`Socket::watch_peer`]).

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, SockRef, TcpKeepalive, Type};

use super::interrupt::Interrupt;
use super::options::ConnectOptions;
use crate::error::Error;

/// A wait during the login looks so often whether it is to end.
const LOGIN_STEP: Duration = Duration::from_millis(100);
/// So does a write afterwards. (The step of reads is the connection's.)
const WRITE_STEP: Duration = Duration::from_secs(1);
/// A unix socket whose queue is full cannot be waited for: it is tried this often.
const UNIX_STEP: Duration = Duration::from_millis(20);
const KEEPALIVE_PROBES: u32 = 3;
const CONNECTING: &str = "connecting";

/// A wait was ended by the [`Interrupt`].
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
struct GaveUp;

pub(crate) fn gave_up(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<GaveUp>()).is_some()
}

/// How long one socket waits.
#[derive(Clone, Debug)]
struct Patience {
    interrupt: Interrupt,
    /// Until the login is through.
    deadline: Option<Instant>,
}

impl Patience {
    fn check(&self) -> io::Result<()> {
        if self.interrupt.is_over() {
            return Err(io::Error::other(GaveUp));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket without TLS. Until [`Socket::logged_in`] all that it does together has a deadline.
#[derive(Debug)]
pub(crate) struct Socket {
    kind: Kind,
    patience: Patience,
    /// None: not watched.
    dead_peer_timeout: Option<Duration>,
}

impl Socket {
    pub(crate) fn connect(options: &ConnectOptions) -> Result<Socket, Error> {
        let limits = &options.limits;
        let patience =
            Patience { interrupt: limits.interrupt.clone(), deadline: Some(Instant::now() + limits.connect_timeout) };
        let (connected, to) = match &options.socket {
            Some(path) => (connect_unix(path, &patience).map(Kind::Unix), path.display().to_string()),
            None => (
                connect_tcp(&options.host, options.port, &patience).map(Kind::Tcp),
                format!("{}:{}", options.host, options.port),
            ),
        };
        let failed = |source: io::Error| {
            if gave_up(&source) {
                return Error::Interrupted { during: CONNECTING };
            }
            Error::Connect { to: binlog::text::escape(&to).into_owned(), source }
        };
        let socket = Socket { kind: connected.map_err(failed)?, patience, dead_peer_timeout: limits.dead_peer_timeout };
        socket.set_up().map_err(failed)?;
        Ok(socket)
    }

    fn set_up(&self) -> io::Result<()> {
        if let Kind::Tcp(stream) = &self.kind {
            stream.set_nodelay(true)?;
            if let Some(timeout) = self.dead_peer_timeout {
                let idle = (timeout / 2).max(Duration::from_secs(1));
                let interval = (timeout.saturating_sub(idle) / KEEPALIVE_PROBES).max(Duration::from_secs(1));
                let keepalive =
                    TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(KEEPALIVE_PROBES);
                SockRef::from(stream).set_tcp_keepalive(&keepalive)?;
            }
        }
        self.watch_peer(Watch::On)?;
        self.set_read_timeout(LOGIN_STEP)?;
        self.set_write_timeout(LOGIN_STEP)
    }

    /// From here on no deadline: the connection says how long it waits for an answer.
    pub(crate) fn logged_in(&mut self) -> io::Result<()> {
        self.patience.deadline = None;
        self.set_write_timeout(WRITE_STEP)
    }

    /// Whether the connection ends when what was sent is not acknowledged, or not taken in, for long.
    pub(crate) fn watch_peer(&self, watch: Watch) -> io::Result<()> {
        match (&self.kind, self.dead_peer_timeout) {
            (Kind::Tcp(stream), Some(timeout)) => {
                SockRef::from(stream).set_tcp_user_timeout((watch == Watch::On).then_some(timeout))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_unix(&self) -> bool {
        matches!(self.kind, Kind::Unix(_))
    }

    /// Shares the connection, not the waits.
    pub(crate) fn try_clone(&self) -> io::Result<Socket> {
        let kind = match &self.kind {
            Kind::Tcp(stream) => Kind::Tcp(stream.try_clone()?),
            Kind::Unix(stream) => Kind::Unix(stream.try_clone()?),
        };
        Ok(Socket { kind, patience: self.patience.clone(), dead_peer_timeout: self.dead_peer_timeout })
    }

    /// A read without a byte returns after so long.
    pub(crate) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        // The call refuses zero.
        let timeout = Some(timeout.max(Duration::from_millis(1)));
        match &self.kind {
            Kind::Tcp(stream) => stream.set_read_timeout(timeout),
            Kind::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Once the process is asked to end, a read looks more often whether that is over.
    pub(crate) fn hurry_up(&self) {
        if self.patience.interrupt.is_asked() {
            // Else it is noticed a moment later.
            let _ = self.set_read_timeout(LOGIN_STEP);
        }
    }

    fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        match &self.kind {
            Kind::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
            Kind::Unix(stream) => stream.set_write_timeout(Some(timeout)),
        }
    }

    pub(crate) fn shutdown(&self) {
        // An error means that it is closed already.
        let _ = match &self.kind {
            Kind::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Kind::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// Whether the other machine's silence ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    On,
    Off,
}

/// The addresses of a name share the time, so that one that nobody answers at leaves some for the next.
fn connect_tcp(host: &str, port: u16, patience: &Patience) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut addresses = (host, port).to_socket_addrs()?;
    while let Some(address) = addresses.next() {
        let left = patience.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let share = left.unwrap_or_default() / u32::try_from(addresses.len().saturating_add(1)).unwrap_or(u32::MAX);
        let patience = Patience { deadline: Some(Instant::now() + share), ..patience.clone() };
        match connect_address(address, &patience) {
            Ok(stream) => return Ok(stream),
            Err(error) if gave_up(&error) => return Err(error),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_address(address: SocketAddr, patience: &Patience) -> io::Result<TcpStream> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => loop {
            patience.check()?;
            let step = Timespec::try_from(LOGIN_STEP).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&step)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => break socket.take_error()?.map_or(Ok(()), Err)?,
                Err(error) => return Err(error.into()),
            }
        },
        other => other?,
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

fn connect_unix(path: &Path, patience: &Patience) -> io::Result<UnixStream> {
    let address = SockAddr::unix(path)?;
    let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    while let Err(error) = socket.connect(&address) {
        // The queue of who listens is full.
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(error);
        }
        patience.check()?;
        std::thread::sleep(UNIX_STEP);
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

/// Nothing has come, or gone out, for as long as a call waits.
pub(crate) fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
        // ETIMEDOUT is the system's word for a machine that is gone.
        && error.raw_os_error() != Some(Errno::TIMEDOUT.raw_os_error())
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tcp(stream) => stream.as_fd(),
            Kind::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    /// After the login it returns `WouldBlock` when the read timeout has passed.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            self.patience.check()?;
            let read = match &mut self.kind {
                Kind::Tcp(stream) => stream.read(out),
                Kind::Unix(stream) => stream.read(out),
            };
            match read {
                Err(error) if is_silence(&error) && self.patience.deadline.is_some() => {}
                other => return other,
            }
        }
    }
}

impl Socket {
    fn write_with(&mut self, mut write: impl FnMut(&mut dyn Write) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            self.patience.check()?;
            let written = match &mut self.kind {
                Kind::Tcp(stream) => write(stream),
                Kind::Unix(stream) => write(stream),
            };
            match written {
                Err(error) if is_silence(&error) => {}
                other => return other,
            }
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_with(|socket| socket.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_with(|socket| socket.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_gone_is_noticed_unless_much_was_sent_ahead() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let options = ConnectOptions { port: listener.local_addr().unwrap().port(), ..ConnectOptions::default() };
        let socket = Socket::connect(&options).unwrap();
        let Kind::Tcp(stream) = &socket.kind else { panic!("not TCP") };
        let system = SockRef::from(stream);
        assert_eq!(system.tcp_user_timeout().unwrap(), Some(Duration::from_secs(30)));
        assert!(system.keepalive().unwrap() && stream.nodelay().unwrap());
        assert_eq!(system.tcp_keepalive_time().unwrap(), Duration::from_secs(15));
        assert_eq!(system.tcp_keepalive_interval().unwrap(), Duration::from_secs(5));
        assert_eq!(system.tcp_keepalive_retries().unwrap(), 3);
        socket.watch_peer(Watch::Off).unwrap();
        assert_eq!(system.tcp_user_timeout().unwrap(), None);
        socket.watch_peer(Watch::On).unwrap();
        assert_eq!(system.tcp_user_timeout().unwrap(), Some(Duration::from_secs(30)));
    }
}
