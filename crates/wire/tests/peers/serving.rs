//! The server's side against our own client, and against clients that speak garbage.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::server::{
    Account, Accounts, ColumnKind, Command, EventReply, Identity, Line, Peer, PeerError, PeerOptions, Plugin, Rows,
    RsaKey, ServerError, ServerTls, TlsFiles, Verifier,
};
use wire::{ConnectOptions, Connection, DumpRequest, Error, SslMode};

/// Events that are sent in pieces: one, and those that fill a packet exactly, and more.
const LARGE: [usize; 4] = [1, 300_001, 0xff_ff_ff - 1, 40 << 20];

struct Book(Vec<Arc<Account>>);

impl Accounts for Book {
    fn find(&self, user: &str, _: IpAddr) -> Option<Arc<Account>> {
        self.0.iter().find(|account| account.user == user).cloned()
    }
}

/// `authentication_string` of MySQL 9.7 for the password "secret".
const SHA2: &str = "$A$00A$,x&\x0eiYa2\x0f\x18PG&&\x5c'<e\x04\x06wcnIhm6/VuhuDgLf9sd5zv89am7Hl58rvlYDXgBIVT4";
const NATIVE: &str = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";
const ED25519: &str = "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY";

fn book() -> Book {
    let account = |user: &str, verifier, line| Arc::new(Account::new(user, verifier, line));
    let hash = |text: &str| Verifier::from_hash(text).unwrap();
    Book(vec![
        account("password", Verifier::Password("secret".into()), Line::Any),
        account("native", hash(NATIVE), Line::Any),
        account("sha2", hash(SHA2), Line::Any),
        account("ed25519", hash(ED25519), Line::Any),
        account("tls", Verifier::Password("secret".into()), Line::Tls),
        account("certificate", Verifier::Password("secret".into()), Line::Certificate),
    ])
}

fn options(plugin: Plugin) -> PeerOptions {
    PeerOptions::new(Identity { version: "9.7.0".to_owned(), charset: 45, plugin })
}

/// Answers each connection in a thread of its own, until its client leaves.
fn serve(options: PeerOptions) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let book = Arc::new(book());
    thread::spawn(move || {
        for (number, tcp) in listener.incoming().enumerate() {
            let (options, book) = (options.clone(), Arc::clone(&book));
            thread::spawn(move || {
                let mut peer = Peer::accept(tcp.unwrap(), number as u32, &options, &*book)?;
                while answer(&mut peer)? {}
                Ok::<_, PeerError>(())
            });
        }
    });
    address
}

fn answer(peer: &mut Peer) -> Result<bool, PeerError> {
    match peer.command()? {
        Command::Quit => return Ok(false),
        Command::Query(sql) if sql.starts_with(b"SELECT") => {
            let mut rows = Rows::new(&[("a", ColumnKind::Number), ("b", ColumnKind::Text)]);
            rows.rows.push(vec![Some("1".to_owned()), Some("x".repeat(300))]);
            rows.rows.push(vec![None, None]);
            peer.rows(&rows)?;
        }
        Command::Query(sql) if sql.starts_with(b"SET") => peer.ok()?,
        Command::Ping | Command::RegisterReplica(_) => peer.ok()?,
        Command::BinlogDump(from) => {
            let mut bytes = 7;
            while bytes <= 40 << 20 {
                peer.event(&vec![1; bytes])?;
                bytes *= 10;
            }
            // Never whole in memory: in pieces, of one packet and of several.
            for bytes in LARGE {
                let piece = vec![2; 100_000];
                peer.large_event(bytes, EventReply::Nothing, |send| -> Result<(), PeerError> {
                    (0..bytes).step_by(piece.len()).try_for_each(|at| send(&piece[..piece.len().min(bytes - at)]))
                })?;
            }
            // Exactly full, and one packet more.
            peer.event(&vec![1; 0xff_ff_ff - 1])?;
            peer.event(from.file.as_slice())?;
            peer.end()?;
        }
        _ => peer.error(&ServerError::new(1235, "42000", "not supported"))?,
    }
    Ok(true)
}

fn client(address: SocketAddr, user: &str, password: &str) -> ConnectOptions {
    let mut options = ConnectOptions {
        port: address.port(),
        user: user.to_owned(),
        password: Some(password.into()),
        ..ConnectOptions::default()
    };
    options.tls.mode = SslMode::Disabled;
    options.password_options.get_server_public_key = true;
    options
}

