//! The other side of a connection, played: packets, a greeting, and what else a test says.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use wire::{ConnectOptions, SslMode};

pub const CLIENT_SSL: u32 = 0x800;
const CLIENT_DEPRECATE_EOF: u32 = 1 << 24;
/// PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH and the rest of what every server has.
const CAPABILITIES: u32 = 0x0008_a285 | CLIENT_DEPRECATE_EOF;
pub const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

pub fn packet(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 4];
    stream.read_exact(&mut head).unwrap();
    let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut payload).unwrap();
    (head[3], payload)
}

pub fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes();
    bytes[3] = sequence;
    [&bytes[..], payload].concat()
}

pub fn send(stream: &mut TcpStream, sequence: u8, payload: &[u8]) {
    stream.write_all(&framed(sequence, payload)).unwrap();
}

pub fn greeting(version: &str, more_capabilities: u32) -> Vec<u8> {
    let capabilities = CAPABILITIES | more_capabilities;
    let mut out = vec![10];
    out.extend(version.as_bytes());
    out.extend([0, 1, 0, 0, 0]);
    out.extend([b'n'; 8]);
    out.push(0);
    out.extend((capabilities as u16).to_le_bytes());
    out.extend([45, 2, 0]);
    out.extend(((capabilities >> 16) as u16).to_le_bytes());
    out.push(21);
    out.extend([0; 10]);
    out.extend([b'n'; 12]);
    out.extend(b"\0mysql_native_password\0");
    out
}

/// Greets and lets in whoever comes.
pub fn let_in(stream: &mut TcpStream) {
    send(stream, 0, &greeting("9.7.0", 0));
    let (sequence, _) = packet(stream);
    send(stream, sequence + 1, OK);
}

/// What connects to a peer that plays `play` with its first guest.
pub fn plays<T: Send + 'static>(
    play: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (ConnectOptions, thread::JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = ConnectOptions { password: Some("hunter2".into()), ..ConnectOptions::default() };
    options.port = listener.local_addr().unwrap().port();
    options.tls.mode = SslMode::Preferred;
    (options, thread::spawn(move || play(listener.accept().unwrap().0)))
}
