//! Clients: who is connected, their commands, and how many there may be.
//!
//! One thread a client. A client costs its thread and a bounded buffer; one that speaks nonsense, says nothing or takes nothing in costs nobody else anything.

mod groups;
mod registry;
mod session;
mod shared;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::server::{Closer, Identity, PeerOptions, Plugin, RsaKey, ServerError, TlsFiles, server_tls};

pub use self::groups::Groups;
pub use self::registry::Attached;
use self::registry::Registry;
use self::shared::Shared;
use crate::accounts::Book;
use crate::inventory::{Inventory, SourceFacts};
use crate::queries::Own;
use crate::seen::Monitor;
use crate::semisync::Acks;

/// How often the listener looks whether it is to end.
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const STEP_WAIT: Duration = Duration::from_millis(100);
const STACK_BYTES: usize = 512 << 10;

/// How a server listens.
#[derive(Debug)]
pub struct Settings {
    pub accounts: Book,
    pub tls: Option<TlsFiles>,
    /// Connections at the same time.
    pub connections_max: usize,
    /// How the mirror stands to its source.
    pub monitor: Arc<Monitor>,
    /// What other mirrors have.
    pub acks: Arc<Acks>,
    pub groups: Groups,
}

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens. Clients are let in once the source is known.
    pub fn start(listener: TcpListener, inventory: Arc<Inventory>, settings: Settings) -> Result<Self, wire::Error> {
        let io = |source: io::Error| wire::Error::Io { during: "listening", source };
        let address = listener.local_addr().map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        let tls = settings.tls.as_ref().map(server_tls).transpose()?;
        let shared = Arc::new(Shared {
            inventory,
            tls,
            rsa: Arc::default(),
            registry: Registry::new(settings.connections_max),
            own: Own {
                hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
                port: address.port(),
                started: std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .map_or(0, |since| since.as_secs()),
            },
            accounts: settings.accounts,
            monitor: settings.monitor,
            acks: settings.acks,
            groups: settings.groups,
            stop: AtomicBool::new(false),
        });
        if shared.accounts.needs_key() {
            let rsa = Arc::clone(&shared.rsa);
            thread::Builder::new().name("rsa key".to_owned()).spawn(move || make_key(&rsa)).map_err(io)?;
        }
        let accepting = Arc::clone(&shared);
        let acceptor = thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || accept(&listener, &accepting))
            .map_err(io)?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For who looks at its clients.
    pub fn clients(&self) -> Clients {
        Clients { address: self.address, shared: Arc::clone(&self.shared) }
    }
}

/// Who is connected to a server.
#[derive(Debug, Clone)]
pub struct Clients {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Clients {
    /// Where they have attached.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections of all kinds.
    pub fn count(&self) -> usize {
        self.shared.registry.count()
    }

    /// Those that are being sent the log.
    pub fn attached(&self) -> Vec<Attached> {
        self.shared.registry.attached()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.inventory.close();
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        self.shared.registry.close_all();
    }
}

fn make_key(rsa: &OnceLock<RsaKey>) {
    match RsaKey::generate() {
        Ok(key) => {
            let _ = rsa.set(key);
        }
        Err(error) => tracing::error!("accounts with a caching_sha2_password hash need TLS: {error}"),
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let Some(source) = shared.inventory.source() else {
            thread::sleep(STEP_WAIT);
            continue;
        };
        match listener.accept() {
            Ok((tcp, from)) => {
                if let Err(error) = receive(tcp, from, &source, shared) {
                    tracing::warn!("a connection from {from} could not be taken: {error}");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&STEP));
            }
            // No more file descriptors, or a connection that is gone again.
            Err(error) => {
                tracing::warn!("accepting a connection: {error}");
                thread::sleep(STEP_WAIT);
            }
        }
    }
}

fn receive(tcp: TcpStream, from: SocketAddr, source: &Arc<SourceFacts>, shared: &Arc<Shared>) -> io::Result<()> {
    tcp.set_nonblocking(false)?;
    let Some(number) = shared.registry.enter(from, Closer::new(&tcp)?) else {
        return refuse(tcp);
    };
    let options = options(source, shared);
    let session = Arc::clone(shared);
    let spawned = thread::Builder::new()
        .name(format!("client {number}"))
        .stack_size(STACK_BYTES)
        .spawn(move || session::run(tcp, number, &options, &session));
    if spawned.is_err() {
        shared.registry.leave(number);
    }
    spawned.map(|_| ())
}

/// As servers do: an error in place of the greeting.
fn refuse(mut tcp: TcpStream) -> io::Result<()> {
    tcp.set_write_timeout(Some(STEP_WAIT))?;
    let error = ServerError::new(1040, "08004", "Too many connections");
    wire::server::refuse(&mut tcp, &error)
}

fn options(source: &SourceFacts, shared: &Shared) -> PeerOptions {
    let plugin = if !source.is_mariadb() && source.at_least(8, 0, 0) { Plugin::CachingSha2 } else { Plugin::Native };
    let identity = Identity { version: source.greeting.clone(), charset: source.charset, plugin };
    PeerOptions { tls: shared.tls.clone(), rsa: Arc::clone(&shared.rsa), ..PeerOptions::new(identity) }
}