#[test]
fn every_plugin_lets_in_who_knows_the_password_and_nobody_else() {
    let pem = std::process::Command::new("openssl").args(["genrsa", "2048"]).output().unwrap().stdout;
    let rsa = Arc::new(OnceLock::from(RsaKey::from_pem(&String::from_utf8(pem).unwrap()).unwrap()));
    for plugin in [Plugin::Native, Plugin::CachingSha2] {
        let options = PeerOptions { rsa: Arc::clone(&rsa), ..options(plugin) };
        let address = serve(options);
        for user in ["password", "native", "sha2", "ed25519"] {
            // Wrong before right, and twice: the second login of `sha2` is the short one.
            for password in ["wrong", "secret", "wrong", "secret", ""] {
                let connected = Connection::connect(&client(address, user, password));
                if password == "secret" {
                    connected.unwrap_or_else(|error| panic!("{user}: {error}")).ping().unwrap();
                } else {
                    let error = connected.expect_err(user);
                    assert_eq!(error.code(), Some(1045), "{user} {password:?}: {error}");
                }
            }
        }
        for user in ["nobody", "tls", "certificate"] {
            let error = Connection::connect(&client(address, user, "secret")).expect_err(user);
            assert_eq!(error.code(), Some(1045), "{user}: {error}");
        }
    }
}

/// A client of before `caching_sha2_password` names its own plugin and proves nothing: it has no nonce for it yet.
#[test]
fn a_client_that_does_not_know_the_greetings_plugin_is_asked_by_its_own() {
    let address = serve(options(Plugin::CachingSha2));
    let mut stream = TcpStream::connect(address).unwrap();
    crate::peer::packet(&mut stream);
    // PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH.
    let mut login = 0x0008_8200_u32.to_le_bytes().to_vec();
    login.extend([0, 0, 0, 1, 45]);
    login.extend([0; 23]);
    login.extend(b"password\0\0mysql_native_password\0");
    crate::peer::send(&mut stream, 1, &login);
    let (_, asked) = crate::peer::packet(&mut stream);
    assert!(asked.starts_with(b"\xfemysql_native_password\0"), "{asked:?}");
    crate::peer::send(&mut stream, 3, b"");
    let (_, denied) = crate::peer::packet(&mut stream);
    assert_eq!(denied.get(..3), Some(&b"\xff\x15\x04"[..]), "{denied:?}");
}

#[test]
fn answers_and_events_arrive_as_they_were_sent() {
    let address = serve(options(Plugin::CachingSha2));
    let mut connection = Connection::connect(&client(address, "password", "secret")).unwrap();
    let rows = connection.rows("SELECT").unwrap();
    assert_eq!(rows[0].required::<u64>("a").unwrap(), 1);
    assert_eq!(rows[0].required_text("b").unwrap().len(), 300);
    assert_eq!(rows[1].text("a").unwrap(), None);
    let error = connection.execute("DROP TABLE t").unwrap_err();
    assert_eq!(error.to_string(), "server error 1235 (42000): not supported");
    connection.ping().unwrap();
    let request = DumpRequest::FilePosition { file: "b.000001".to_owned(), position: 4, server_id: 7, flags: 0 };
    let mut stream = connection.binlog_dump(&request).unwrap();
    let small = [7, 70, 700, 7000, 70_000, 700_000, 7_000_000].map(|bytes| (bytes, 1));
    for (bytes, of) in small.into_iter().chain(LARGE.map(|bytes| (bytes, 2))).chain([(0xff_ff_ff - 1, 1)]) {
        let packet = stream.next().unwrap();
        assert!(packet.bytes.len() == bytes && packet.bytes.iter().all(|byte| *byte == of), "{bytes}");
    }
    assert_eq!(&stream.next().unwrap().bytes[..], b"b.000001");
    assert!(matches!(stream.next(), Err(Error::DumpEnded)));
}

