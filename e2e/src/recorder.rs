//! A proxy that writes down what a replica says to its source, and what the source answers, from the login to the first event. It changes nothing.
//!
//! Without TLS and without compression: what goes through can be read.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, ensure};

const COM_QUERY: u8 = 0x03;
const COM_BINLOG_DUMP: u8 = 0x12;
const COM_REGISTER: u8 = 0x15;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Client,
    Server,
}

/// What went through one connection, in its order.
type Heard = Vec<(From, Vec<u8>)>;

/// See the module.
#[derive(Debug)]
pub struct Recorder {
    pub port: u16,
    /// Of each connection all that went through, in its order.
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Recorder {
    pub fn start(server_port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("a port for the recorder")?;
        let port = listener.local_addr()?.port();
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let shared = Arc::clone(&heard);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", server_port))) else {
                    continue;
                };
                let number = {
                    let mut all = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push(Vec::new());
                    all.len() - 1
                };
                for (from, one, other) in [(From::Client, &client, &server), (From::Server, &server, &client)] {
                    let (Ok(one), Ok(other)) = (one.try_clone(), other.try_clone()) else { continue };
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || pass(one, other, from, number, &shared));
                }
            }
        });
        Ok(Self { port, heard })
    }

    /// The last connection that asked for the log, as text: a line a statement, an answer, a command.
    pub fn handshake(&self) -> Result<String> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut dumps = heard.iter().rev().filter_map(|connection| told(connection).transpose());
        dumps.next().context("no replica has asked for the log through the recorder")?
    }
}

fn pass(mut one: TcpStream, mut other: TcpStream, from: From, number: usize, heard: &Mutex<Vec<Heard>>) {
    let mut chunk = vec![0; 64 << 10];
    while let Ok(length @ 1..) = one.read(&mut chunk) {
        let bytes = chunk.get(..length).unwrap_or_default();
        if let Some(connection) = heard.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number)
            && connection.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() < 1 << 20
        {
            connection.push((from, bytes.to_vec()));
        }
        if other.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = one.shutdown(Shutdown::Both);
    let _ = other.shutdown(Shutdown::Both);
}

/// Packets of both sides in their order; one that comes in pieces stands where its end came.
fn packets(connection: &[(From, Vec<u8>)]) -> Vec<(From, u8, Vec<u8>)> {
    let mut out = Vec::new();
    let (mut of_client, mut of_server) = (Vec::new(), Vec::new());
    for (from, bytes) in connection {
        let buffer: &mut Vec<u8> = if *from == From::Server { &mut of_server } else { &mut of_client };
        buffer.extend_from_slice(bytes);
        while let [a, b, c, sequence, rest @ ..] = buffer.as_slice() {
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            let Some(payload) = rest.get(..length) else { break };
            out.push((*from, *sequence, payload.to_vec()));
            buffer.drain(..4 + length);
        }
    }
    out
}

/// None: this connection asked for no log.
fn told(connection: &[(From, Vec<u8>)]) -> Result<Option<String>> {
    let packets = packets(connection);
    let is_command = |(from, sequence, payload): &&(From, u8, Vec<u8>), codes: &[u8]| {
        *from == From::Client && *sequence == 0 && payload.first().is_some_and(|code| codes.contains(code))
    };
    if !packets.iter().any(|packet| is_command(&packet, &[COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID])) {
        return Ok(None);
    }
    let mut out = String::new();
    let greeting = packets.first().context("a greeting")?;
    let version: Vec<u8> = greeting.2.iter().skip(1).take_while(|byte| **byte != 0).copied().collect();
    writeln!(out, "greeting {}", String::from_utf8_lossy(&version))?;
    let begin =
        packets.iter().position(|packet| is_command(&packet, &[COM_QUERY, COM_REGISTER])).context("a command")?;
    let mut rest = packets.get(begin..).unwrap_or_default().iter().peekable();
    while let Some((from, _, payload)) = rest.next() {
        ensure!(*from == From::Client, "an answer to nothing: {payload:?}");
        let mut answers: Vec<&[u8]> = Vec::new();
        while let Some((From::Server, _, answer)) = rest.peek() {
            answers.push(answer);
            rest.next();
        }
        match payload.split_first() {
            Some((&COM_QUERY, sql)) => {
                // In front: no attributes, in one set.
                let sql = sql.strip_prefix(&[0, 1]).unwrap_or(sql);
                writeln!(out, "ask {}\n{}", String::from_utf8_lossy(sql), answer(&answers)?)?;
            }
            Some((&COM_REGISTER, _)) => writeln!(out, "register {}", hex::encode(payload))?,
            Some((&(COM_BINLOG_DUMP | COM_BINLOG_DUMP_GTID), _)) => {
                writeln!(out, "dump {}", hex::encode(payload))?;
                return Ok(Some(out));
            }
            Some((code, _)) => writeln!(out, "other {code}")?,
            None => {}
        }
    }
    Ok(None)
}

/// `ok`, `error NUMBER`, or `columns …` and a `row …` each, with tabs in between.
fn answer(packets: &[&[u8]]) -> Result<String> {
    let first = packets.first().context("no answer")?;
    Ok(match first.first() {
        Some(0) => "ok".to_owned(),
        Some(0xff) => {
            let code = first.get(1..3).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes);
            format!("error {code}")
        }
        _ => {
            let count = usize::from(first.first().copied().unwrap_or(0));
            let names: Vec<String> =
                packets.iter().skip(1).take(count).map(|column| texts(column, 5).pop().unwrap_or_default()).collect();
            let mut out = format!("columns {}", names.join("\t"));
            let rows =
                packets.iter().skip(1 + count).filter(|packet| !(packet.first() == Some(&0xfe) && packet.len() < 9));
            for row in rows {
                write!(out, "\nrow {}", texts(row, count).join("\t"))?;
            }
            out
        }
    })
}

/// So many texts with their lengths in front. All that is read here is shorter than 64 KiB.
fn texts(packet: &[u8], count: usize) -> Vec<String> {
    let mut at = 0;
    let mut out = Vec::new();
    for _ in 0..count {
        let (length, taken) = match packet.get(at) {
            Some(0xfb) => {
                out.push("NULL".to_owned());
                at += 1;
                continue;
            }
            Some(0xfc) => {
                let bytes = packet.get(at + 1..at + 3).and_then(|bytes| bytes.try_into().ok());
                (usize::from(bytes.map_or(0, u16::from_le_bytes)), 3)
            }
            Some(length) => (usize::from(*length), 1),
            None => break,
        };
        let text = packet.get(at + taken..at + taken + length).unwrap_or_default();
        out.push(String::from_utf8_lossy(text).into_owned());
        at += taken + length;
    }
    out
}
