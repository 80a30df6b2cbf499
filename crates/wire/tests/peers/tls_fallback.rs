//! When a server is connected to in clear after all: only when it says itself that there is no common TLS. A server that is played says it in every way.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use crate::peer::{CLIENT_SSL, OK, greeting, packet, send};
use wire::{ConnectOptions, Connection, Error, SslMode, TlsOptions};

/// What follows the client's hello.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Close,
    /// A TLS alert with this description.
    Alert(u8),
    /// An error packet in clear.
    BadHandshake,
}

const HANDSHAKE_FAILURE: u8 = 40;
const INTERNAL_ERROR: u8 = 80;

/// Says for each connection whether it asked for TLS.
fn serve(listener: &TcpListener, version: &'static str, answer: Answer) -> Vec<bool> {
    let mut seen = Vec::new();
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        send(&mut stream, 0, &greeting(version, CLIENT_SSL));
        let mut next = [0; 1];
        // A connection that says nothing ends the play.
        if stream.peek(&mut next).unwrap_or(0) == 0 {
            return seen;
        }
        let (sequence, payload) = packet(&mut stream);
        let asks = u32::from_le_bytes(payload[..4].try_into().unwrap()) & CLIENT_SSL != 0;
        seen.push(asks);
        if !asks {
            send(&mut stream, sequence + 1, OK);
            continue;
        }
        let mut hello = [0; 4096];
        assert!(stream.read(&mut hello).unwrap() > 0);
        match answer {
            Answer::Close => {}
            Answer::Alert(description) => stream.write_all(&[21, 3, 3, 0, 2, 2, description]).unwrap(),
            Answer::BadHandshake => send(&mut stream, 2, b"\xff\x13\x04#08S01Bad handshake"),
        }
        let _ = stream.shutdown(Shutdown::Write);
    }
}

fn connect(version: &'static str, answer: Answer, had_tls: bool) -> (Result<Connection, Error>, Vec<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || serve(&listener, version, answer));
    let options = ConnectOptions {
        port: address.port(),
        tls: TlsOptions {
            mode: SslMode::Preferred,
            had_tls: Arc::new(AtomicBool::new(had_tls)),
            ..TlsOptions::default()
        },
        ..ConnectOptions::default()
    };
    let connected = Connection::connect(&options);
    drop(TcpStream::connect(address).unwrap());
    (connected, server.join().unwrap())
}

#[test]
fn only_a_server_that_says_so_is_connected_to_in_clear() {
    for (version, answer) in [
        ("8.0.15", Answer::Alert(HANDSHAKE_FAILURE)),
        ("5.7.22-log", Answer::BadHandshake),
        ("5.5.5-10.1.48-MariaDB", Answer::BadHandshake),
    ] {
        let (connected, seen) = connect(version, answer, false);
        let connection = connected.unwrap_or_else(|error| panic!("{version} {answer:?}: {error}"));
        assert!(!connection.server().tls);
        assert_eq!(seen, [true, false], "{version} {answer:?}");
    }
}

#[test]
fn a_handshake_that_is_cut_is_a_lost_connection() {
    for (version, answer) in [
        ("5.6.14", Answer::Close),
        ("5.7.22-log", Answer::Close),
        ("9.7.0", Answer::Close),
        ("5.5.5-10.1.48-MariaDB", Answer::Close),
        // What such a server answers where its half of the connection still stands.
        ("9.7.0", Answer::BadHandshake),
    ] {
        let (connected, seen) = connect(version, answer, false);
        let error = connected.expect_err(version);
        assert!(matches!(error, Error::Lost { .. }) && error.is_transient_network(), "{version}: {error}");
        assert_eq!(seen, [true], "{version}");
    }
}

#[test]
fn an_alert_about_something_else_is_an_error() {
    let (connected, seen) = connect("5.7.22-log", Answer::Alert(INTERNAL_ERROR), false);
    let error = connected.expect_err("an alert about something else");
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    assert_eq!(seen, [true]);
}

#[test]
fn where_there_was_tls_nothing_goes_in_clear() {
    for (version, answer) in [("8.0.15", Answer::Alert(HANDSHAKE_FAILURE)), ("5.7.22-log", Answer::BadHandshake)] {
        let (connected, seen) = connect(version, answer, true);
        let error = connected.expect_err(version);
        assert!(error.to_string().contains("There was TLS with"), "{version} {answer:?}: {error}");
        assert_eq!(seen, [true], "{version} {answer:?}");
    }
}
