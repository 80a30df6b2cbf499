//! The server that replicas and tools connect to: its listener, one thread for each client, and how many there may be.
//!
//! A client costs its thread and a bounded buffer. One that sends nonsense, sends nothing or reads nothing costs the others nothing.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::server::{Closer, Identity, PeerOptions, Plugin, RsaKey, ServerError};

mod certificate;
mod listener;
mod own_certificate;

pub use certificate::Certificate;
use certificate::ReplicaTls;
pub use listener::Listener;
use listener::Turn;
pub use own_certificate::OwnCertificate;

use crate::accounts::Book;
use crate::inventory::{Inventory, SourceFacts};
use crate::mirror::Monitor;
use crate::queries::ServerValues;
use crate::retag::stream::TagMonitor;
use crate::semisync::Acks;
use crate::sessions::{self, AttachedReplica, Groups, Registry, SessionContext};

/// How often the listener checks whether it has to end.
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const STEP_WAIT: Duration = Duration::from_millis(100);
const LISTEN_AGAIN: Duration = Duration::from_secs(5);
const STACK_BYTES: usize = 512 << 10;

/// The settings of a server.
#[derive(Debug)]
pub struct Settings {
    pub accounts: Book,
    pub certificate: Certificate,
    /// Set when the certificate is to be read again.
    pub reload: Arc<AtomicBool>,
    /// Connections at the same time.
    pub connections_max: usize,
    /// The mirror's state.
    pub monitor: Arc<Monitor>,
    /// With `--retag`: the source's tables.
    pub tags: Option<Arc<TagMonitor>>,
    /// The quorum of other mirrors.
    pub acks: Arc<Acks>,
    pub groups: Groups,
}

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<SessionContext>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens. Clients are let in once the source is known.
    pub fn start(listener: Listener, inventory: Arc<Inventory>, settings: Settings) -> Result<Self, wire::Error> {
        let io = |source: io::Error| wire::Error::Io { during: "listening", source };
        let address = listener.address();
        let tls = ReplicaTls::new(settings.certificate, settings.reload)?;
        let shared = Arc::new(SessionContext {
            inventory,
            registry: Registry::new(settings.connections_max),
            own: ServerValues {
                hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
                port: address.port(),
                groups: settings.groups.limits.is_some(),
                started: std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .map_or(0, |since| since.as_secs()),
            },
            accounts: settings.accounts,
            monitor: settings.monitor,
            tags: settings.tags,
            acks: settings.acks,
            groups: settings.groups,
            stop: AtomicBool::new(false),
        });
        let encryption = Encryption { tls, rsa: Arc::default() };
        if shared.accounts.needs_key() {
            let rsa = Arc::clone(&encryption.rsa);
            thread::Builder::new().name("rsa key".to_owned()).spawn(move || make_key(&rsa)).map_err(io)?;
        }
        let accepting = Arc::clone(&shared);
        let acceptor = thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || accept(listener, encryption, &accepting))
            .map_err(io)?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle to read the list of clients.
    pub fn clients(&self) -> Clients {
        Clients { address: self.address, shared: Arc::clone(&self.shared) }
    }
}

/// What logins are encrypted with.
struct Encryption {
    tls: ReplicaTls,
    rsa: Arc<OnceLock<RsaKey>>,
}

/// The clients of a server.
#[derive(Debug, Clone)]
pub struct Clients {
    address: SocketAddr,
    shared: Arc<SessionContext>,
}

impl Clients {
    /// The address that they are connected to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections of all kinds.
    pub fn count(&self) -> usize {
        self.shared.registry.count()
    }

    /// The replicas that are being sent the log.
    pub fn attached(&self) -> Vec<AttachedReplica> {
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

fn accept(mut listener: Listener, mut encryption: Encryption, shared: &Arc<SessionContext>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let Some(source) = shared.inventory.source() else {
            thread::sleep(STEP_WAIT);
            continue;
        };
        encryption.tls.renew();
        match listener.turn() {
            Ok(Turn::Open) => {}
            Ok(turn) => {
                if turn == Turn::Closing {
                    shared.registry.close_all();
                }
                thread::sleep(STEP_WAIT);
                continue;
            }
            Err(error) => {
                tracing::error!("listening at {}: {error}; trying again", listener.address());
                thread::sleep(LISTEN_AGAIN);
                continue;
            }
        }
        match listener.accept() {
            Ok((tcp, from)) => {
                if let Err(error) = receive(tcp, from, options(&source, &encryption), shared) {
                    tracing::warn!("a connection from {from} could not be accepted: {error}");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Some(listening) = listener.listening() {
                    let _ = poll(&mut [PollFd::new(listening, PollFlags::IN)], Some(&STEP));
                }
            }
            // No more file descriptors, or a connection that is gone again.
            Err(error) => {
                tracing::warn!("accepting a connection: {error}");
                thread::sleep(STEP_WAIT);
            }
        }
    }
}

fn receive(tcp: TcpStream, from: SocketAddr, options: PeerOptions, shared: &Arc<SessionContext>) -> io::Result<()> {
    tcp.set_nonblocking(false)?;
    let Some(number) = shared.registry.enter(from, Closer::new(&tcp)?) else {
        return refuse(tcp);
    };
    let session = Arc::clone(shared);
    let spawned = thread::Builder::new()
        .name(format!("client {number}"))
        .stack_size(STACK_BYTES)
        .spawn(move || sessions::run(tcp, number, &options, &session));
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

fn options(source: &SourceFacts, encryption: &Encryption) -> PeerOptions {
    let plugin = if !source.is_mariadb() && source.at_least(8, 0, 0) { Plugin::CachingSha2 } else { Plugin::Native };
    let identity = Identity { version: source.greeting.clone(), charset: source.charset, plugin };
    PeerOptions { tls: encryption.tls.current(), rsa: Arc::clone(&encryption.rsa), ..PeerOptions::new(identity) }
}
