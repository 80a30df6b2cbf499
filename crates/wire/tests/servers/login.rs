//! Logins: every plugin over TCP in clear, TLS and the unix socket; certificates; refusals.

use std::path::{Path, PathBuf};

use wire::{ConnectOptions, Connection, Error, SslMode, TlsOptions};

use crate::Case;
use crate::support::{Skip, TestServer};

pub const CASES: &[Case] = &[
    ("native_password", |s| plugin(s, "mysql_native_password")),
    ("caching_sha2_password", |s| plugin(s, "caching_sha2_password")),
    ("sha256_password", |s| plugin(s, "sha256_password")),
    ("the_password_needs_a_key_that_is_trusted", key_not_trusted),
    ("the_password_under_a_known_key", known_key),
    ("ed25519", ed25519),
    ("empty_password", empty_password),
    ("wrong_password", wrong_password),
    ("refusals", refusals),
    ("tls_modes", tls_modes),
    ("verify_ca", verify_ca),
    ("verify_identity", verify_identity),
];

const PASSWORD: &str = "päss wörd 'longer' than the nonce #1";

fn create(server: &TestServer, user: &str, with: &str) -> Result<(), Skip> {
    let mut c = server.connect();
    let _ = c.execute(format!("DROP USER IF EXISTS '{user}'@'%', '{user}'@localhost"));
    for host in ["%", "localhost"] {
        c.execute(format!("CREATE USER '{user}'@'{host}' IDENTIFIED {with}"))
            .map_err(|error| Skip(format!("the server has no such accounts: {error}")))?;
    }
    Ok(())
}

fn socket(server: &TestServer) -> PathBuf {
    let path = server.connect().scalar("SELECT @@socket").unwrap().unwrap();
    PathBuf::from(path)
}

fn with_mode(options: &ConnectOptions, mode: SslMode) -> ConnectOptions {
    with_ca(options, mode, None)
}

fn with_ca(options: &ConnectOptions, mode: SslMode, ca: Option<PathBuf>) -> ConnectOptions {
    ConnectOptions { tls: TlsOptions { mode, ca, ..TlsOptions::default() }, ..options.clone() }
}

/// The three ways to a server, with what is expected of each.
fn ways(server: &TestServer, user: &str, password: &str) -> Vec<(&'static str, ConnectOptions)> {
    let base = ConnectOptions { host: "127.0.0.1".into(), socket: None, ..server.account(user, password) };
    let mut clear = with_mode(&base, SslMode::Disabled);
    clear.password_options.get_server_public_key = true;
    let tls = with_mode(&base, SslMode::Required);
    let socket = ConnectOptions { socket: Some(socket(server)), ..base };
    let mut ways = vec![("clear", clear), ("socket", socket)];
    if server.offers_tls() {
        ways.push(("tls", tls));
    }
    ways
}

fn plugin(server: &TestServer, plugin: &str) -> Result<(), Skip> {
    let user = format!("wire_{plugin}");
    let quoted = PASSWORD.replace('\'', "''");
    let with = if !server.is_mariadb() {
        format!("WITH {plugin} BY '{quoted}'")
    } else if plugin == "mysql_native_password" {
        format!("BY '{quoted}'")
    } else {
        return Err(Skip("a plugin of MySQL".into()));
    };
    let key = server.connect().row("SHOW STATUS LIKE 'Rsa_public_key'").unwrap();
    let has_key = key.is_some_and(|row| row.get(1).is_some_and(|key| !key.is_empty()));
    create(server, &user, &with)?;
    for way in 0..ways(server, &user, PASSWORD).len() {
        // A new account has no entry in the server's password cache: the full authentication comes first.
        create(server, &user, &with)?;
        let (name, options) = ways(server, &user, PASSWORD).remove(way);
        if plugin == "sha256_password" && name != "tls" && !has_key {
            continue;
        }
        for round in ["full", "cached"] {
            let mut c = Connection::connect(&options).unwrap_or_else(|error| panic!("{name}, {round}: {error}"));
            assert_eq!(c.server().tls, name == "tls", "{name}");
            c.ping().unwrap();
        }
    }
    Ok(())
}

