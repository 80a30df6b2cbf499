//! A TCP proxy in front of a server that loses connections at chosen moments: before a COMMIT, between a COMMIT and its answer,
//! or in the middle of anything. Which ones comes from a seed. Never alters a byte that it lets through.

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The COMMIT reaches the server, its answer does not reach the client.
    AnswerOfCommit,
    /// Rows reach the server, and with them perhaps commits; some of the answers do not reach the client.
    AnswerOfRows,
    /// The COMMIT does not reach the server.
    Commit,
    /// Any part of what either side sends, and all after it.
    Anything,
    /// Nothing is cut: once [frozen](Proxy::freeze), no more than the first few hundred bytes of the server reach a client, and it is not told.
    Frozen,
}

#[derive(Debug)]
pub struct Proxy {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    fault: Fault,
    /// One of so many is hit.
    one_in: u32,
    random: Mutex<StdRng>,
    cuts: AtomicU64,
    stop: AtomicBool,
    frozen: AtomicBool,
    /// Nothing arrives at either end, and nobody is told.
    is_cut: AtomicBool,
    /// Both ends of each connection.
    connections: Mutex<Vec<(TcpStream, TcpStream)>>,
}

impl State {
    fn hit(&self) -> bool {
        let mut random = self.random.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        random.random_range(0..self.one_in) == 0
    }

    /// Less than all of them.
    fn part<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let mut random = self.random.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let length = random.random_range(0..bytes.len().max(1));
        bytes.get(..length).unwrap_or(bytes)
    }
}

/// The longest piece that is forwarded at once.
const CHUNK_BYTES: usize = 16 << 10;

/// More than a login takes, less than the questions after it.
const LOGIN_BYTES: usize = 400;

/// As heddle ends a packet with: READ COMMITTED is something else.
const COMMIT: &[u8] = b";COMMIT";
const ROWS: &[u8] = b"BINLOG '";

impl Proxy {
    /// Listens on a port of its own in front of `server_port`; about one in `one_in` chances is hit.
    pub fn start(server_port: u16, fault: Fault, one_in: u32, seed: u64) -> Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("a port for the proxy")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State {
            fault,
            one_in,
            random: Mutex::new(StdRng::seed_from_u64(seed)),
            cuts: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            frozen: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", server_port))) else {
                    continue;
                };
                let _ = serve(client, server, &shared);
            }
        });
        Ok(Proxy { port, state })
    }

    /// From here on nothing is lost any more.
    pub fn heal(&self) {
        self.state.stop.store(true, Ordering::Relaxed);
    }

    /// From here on clients get so far that they are logged in, and then no answer.
    pub fn freeze(&self) {
        self.state.frozen.store(true, Ordering::Relaxed);
    }

    /// From here on nothing arrives at either end, as if the cable were out: both ends keep their connections.
    pub fn pull_cable(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
    }

    /// The cable is in again. Connections of before have missed bytes: they end.
    pub fn plug_cable(&self) {
        self.state.is_cut.store(false, Ordering::SeqCst);
        let mut connections = self.state.connections.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (client, server) in connections.drain(..) {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    /// Connections that were cut so far.
    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::Relaxed)
    }
}

fn serve(client: TcpStream, server: TcpStream, state: &Arc<State>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let both = (client.try_clone()?, server.try_clone()?);
    state.connections.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(both);
    let lose_answer = Arc::new(AtomicBool::new(false));
    let (to_server, from_server) = (server.try_clone()?, server);
    let (to_client, from_client) = (client.try_clone()?, client);
    let (one, other) = (Arc::clone(state), Arc::clone(state));
    let (asked, told) = (Arc::clone(&lose_answer), lose_answer);
    thread::spawn(move || requests(from_client, to_server, &one, &asked));
    thread::spawn(move || answers(from_server, to_client, &other, &told));
    Ok(())
}

fn cut(one: &TcpStream, other: &TcpStream, state: &State) {
    state.cuts.fetch_add(1, Ordering::Relaxed);
    let _ = one.shutdown(Shutdown::Both);
    let _ = other.shutdown(Shutdown::Both);
}

fn requests(mut client: TcpStream, mut server: TcpStream, state: &State, lose_answer: &AtomicBool) {
    let mut chunk = vec![0; CHUNK_BYTES];
    // A word may come in two pieces.
    let mut tail: Vec<u8> = Vec::new();
    let sought = if state.fault == Fault::AnswerOfRows { ROWS } else { COMMIT };
    while let Ok(length @ 1..) = client.read(&mut chunk) {
        let Some(bytes) = chunk.get(..length) else { break };
        if state.is_cut.load(Ordering::SeqCst) {
            continue;
        }
        if !state.stop.load(Ordering::Relaxed) {
            tail.extend_from_slice(bytes);
            let found = tail.windows(sought.len()).any(|word| word == sought);
            tail.drain(..tail.len().saturating_sub(sought.len() - 1));
            match state.fault {
                Fault::AnswerOfCommit | Fault::AnswerOfRows if found && state.hit() => {
                    lose_answer.store(true, Ordering::SeqCst);
                }
                Fault::Commit if found && state.hit() => return cut(&client, &server, state),
                Fault::Anything if state.hit() => {
                    let _ = server.write_all(state.part(bytes));
                    return cut(&client, &server, state);
                }
                _ => {}
            }
        }
        if server.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

fn answers(mut server: TcpStream, mut client: TcpStream, state: &State, lose_answer: &AtomicBool) {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut answered = 0;
    while let Ok(length @ 1..) = server.read(&mut chunk) {
        let Some(bytes) = chunk.get(..length) else { break };
        if state.is_cut.load(Ordering::SeqCst) {
            continue;
        }
        answered += length;
        if answered > LOGIN_BYTES && state.frozen.load(Ordering::Relaxed) {
            continue;
        }
        if lose_answer.swap(false, Ordering::SeqCst) {
            return cut(&client, &server, state);
        }
        if state.fault == Fault::Anything && !state.stop.load(Ordering::Relaxed) && state.hit() {
            let _ = client.write_all(state.part(bytes));
            return cut(&client, &server, state);
        }
        if client.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.heal();
        // Wakes the thread that listens.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}
