//! A peer that means harm, or is broken: nothing that it says holds a connection for ever, takes memory without end, gets a password or a file, or
//! reaches a terminal.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{CLIENT_SSL, OK, framed, greeting, let_in, packet, plays, send};
use wire::{ConnectOptions, Connection, Error};

const PATIENCE: Duration = Duration::from_millis(600);
/// A machine that runs other tests is slow; for ever is longer.
const SOON: Duration = Duration::from_secs(6);

/// A byte now and then, until nobody takes it.
fn drip(stream: &mut TcpStream, bytes: &[u8]) {
    for byte in bytes.iter().chain(std::iter::repeat(&b'x')) {
        if stream.write_all(&[*byte]).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn fails_soon(options: &ConnectOptions) -> Error {
    let started = Instant::now();
    let error = Connection::connect(options).expect_err("a login that never comes to an end");
    assert!(started.elapsed() < SOON, "{error} after {:?}", started.elapsed());
    error
}

fn patient(mut options: ConnectOptions) -> ConnectOptions {
    options.limits.connect_timeout = PATIENCE;
    options
}

#[test]
fn the_login_has_a_deadline_as_a_whole() {
    type Play = fn(TcpStream);
    let plays_of: [(&str, Play); 5] = [
        ("says nothing", |mut stream| drop(stream.read(&mut [0]))),
        ("drips its greeting", |mut stream| drip(&mut stream, &framed(0, &[10; 4000]))),
        ("drips an answer", |mut stream| {
            send(&mut stream, 0, &greeting("9.7.0", 0));
            packet(&mut stream);
            drip(&mut stream, &framed(2, &[0xfe; 4000]));
        }),
        ("drips its part of TLS", |mut stream| {
            send(&mut stream, 0, &greeting("9.7.0", CLIENT_SSL));
            packet(&mut stream);
            drip(&mut stream, &[22, 3, 3, 0x3f, 0xff, 2, 0, 0x3f, 0xf0, 3, 3]);
        }),
        ("says nothing to TLS", |mut stream| {
            send(&mut stream, 0, &greeting("9.7.0", CLIENT_SSL));
            while stream.read(&mut [0; 1000]).is_ok_and(|read| read > 0) {}
        }),
    ];
    for (name, play) in plays_of {
        let (options, peer) = plays(play);
        let error = fails_soon(&patient(options));
        assert!(matches!(error, Error::Timeout { .. }), "{name}: {error:?}");
        peer.join().unwrap();
    }
}

#[test]
fn nothing_before_the_login_is_large() {
    // Sixteen megabytes are announced.
    let (options, peer) = plays(|mut stream| {
        stream.write_all(&[0xff, 0xff, 0xff, 0, 10]).unwrap();
        drop(stream.read(&mut [0]));
    });
    let error = fails_soon(&options);
    assert!(matches!(&error, Error::Protocol(text) if text.contains("more than 65536 bytes")), "{error}");
    peer.join().unwrap();
}

#[test]
fn a_login_has_an_end() {
    let (options, peer) = plays(|mut stream| {
        send(&mut stream, 0, &greeting("9.7.0", 0));
        for rounds in 0.. {
            let mut head = [0; 4];
            if stream.read_exact(&mut head).is_err() {
                return rounds;
            }
            stream.read_exact(&mut vec![0; head[0] as usize | (head[1] as usize) << 8]).unwrap();
            let _ = stream.write_all(&framed(head[3] + 1, b"\xfemysql_native_password\0nnnnnnnnnnnnnnnnnnnn\0"));
        }
        0
    });
    let error = fails_soon(&options);
    assert!(error.to_string().contains("does not come to an end"), "{error}");
    assert!(peer.join().unwrap() < 20);
}

/// What a peer hears that asks for the password in this way, over TCP without TLS.
fn asked_for_the_password(
    switch: &'static [u8],
    more: Option<&'static [u8]>,
    change: fn(&mut ConnectOptions),
) -> (Error, Vec<u8>) {
    let (mut options, peer) = plays(move |mut stream| {
        send(&mut stream, 0, &greeting("9.7.0", 0));
        packet(&mut stream);
        send(&mut stream, 2, switch);
        if let Some(more) = more {
            packet(&mut stream);
            send(&mut stream, 4, more);
        }
        let mut heard = Vec::new();
        let _ = stream.set_read_timeout(Some(Duration::from_secs(3)));
        let mut bytes = [0; 1000];
        if let Ok(read) = stream.read(&mut bytes) {
            heard.extend_from_slice(&bytes[..read]);
        }
        heard
    });
    change(&mut options);
    (Connection::connect(&options).expect_err("a login that never worked"), peer.join().unwrap())
}

#[test]
fn who_answers_in_the_servers_place_does_not_learn_the_password() {
    const SHA2: &[u8] = b"\xfecaching_sha2_password\0nnnnnnnnnnnnnnnnnnnn\0";
    const SHA256: &[u8] = b"\xfesha256_password\0nnnnnnnnnnnnnnnnnnnn\0";
    const CLEAR: &[u8] = b"\xfemysql_clear_password\0";
    const FULL: Option<&[u8]> = Some(&[1, 4]);
    let refused = |switch, more, change, want: &str| {
        let (error, heard) = asked_for_the_password(switch, more, change);
        assert!(heard.is_empty(), "{heard:?}");
        let text = format!("{error} {error:?}");
        assert!(
            matches!(error, Error::Auth { code: 0, .. }) && text.contains(want) && !text.contains("hunter2"),
            "{text}"
        );
    };
    refused(SHA2, FULL, |_| {}, "get-server-public-key");
    refused(SHA256, None, |_| {}, "get-server-public-key");
    refused(CLEAR, None, |_| {}, "verify-identity");
    refused(CLEAR, None, |options| options.password_options.cleartext_plugin = true, "verify-identity");
    refused(
        SHA2,
        FULL,
        |options| options.password_options.server_public_key = Some("/nowhere/k.pem".into()),
        "/nowhere/k.pem",
    );
    refused(b"\xfedialog\0Password: ", None, |_| {}, "does not have");
    // Who asks for it gets the key's request, as before.
    for (switch, more, want) in [(SHA2, FULL, [1, 0, 0, 5, 2]), (SHA256, None, [1, 0, 0, 3, 1])] {
        let (_, heard) =
            asked_for_the_password(switch, more, |options| options.password_options.get_server_public_key = true);
        assert_eq!(heard, want);
    }
}

#[test]
fn what_it_says_moves_no_cursor() {
    let (options, peer) =
        plays(|mut stream| send(&mut stream, 0, b"\xff\x6a\x04Host '\x1b[2J\x9b' is\nblocked\0\xe2\x80\xae"));
    let error = fails_soon(&options);
    assert_eq!(
        error.to_string(),
        "login refused: Host '\\x1b[2J\\x9b' is\\nblocked\\0\\u{202e} (error 1130). No account allows this host: create one with CREATE USER \
         'user'@'this host'."
    );
    peer.join().unwrap();
    let (options, peer) = plays(|mut stream| {
        send(&mut stream, 0, &greeting("9.7.0\x1b]0;owned\x07\r\n", 0));
        let (sequence, _) = packet(&mut stream);
        send(&mut stream, sequence + 1, OK);
    });
    let connection = Connection::connect(&options).unwrap();
    assert_eq!(connection.server().version_text, "9.7.0\\x1b]0;owned\\x07\\r\\n");
    peer.join().unwrap();
    let (options, peer) = plays(|mut stream| {
        send(&mut stream, 0, &greeting("9.7.0", 0));
        packet(&mut stream);
        send(&mut stream, 2, b"\xfe\x1b[31mplugin\0n");
        drop(stream.read(&mut [0]));
    });
    let shown = fails_soon(&options).to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    peer.join().unwrap();
}

/// The answer to a query with this limit.
fn asked(limit: usize, play: fn(TcpStream)) -> Error {
    let (mut options, peer) = plays(move |mut stream| {
        let_in(&mut stream);
        packet(&mut stream);
        play(stream);
    });
    options.limits.answer_bytes_max = limit;
    let mut connection = Connection::connect(&options).unwrap();
    let error = connection.query("SELECT 1").expect_err("an answer without an end");
    drop(connection);
    peer.join().unwrap();
    error
}

/// Until nobody takes it.
fn pour(mut stream: TcpStream, mut sequence: u8, payload: &[u8]) {
    while stream.write_all(&framed(sequence, payload)).is_ok() {
        sequence = sequence.wrapping_add(1);
    }
}

const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0";

#[test]
fn an_answer_has_an_end() {
    const MIB: usize = 1 << 20;
    let too_large = |error: Error| {
        assert!(matches!(error, Error::AnswerTooLarge { bytes_max: MIB, .. }), "{error}");
        assert!(error.is_connection_lost() && !error.is_transient_network());
    };
    // Rows, of nothing and of much; results; columns.
    too_large(asked(MIB, |mut stream| {
        send(&mut stream, 1, &[1]);
        send(&mut stream, 2, COLUMN);
        pour(stream, 3, &[0]);
    }));
    too_large(asked(MIB, |mut stream| {
        send(&mut stream, 1, &[1]);
        send(&mut stream, 2, COLUMN);
        pour(stream, 3, &[&[0xfc, 0, 4][..], &[b'x'; 1024]].concat());
    }));
    too_large(asked(MIB, |stream| pour(stream, 1, &[0, 0, 0, 8, 0, 0, 0])));
    too_large(asked(MIB, |mut stream| {
        send(&mut stream, 1, &[0xfd, 0, 0, 1]);
        pour(stream, 2, COLUMN);
    }));
    let broken =
        |error: Error, want: &str| assert!(matches!(&error, Error::Protocol(text) if text.contains(want)), "{error}");
    broken(
        asked(MIB, |mut stream| send(&mut stream, 1, &[0xfe, 0, 0, 0, 0, 0, 1, 0, 0])),
        "a result with 1099511627776 columns",
    );
    broken(asked(MIB, |mut stream| send(&mut stream, 7, OK)), "packet number 7");
    broken(asked(MIB, |mut stream| stream.write_all(&[0xff, 0xff, 0xff, 1]).unwrap()), "more than 1048576 bytes");
}

#[test]
fn rows_that_are_not_kept_may_be_many() {
    let (mut options, peer) = plays(|mut stream| {
        let_in(&mut stream);
        packet(&mut stream);
        let mut bytes = [framed(1, &[1]), framed(2, COLUMN)].concat();
        for row in 0..100_000_u32 {
            bytes.extend(framed((row + 3) as u8, &[1, b'7']));
        }
        bytes.extend(framed((100_003 % 256) as u8, &[0xfe, 0, 0, 2, 0, 0, 0]));
        stream.write_all(&bytes).unwrap();
        drop(stream.read(&mut [0]));
    });
    options.limits.answer_bytes_max = 1 << 20;
    let mut connection = Connection::connect(&options).unwrap();
    let mut sum = 0_u64;
    connection
        .for_each_row("SELECT a FROM t", &mut |row| {
            sum += row.required::<u64>(0)?;
            Ok(())
        })
        .unwrap();
    assert_eq!(sum, 700_000);
    drop(connection);
    peer.join().unwrap();
}

/// MariaDB: of `information_schema` the tables that it has read so far.
#[test]
fn a_part_of_an_answer_is_asked_for_again() {
    let (options, peer) = plays(|mut stream| {
        let_in(&mut stream);
        let mut asked = Vec::new();
        let mut answer = |columns: u8, rows: &[&[u8]], warnings: u8| {
            asked.push(String::from_utf8_lossy(&packet(&mut stream).1[1..]).into_owned());
            let mut payloads = vec![vec![columns]];
            payloads.extend((0..columns).map(|_| COLUMN.to_vec()));
            payloads.extend(rows.iter().map(|row| row.to_vec()));
            payloads.push(vec![0xfe, 0, 0, 2, 0, warnings, 0]);
            for (number, payload) in payloads.iter().enumerate() {
                send(&mut stream, number as u8 + 1, payload);
            }
        };
        answer(1, &[b"\x011"], 1);
        answer(3, &[b"\x07Warning\x041317\x0binterrupted"], 0);
        answer(1, &[b"\x011", b"\x012"], 1);
        answer(3, &[b"\x07Warning\x041356\x04view"], 0);
        asked
    });
    let mut connection = Connection::connect(&options).unwrap();
    assert_eq!(connection.rows("SELECT a FROM t").unwrap().len(), 2);
    drop(connection);
    assert_eq!(peer.join().unwrap(), ["SELECT a FROM t", "SHOW WARNINGS", "SELECT a FROM t", "SHOW WARNINGS"]);
}

#[test]
fn no_file_is_sent_to_who_asks_for_it() {
    let (options, peer) = plays(|mut stream| {
        let_in(&mut stream);
        packet(&mut stream);
        send(&mut stream, 1, b"\xfb/etc/passwd\x1b[0m");
        let answer = packet(&mut stream);
        send(&mut stream, 3, OK);
        answer
    });
    let mut connection = Connection::connect(&options).unwrap();
    let error = connection.query("SELECT 1").unwrap_err();
    assert!(matches!(&error, Error::LocalInfileRefused { file } if file == "/etc/passwd\\x1b[0m"), "{error}");
    drop(connection);
    assert_eq!(peer.join().unwrap(), (2, Vec::new()));
}