/// Without TLS, and with an account that the server does not have in its cache.
fn key_not_trusted(server: &TestServer) -> Result<(), Skip> {
    if server.is_mariadb() {
        return Err(Skip("a plugin of MySQL".into()));
    }
    create(server, "wire_key", "WITH caching_sha2_password BY 'x'")?;
    let base = ConnectOptions { host: "127.0.0.1".into(), socket: None, ..server.account("wire_key", "x") };
    let clear = with_mode(&base, SslMode::Disabled);
    let error = Connection::connect(&clear).unwrap_err();
    assert!(matches!(error, Error::Auth { code: 0, .. }), "{error}");
    assert!(error.to_string().contains("get-server-public-key"), "{error}");
    // By default there is TLS where the server has it, and no key is needed.
    if server.offers_tls() {
        assert!(Connection::connect(&base).unwrap().server().tls);
    }
    Ok(())
}

fn known_key(server: &TestServer) -> Result<(), Skip> {
    let key = server.connect().row("SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key'").unwrap();
    let Some(key) = key.and_then(|row| row.get(1).map(<[u8]>::to_vec)).filter(|key| !key.is_empty()) else {
        return Err(Skip("the server has no such key".into()));
    };
    let path = std::env::temp_dir().join(format!("wire-known-key-{}.pem", std::process::id()));
    let connect = |key: &[u8]| {
        create(server, "wire_known_key", "WITH caching_sha2_password BY 'x'")?;
        std::fs::write(&path, key).unwrap();
        let base = ConnectOptions { host: "127.0.0.1".into(), socket: None, ..server.account("wire_known_key", "x") };
        let mut options = with_mode(&base, SslMode::Disabled);
        options.password_options.server_public_key = Some(path.clone());
        Ok(Connection::connect(&options))
    };
    connect(&key)?.unwrap();
    let other = connect(OTHER_KEY.as_bytes())?.unwrap_err();
    assert!(matches!(other, Error::Auth { code: 1045, .. }), "{other}");
    std::fs::remove_file(&path).unwrap();
    Ok(())
}

/// Nobody's.
const OTHER_KEY: &str = include_str!("other-key.pem");

