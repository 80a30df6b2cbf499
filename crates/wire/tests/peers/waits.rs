//! Whatever a connection waits for, the wish to end ends it; and a server that works for long is not taken for a machine that is gone.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{CLIENT_SSL, OK, greeting, let_in, packet, plays, send};
use socket2::{Domain, Socket, Type};
use wire::{ConnectOptions, Connection, Error, Interrupt};

/// Until it is interrupted, shortly after it began.
fn interrupted(name: &'static str, mut options: ConnectOptions, wait: impl FnOnce(&ConnectOptions) -> Error) {
    let flag = Arc::new(AtomicBool::new(false));
    options.limits.interrupt = Interrupt::new(Arc::clone(&flag));
    options.limits.connect_timeout = Duration::from_secs(600);
    thread::scope(|scope| {
        let setter = scope.spawn(move || {
            thread::sleep(Duration::from_millis(500));
            flag.store(true, Ordering::Relaxed);
            Instant::now()
        });
        let error = wait(&options);
        let took = setter.join().unwrap().elapsed();
        assert!(matches!(error, Error::Interrupted { .. }), "{name}: {error:?}");
        // What it waited for would have taken ten minutes.
        assert!(took < Duration::from_secs(60), "{name}: {took:?}");
    });
}

fn connecting(options: &ConnectOptions) -> Error {
    Connection::connect(options).expect_err("a connection to nobody")
}

/// For as long as the other side is there.
fn silence(mut stream: TcpStream) {
    while stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
}

/// A port whose queue is full: who knocks is not answered.
fn full_queue() -> (Socket, Vec<Socket>, SocketAddr) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let knocking = (0..4)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&address);
            socket
        })
        .collect();
    thread::sleep(Duration::from_millis(100));
    (listener, knocking, address.as_socket().unwrap())
}

#[test]
fn every_wait_ends_when_the_process_is_to_end() {
    thread::scope(|scope| {
        scope.spawn(|| {
            let (_listener, _knocking, address) = full_queue();
            let options = ConnectOptions { port: address.port(), ..ConnectOptions::default() };
            interrupted("nobody answers", options, connecting);
        });
        scope.spawn(|| {
            let path = std::env::temp_dir().join(format!("wire-full-queue-{}.sock", std::process::id()));
            let _listener = UnixListener::bind(&path).unwrap();
            let mut knocking = Vec::new();
            loop {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
                socket.set_nonblocking(true).unwrap();
                if socket.connect(&socket2::SockAddr::unix(&path).unwrap()).is_err() {
                    break;
                }
                knocking.push(UnixStream::from(socket));
            }
            let options = ConnectOptions { socket: Some(path.clone()), ..ConnectOptions::default() };
            interrupted("a full unix socket", options, connecting);
            std::fs::remove_file(path).unwrap();
        });
        scope.spawn(|| {
            let (options, peer) = plays(silence);
            interrupted("no greeting", options, connecting);
            peer.join().unwrap();
        });
        scope.spawn(|| {
            let (options, peer) = plays(|mut stream| {
                send(&mut stream, 0, &greeting("9.7.0", CLIENT_SSL));
                silence(stream);
            });
            interrupted("TLS", options, connecting);
            peer.join().unwrap();
        });
        scope.spawn(|| {
            let (options, peer) = plays(|mut stream| {
                let_in(&mut stream);
                silence(stream);
            });
            interrupted("a statement", options, |options| {
                Connection::connect(options).unwrap().query("SELECT SLEEP(600)").unwrap_err()
            });
            peer.join().unwrap();
        });
        scope.spawn(|| {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let (options, peer) = plays(move |mut stream| {
                let_in(&mut stream);
                let _ = ended.recv();
            });
            interrupted("a server that reads nothing", options, |options| {
                Connection::connect(options).unwrap().query(vec![b' '; 64 << 20]).unwrap_err()
            });
            drop(end);
            peer.join().unwrap();
        });
    });
}

/// Linux counts a peer without room as one that is gone.
#[test]
fn what_waits_behind_a_long_statement_is_not_lost() {
    let long = Duration::from_secs(4);
    let (mut options, peer) = plays(move |mut stream| {
        let_in(&mut stream);
        packet(&mut stream);
        thread::sleep(long);
        send(&mut stream, 1, OK);
        for _ in 0..20 {
            packet(&mut stream);
            send(&mut stream, 1, OK);
        }
    });
    options.limits.dead_peer_timeout = Some(Duration::from_secs(1));
    let mut connection = Connection::connect(&options).unwrap();
    connection.send_query(b"UPDATE t SET a = 1").unwrap();
    let behind = vec![b' '; 400_000];
    let began = Instant::now();
    for _ in 0..20 {
        connection.send_query(&behind).unwrap();
    }
    for _ in 0..21 {
        connection.read_result().unwrap();
    }
    assert!(began.elapsed() >= long);
    drop(connection);
    peer.join().unwrap();
}

/// Behind what is not answered there may be a little, after the answer there may be much.
#[test]
fn how_much_may_be_sent_ahead() {
    let (options, peer) = plays(|mut stream| {
        let_in(&mut stream);
        for _ in 0..3 {
            packet(&mut stream);
            send(&mut stream, 1, OK);
        }
    });
    let mut connection = Connection::connect(&options).unwrap();
    assert!(connection.takes_ahead(1 << 30));
    connection.send_query(&vec![b' '; 100_000]).unwrap();
    assert!(connection.takes_ahead(20_000) && !connection.takes_ahead(100_000));
    connection.send_query(&vec![b' '; 20_000]).unwrap();
    connection.send_query(&[b' '; 10_000]).unwrap();
    assert!(!connection.takes_ahead(20_000));
    connection.read_result().unwrap();
    assert!(connection.takes_ahead(20_000));
    connection.read_result().unwrap();
    connection.read_result().unwrap();
    assert!(connection.takes_ahead(1 << 30));
    drop(connection);
    peer.join().unwrap();
}

#[test]
fn a_name_with_an_address_where_nobody_answers_leaves_time_for_the_others() {
    // "localhost" is ::1 and 127.0.0.1 on most machines; where it is one of them only, this says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let peer = thread::spawn(move || let_in(&mut listener.accept().unwrap().0));
    let options = ConnectOptions { host: "localhost".to_owned(), port, ..ConnectOptions::default() };
    Connection::connect(&options).unwrap();
    peer.join().unwrap();
}