#[test]
fn garbage_ends_a_connection_and_nothing_else() {
    let mut options = options(Plugin::CachingSha2);
    options.login_timeout = Duration::from_secs(2);
    let address = serve(options);
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..200 {
        let mut tcp = TcpStream::connect(address).unwrap();
        let mut greeting = [0; 77];
        tcp.read_exact(&mut greeting).unwrap();
        let mut bytes = vec![0; random.random_range(0..300)];
        random.fill(&mut bytes[..]);
        if random.random_bool(0.7) {
            // A header that fits, and flags that make sense.
            let length = bytes.len() as u32;
            bytes.splice(0..0, [length as u8, (length >> 8) as u8, 0, 1]);
            if let Some(flags) = bytes.get_mut(4..8) {
                flags.copy_from_slice(&0x0108_a28f_u32.to_le_bytes());
            }
        }
        let _ = tcp.write_all(&bytes);
        let _ = tcp.shutdown(std::net::Shutdown::Write);
        let mut answers = Vec::new();
        let _ = tcp.read_to_end(&mut answers);
    }
    // After the login, on one connection after the other.
    for _ in 0..100 {
        let mut connection = Connection::connect(&client(address, "password", "secret")).unwrap();
        let statement = random.random::<[u8; 12]>();
        let _ = connection.execute(&statement[..]);
    }
    Connection::connect(&client(address, "password", "secret")).unwrap().ping().unwrap();
}

#[test]
fn before_the_login_nobody_gets_memory_or_time() {
    let mut options = options(Plugin::CachingSha2);
    options.login_timeout = Duration::from_millis(300);
    let address = serve(options);
    // Says nothing: is left.
    let mut silent = TcpStream::connect(address).unwrap();
    let mut all = Vec::new();
    silent.read_to_end(&mut all).unwrap();
    assert_eq!(all.first(), Some(&73));
    // Says that 16 MiB follow: is left at once, without any of them.
    let mut large = TcpStream::connect(address).unwrap();
    large.write_all(&[0xff, 0xff, 0xff, 1]).unwrap();
    all.clear();
    let _ = large.read_to_end(&mut all);
    assert!(all.len() < 200, "{}", all.len());
}

#[test]
fn tls_and_client_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let openssl = |arguments: &str| {
        let done =
            std::process::Command::new("openssl").args(arguments.split(' ')).current_dir(dir.path()).output().unwrap();
        assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
    };
    std::fs::write(path("v3"), "basicConstraints=CA:FALSE\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for (name, subject) in [("ca", "/CN=ca"), ("other", "/CN=other")] {
        openssl(&format!("req -x509 {key} -keyout {name}.key -out {name}.pem -subj {subject} -days 30"));
    }
    for (name, ca) in [("server", "ca"), ("client", "ca"), ("stranger", "other")] {
        openssl(&format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        openssl(&format!(
            "x509 -req -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -out {name}.pem -days 30 -extfile v3"
        ));
    }
    let files = TlsFiles { cert: path("server.pem"), key: path("server.key"), ca: Some(path("ca.pem")) };
    let mut options = options(Plugin::CachingSha2);
    options.tls = Some(ServerTls::read(&files).unwrap());
    let with_tls = options.clone();
    let address = serve(options);
    let check = |user: &str, certificate: Option<&str>, is_let_in: bool| {
        let mut options = client(address, user, "secret");
        options.tls.mode = SslMode::VerifyCa;
        options.tls.ca = Some(path("ca.pem"));
        options.tls.cert = certificate.map(|name| path(&format!("{name}.pem")));
        options.tls.key = certificate.map(|name| path(&format!("{name}.key")));
        let connected = Connection::connect(&options).and_then(|mut connection| connection.ping());
        assert_eq!(connected.is_ok(), is_let_in, "{user} {certificate:?}: {connected:?}");
    };
    for user in ["password", "native", "sha2", "ed25519", "tls"] {
        check(user, None, true);
        check(user, Some("client"), true);
    }
    // Without an authority, the server shows that it knows the password; caching_sha2's hash only it knows.
    let native = serve(PeerOptions { identity: self::options(Plugin::Native).identity, ..with_tls });
    for (user, password, is_let_in) in [
        ("password", "secret", true),
        ("native", "secret", true),
        ("ed25519", "secret", true),
        ("sha2", "secret", false),
        ("native", "", false),
    ] {
        let mut options = client(native, user, password);
        options.tls.mode = SslMode::VerifyIdentity;
        let connected = Connection::connect(&options).and_then(|mut connection| connection.ping());
        assert_eq!(connected.is_ok(), is_let_in, "{user}: {connected:?}");
    }
    check("certificate", None, false);
    check("certificate", Some("client"), true);
    check("tls", Some("stranger"), false);
}
