//! The listening socket. While replicas are not to attach it has its address and does not listen: connections are refused by the system at once, so that a
//! client with several addresses tries the next one.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt};

use crate::standby::Gate;

/// Connections that wait to be accepted, as the standard library has it.
const BACKLOG: i32 = 128;

/// See the module.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    gate: Option<Arc<Gate>>,
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Reserved(OwnedFd),
    Listening(TcpListener),
    /// It could not be had again.
    Absent,
}

/// What has become of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Clients can be accepted.
    Open,
    /// It has just been closed: those who are connected are to go.
    Closing,
    Closed,
}

impl Listener {
    /// At the first address of the name that can be had. With a gate it listens while that one is open.
    ///
    /// # Errors
    /// None can be had.
    pub fn start(address: &str, gate: Option<Arc<Gate>>) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
        for candidate in address.to_socket_addrs()? {
            match reserve(candidate) {
                Ok((socket, address)) => {
                    let mut listener = Self { address, gate, socket: Socket::Reserved(socket) };
                    if listener.gate.is_none() {
                        listener.open()?;
                    }
                    return Ok(listener);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// As the gate wants it.
    pub(super) fn turn(&mut self) -> io::Result<Turn> {
        let is_wanted = self.gate.as_ref().is_none_or(|gate| gate.is_open());
        match (&self.socket, is_wanted) {
            (Socket::Listening(_), true) => Ok(Turn::Open),
            (Socket::Reserved(_) | Socket::Absent, true) => {
                self.open()?;
                tracing::info!("replicas can attach to {}", self.address);
                Ok(Turn::Open)
            }
            (Socket::Listening(_), false) => {
                self.socket = Socket::Absent;
                self.socket = Socket::Reserved(reserve(self.address)?.0);
                Ok(Turn::Closing)
            }
            (Socket::Reserved(_) | Socket::Absent, false) => Ok(Turn::Closed),
        }
    }

    /// None: nobody waits.
    pub(super) fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.socket {
            Socket::Listening(listener) => listener.accept(),
            Socket::Reserved(_) | Socket::Absent => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// To wait for clients with.
    pub(super) fn listening(&self) -> Option<&TcpListener> {
        match &self.socket {
            Socket::Listening(listener) => Some(listener),
            Socket::Reserved(_) | Socket::Absent => None,
        }
    }

    fn open(&mut self) -> io::Result<()> {
        let socket = match std::mem::replace(&mut self.socket, Socket::Absent) {
            Socket::Reserved(socket) => socket,
            Socket::Absent => reserve(self.address)?.0,
            listening @ Socket::Listening(_) => {
                self.socket = listening;
                return Ok(());
            }
        };
        listen(&socket, BACKLOG)?;
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        self.socket = Socket::Listening(listener);
        Ok(())
    }
}

fn reserve(address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    let bound = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((socket, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_its_gate_is_closed_connections_are_refused() {
        let gate = Arc::new(Gate::new("other:3306".to_owned()));
        let mut listener = Listener::start("127.0.0.1:0", Some(Arc::clone(&gate))).unwrap();
        let at = listener.address();
        let refused = || TcpStream::connect(at).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        assert!(refused() && listener.turn().unwrap() == Turn::Closed && listener.listening().is_none());
        gate.open();
        assert_eq!(listener.turn().unwrap(), Turn::Open);
        let _client = TcpStream::connect(at).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip(), at.ip());
        gate.close();
        assert_eq!(listener.turn().unwrap(), Turn::Closing);
        assert!(refused());
        assert_eq!(listener.turn().unwrap(), Turn::Closed);
        gate.open();
        assert_eq!(listener.turn().unwrap(), Turn::Open);
    }

    #[test]
    fn without_a_gate_it_listens_at_once() {
        let mut listener = Listener::start("localhost:0", None).unwrap();
        assert_eq!(listener.turn().unwrap(), Turn::Open);
        let taken = Listener::start(&listener.address().to_string(), None).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
