//! Logins: every plugin over TCP in clear, TLS and the unix socket; certificates; refusals.

use std::path::{Path, PathBuf};

use wire::{ConnectOptions, Connection, Error, SslMode};

use crate::Case;
use crate::support::{Skip, TestServer};

pub const CASES: &[Case] = &[
    ("native_password", |s| plugin(s, "mysql_native_password")),
    ("caching_sha2_password", |s| plugin(s, "caching_sha2_password")),
    ("sha256_password", |s| plugin(s, "sha256_password")),
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

/// The three ways to a server, with what is expected of each.
fn ways(server: &TestServer, user: &str, password: &str) -> Vec<(&'static str, ConnectOptions)> {
    let base = ConnectOptions { host: "127.0.0.1".into(), socket: None, ..server.account(user, password) };
    let clear = ConnectOptions { ssl_mode: SslMode::Disabled, ..base.clone() };
    let tls = ConnectOptions { ssl_mode: SslMode::Required, ..base.clone() };
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
        let options = ConnectOptions { ssl_mode: SslMode::Required, socket: None, ..server.admin.clone() };
        let error = Connection::connect(&options).unwrap_err();
        assert!(error.to_string().contains("not offer") || matches!(error, Error::TlsIncompatible { .. }));
        return Err(Skip(format!("no usable TLS: {error}")));
    }
    for (mode, tls) in [(SslMode::Disabled, false), (SslMode::Preferred, true), (SslMode::Required, true)] {
        let options = ConnectOptions { ssl_mode: mode, socket: None, ..server.admin.clone() };
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
        ConnectOptions { socket: Some(socket(server)), ssl_mode: SslMode::Required, ..server.admin.clone() };
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
    let options = ConnectOptions { ssl_mode: SslMode::VerifyCa, ssl_ca: Some(good.clone()), ..base.clone() };
    assert!(Connection::connect(&options).unwrap().server().tls);
    let options = ConnectOptions { ssl_mode: SslMode::Preferred, ssl_ca: Some(good), ..base.clone() };
    assert!(Connection::connect(&options).unwrap().server().tls);
    let refused = |ca: Option<&str>, want: &str| {
        let options = ConnectOptions { ssl_mode: SslMode::VerifyCa, ssl_ca: ca.map(PathBuf::from), ..base.clone() };
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
    let options = ConnectOptions {
        host: "127.0.0.1".into(),
        socket: None,
        ssl_mode: SslMode::VerifyIdentity,
        ssl_ca: Some(authority(server)?),
        ..server.admin.clone()
    };
    match Connection::connect(&options) {
        Ok(c) => assert!(c.server().tls),
        Err(error) => assert!(error.to_string().contains("is for another host"), "{error}"),
    }
    Ok(())
}

/// A self-signed authority that signed nothing.
const OTHER_CA: &str = include_str!("other-ca.pem");
