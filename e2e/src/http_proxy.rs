//! A proxy in front of an HTTP server, such as an object store, that fails in the ways in which a store fails: an error instead of an answer, a reset, an answer that is lost
//! after the request was done, an answer that is late, a store that is gone or full. Which ones comes from a seed. It counts the bytes of what is put. One request a connection.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// What the store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// All is let through.
    Well = 0,
    /// Some requests fail, each in one of the ways.
    Faults = 1,
    /// Connections are closed at once.
    Gone = 2,
    /// What is put is answered with 507.
    Full = 3,
    /// Nothing is answered.
    Hangs = 4,
}

const MOODS: [Mood; 5] = [Mood::Well, Mood::Faults, Mood::Gone, Mood::Full, Mood::Hangs];
const HEAD_BYTES_MAX: usize = 64 << 10;
/// One request of so many has a fault.
const ONE_IN: u32 = 4;

#[derive(Debug)]
pub struct HttpProxy {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    server: u16,
    mood: AtomicU8,
    random: Mutex<StdRng>,
    put: AtomicU64,
    requests: AtomicU64,
    faults: AtomicU64,
    stop: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Error,
    Reset,
    LostAnswer,
    CutAnswer,
    Slow,
}

const FAULTS: [Fault; 5] = [Fault::Error, Fault::Reset, Fault::LostAnswer, Fault::CutAnswer, Fault::Slow];

impl HttpProxy {
    /// Listens on a port of its own.
    pub fn start(server: u16, seed: u64) -> Result<HttpProxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("a port for the proxy")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State {
            server,
            mood: AtomicU8::new(Mood::Well as u8),
            random: Mutex::new(StdRng::seed_from_u64(seed)),
            put: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || drop(shared.serve(client)));
            }
        });
        Ok(HttpProxy { port, state })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn set(&self, mood: Mood) {
        self.state.mood.store(mood as u8, Ordering::Relaxed);
    }

    /// Bytes in bodies of PUT requests that came.
    pub fn put(&self) -> u64 {
        self.state.put.load(Ordering::Relaxed)
    }

    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }

    pub fn faults(&self) -> u64 {
        self.state.faults.load(Ordering::Relaxed)
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn mood(&self) -> Mood {
        MOODS.get(usize::from(self.mood.load(Ordering::Relaxed))).copied().unwrap_or(Mood::Well)
    }

    fn fault(&self) -> Option<Fault> {
        if self.mood() != Mood::Faults {
            return None;
        }
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = FAULTS.get(random.random_range(0..FAULTS.len())).copied();
        fault.filter(|_| random.random_range(0..ONE_IN) == 0)
    }

    fn serve(&self, mut client: TcpStream) -> Result<()> {
        if self.mood() == Mood::Gone {
            return Ok(());
        }
        let request = read_request(&mut client)?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let is_put = request.head.starts_with(b"PUT ");
        if is_put {
            self.put.fetch_add(request.body.len() as u64, Ordering::Relaxed);
        }
        match self.mood() {
            Mood::Gone => return Ok(()),
            Mood::Hangs => {
                while self.mood() == Mood::Hangs && !self.stop.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(50));
                }
                return Ok(());
            }
            Mood::Full if is_put => return answer(&mut client, "507 Insufficient Storage"),
            _ => {}
        }
        let fault = self.fault();
        self.faults.fetch_add(u64::from(fault.is_some()), Ordering::Relaxed);
        match fault {
            Some(Fault::Error) => return answer(&mut client, "503 Service Unavailable"),
            Some(Fault::Reset) => return Ok(()),
            Some(Fault::Slow) => thread::sleep(Duration::from_millis(400)),
            Some(Fault::LostAnswer | Fault::CutAnswer) | None => {}
        }
        let mut server = TcpStream::connect(("127.0.0.1", self.server))?;
        server.write_all(&one_request(&request.head))?;
        server.write_all(&request.body)?;
        let mut answered = Vec::new();
        server.read_to_end(&mut answered)?;
        match fault {
            Some(Fault::LostAnswer) => {}
            Some(Fault::CutAnswer) => client.write_all(answered.get(..answered.len() / 2).unwrap_or_default())?,
            _ => client.write_all(&answered)?,
        }
        let _ = client.shutdown(Shutdown::Both);
        Ok(())
    }
}

struct Request {
    /// With the empty line.
    head: Vec<u8>,
    body: Vec<u8>,
}

fn read_request(client: &mut TcpStream) -> Result<Request> {
    let mut head = Vec::new();
    let mut body = Vec::new();
    let mut chunk = [0; 16 << 10];
    let end = loop {
        if let Some(at) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let count = client.read(&mut chunk)?;
        anyhow::ensure!(count > 0 && head.len() < HEAD_BYTES_MAX, "no request");
        head.extend(chunk.iter().take(count));
    };
    body.extend(head.drain(end..));
    let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length =
        text.lines().find_map(|line| line.strip_prefix("content-length:")).map_or(Ok(0), |text| text.trim().parse())?;
    while body.len() < length {
        let count = client.read(&mut chunk)?;
        anyhow::ensure!(count > 0, "half a request");
        body.extend(chunk.iter().take(count));
    }
    Ok(Request { head, body })
}

/// The same, after which the server closes.
fn one_request(head: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let lines = text.trim_end().lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let mut one: String = lines.map(|line| format!("{line}\r\n")).collect();
    one += "Connection: close\r\n\r\n";
    one.into_bytes()
}

fn answer(client: &mut TcpStream, status: &str) -> Result<()> {
    client.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes())?;
    Ok(())
}