fn ed25519(server: &TestServer) -> Result<(), Skip> {
    if !server.is_mariadb() {
        return Err(Skip("a plugin of MariaDB".into()));
    }
    let _ = server.connect().execute("INSTALL SONAME 'auth_ed25519'");
    create(server, "wire_ed25519", &format!("VIA ed25519 USING PASSWORD('{}')", PASSWORD.replace('\'', "''")))?;
    for (name, options) in ways(server, "wire_ed25519", PASSWORD) {
        Connection::connect(&options).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    Ok(())
}

fn empty_password(server: &TestServer) -> Result<(), Skip> {
    create(server, "wire_empty", "BY ''")?;
    for (name, mut options) in ways(server, "wire_empty", "") {
        Connection::connect(&options).unwrap_or_else(|error| panic!("{name}: {error}"));
        options.password = None;
        Connection::connect(&options).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    Ok(())
}

fn wrong_password(server: &TestServer) -> Result<(), Skip> {
    create(server, "wire_wrong", "BY 'right'")?;
    for (name, options) in ways(server, "wire_wrong", "hunter2hunter2") {
        let error = Connection::connect(&options).expect_err(name);
        assert!(matches!(error, Error::Auth { code: 1045, .. }), "{name}: {error}");
        assert!(!format!("{error} {error:?} {options:?}").contains("hunter2"), "{name}: {error}");
    }
    Ok(())
}

fn refusals(server: &TestServer) -> Result<(), Skip> {
    create(server, "wire_small", "BY 'x'")?;
    let options = ConnectOptions { database: Some("mysql".into()), ..server.account("wire_small", "x") };
    let error = Connection::connect(&options).unwrap_err();
    assert!(matches!(error, Error::Auth { code: 1044, .. }), "{error}");
    let options = ConnectOptions { port: 1, socket: None, host: "127.0.0.1".into(), ..server.account("x", "y") };
    assert!(matches!(Connection::connect(&options), Err(Error::Connect { .. })));
    let options = ConnectOptions { socket: Some("/nowhere/s.sock".into()), ..server.account("x", "y") };
    let error = Connection::connect(&options).unwrap_err();
    assert!(error.to_string().contains("/nowhere/s.sock"), "{error}");
    Ok(())
}

fn tls_modes(server: &TestServer) -> Result<(), Skip> {
    if !server.offers_tls() {
        let options = with_mode(&ConnectOptions { socket: None, ..server.admin.clone() }, SslMode::Required);
        let error = Connection::connect(&options).unwrap_err();
        assert!(error.to_string().contains("not offer") || matches!(error, Error::TlsIncompatible { .. }));
        return Err(Skip(format!("no usable TLS: {error}")));
    }
    for (mode, tls) in [(SslMode::Disabled, false), (SslMode::Preferred, true), (SslMode::Required, true)] {
        let options = with_mode(&ConnectOptions { socket: None, ..server.admin.clone() }, mode);
        let mut c = Connection::connect(&options).unwrap();
        assert_eq!(c.server().tls, tls, "{mode:?}");
        let cipher = c.row("SHOW STATUS LIKE 'Ssl_cipher'").unwrap().unwrap();
        assert_eq!(cipher.text(1).unwrap() != Some(""), tls, "{mode:?}");
        // More than one TLS record and more than one packet in both directions.
        let value = vec![b'x'; 20 << 20];
        c.send_query_parts(&[b"SELECT '", &value, b"'"]).unwrap();
        assert!(c.read_result().unwrap().results[0].rows[0].get(0) == Some(&value[..]));
    }
    let over_socket =
        with_mode(&ConnectOptions { socket: Some(socket(server)), ..server.admin.clone() }, SslMode::Required);
    assert!(Connection::connect(&over_socket).unwrap().server().tls);
    Ok(())
}

fn authority(server: &TestServer) -> Result<PathBuf, Skip> {
    if !server.offers_tls() {
        return Err(Skip("the server has no TLS for this client".into()));
    }
    let row = server.connect().row("SELECT @@ssl_ca, @@datadir").unwrap().unwrap();
    let Some(name) = row.text(0).unwrap().filter(|name| !name.is_empty()) else {
        return Err(Skip("the server has no ssl_ca".into()));
    };
    let path = Path::new(row.text(1).unwrap().unwrap()).join(name);
    std::fs::read(&path).map_err(|error| Skip(format!("{}: {error}", path.display())))?;
    Ok(path)
}

fn verify_ca(server: &TestServer) -> Result<(), Skip> {
    let good = authority(server)?;
    let base = ConnectOptions { host: "127.0.0.1".into(), socket: None, ..server.admin.clone() };
    let options = with_ca(&base, SslMode::VerifyCa, Some(good.clone()));
    assert!(Connection::connect(&options).unwrap().server().tls);
    let options = with_ca(&base, SslMode::Preferred, Some(good));
    assert!(Connection::connect(&options).unwrap().server().tls);
    let refused = |ca: Option<&str>, want: &str| {
        let options = with_ca(&base, SslMode::VerifyCa, ca.map(PathBuf::from));
        let error = Connection::connect(&options).unwrap_err();
        assert!(matches!(error, Error::Tls { .. }) && error.to_string().contains(want), "{error}");
    };
    refused(None, "need ssl-ca");
    refused(Some("/nowhere/ca.pem"), "/nowhere/ca.pem");
    let other = std::env::temp_dir().join(format!("wire-other-ca-{}.pem", std::process::id()));
    std::fs::write(&other, OTHER_CA).unwrap();
    refused(other.to_str(), "not signed by an authority");
    std::fs::remove_file(&other).unwrap();
    Ok(())
}

/// Whether the certificate names this address is up to the server's administrator; either way the answer is clear.
fn verify_identity(server: &TestServer) -> Result<(), Skip> {
    let base = ConnectOptions { host: "127.0.0.1".into(), socket: None, ..server.admin.clone() };
    let options = with_ca(&base, SslMode::VerifyIdentity, Some(authority(server)?));
    match Connection::connect(&options) {
        Ok(c) => assert!(c.server().tls),
        Err(error) => assert!(error.to_string().contains("is for another host"), "{error}"),
    }
    Ok(())
}

/// A self-signed authority that signed nothing.
const OTHER_CA: &str = include_str!("other-ca.pem");
