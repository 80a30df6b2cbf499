//! `heddle serve` without a certificate makes one, so that replicas attach as their versions do by default; files are read again on SIGHUP; and Heddle
//! verifies a MariaDB server that has no authority.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::checksum::{contents, differences};
use e2e::heddle::Heddle;
use e2e::native::{statement, wait_caught_up};
use e2e::patience::until;
use e2e::served::{Served, certificate, receives, status_of};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER, free_port};
use rustix::process::Signal;
use std::path::Path;
use wire::{ConnectOptions, Connection, SslMode};

/// Any address of this machine but the usual one, which MariaDB's replicas trust without more.
const OTHER_ADDRESS: &str = "127.0.0.2";

fn serve(source: &Server, dir: &Path, port: u16, more: &[&str]) -> Result<Served> {
    let listen = format!("0.0.0.0:{port}");
    let dir = dir.display().to_string();
    let from = source.plain_url();
    let base = ["serve", "--from", &from, "--dir", &dir, "--listen", &listen, "--replica-user", USER];
    let served = Served { heddle: Heddle::start_without_terminal(&[&base[..], more].concat())?, port };
    served.connected()?;
    Ok(served)
}

/// Nothing is said of TLS: the version's defaults hold.
fn point(replica: &Server, port: u16) -> Result<()> {
    let change = if replica.kind.is_mariadb() {
        format!(
            "CHANGE MASTER TO master_host='{OTHER_ADDRESS}', master_port={port}, master_user='{USER}', master_password='{PASSWORD}', \
             master_use_gtid=slave_pos, master_connect_retry=1, master_heartbeat_period=1"
        )
    } else {
        format!(
            "CHANGE REPLICATION SOURCE TO source_host='{OTHER_ADDRESS}', source_port={port}, source_user='{USER}', source_password='{PASSWORD}', \
             source_auto_position=1, source_ssl=1, source_connect_retry=1"
        )
    };
    replica.execute(statement(replica, "STOP"))?;
    replica.execute(&change)?;
    replica.execute(statement(replica, "START"))
}

/// Definitions of another version print differently.
fn same_rows(source: &Server, replica: &Server) -> Result<()> {
    wait_caught_up(source, replica)?;
    let differ = differences(&contents(source)?, &contents(replica)?);
    ensure!(differ.is_empty(), "{}", differ.join("\n"));
    Ok(())
}

fn options(host: &str, port: u16, mode: SslMode) -> ConnectOptions {
    let mut options = ConnectOptions {
        host: host.to_owned(),
        port,
        user: USER.to_owned(),
        password: Some(PASSWORD.into()),
        ..ConnectOptions::default()
    };
    options.tls.mode = mode;
    options.password_options.get_server_public_key = true;
    options
}

fn replicas_attach_by_default(source: Kind, replica: Kind) -> Result<()> {
    let (source, replica) = Server::start_two((source, &[]), (replica, &[]))?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    let dir = tempfile::tempdir()?;
    let mirror = dir.path().join("mirror");
    let served = serve(&source, &mirror, free_port()?, &[])?;
    point(&replica, served.port)?;
    ensure!(receives(&replica)?.is_none(), "{:?}\n{}", receives(&replica)?, served.heddle.log());
    source.execute("INSERT INTO d.t VALUES (1)")?;
    same_rows(&source, &replica)?;
    ensure!(status_of(&replica, "Master_SSL_Allowed")? == "Yes", "it came without TLS");
    // The same certificate after a restart; in clear goes on.
    let of = |name: &str| std::fs::read(mirror.join(name));
    let before = (of("heddle-tls-cert.pem")?, of("heddle-tls-key.pem")?);
    let port = served.port;
    served.heddle.terminate()?;
    served.heddle.wait()?;
    let served = serve(&source, &mirror, port, &[])?;
    ensure!(before == (of("heddle-tls-cert.pem")?, of("heddle-tls-key.pem")?), "made anew");
    source.execute("INSERT INTO d.t VALUES (2)")?;
    same_rows(&source, &replica)?;
    Connection::connect(&options("127.0.0.1", port, SslMode::Disabled))?;
    ensure!(Connection::connect(&options("127.0.0.1", port, SslMode::Required))?.server().tls, "no TLS");
    // Without it such a replica is refused.
    served.heddle.terminate()?;
    served.heddle.wait()?;
    let served = serve(&source, &mirror, port, &["--no-tls"])?;
    point(&replica, port)?;
    let refused = receives(&replica)?.context("it attached without TLS")?;
    ensure!(refused.to_uppercase().contains("SSL"), "{refused}");
    served.kill().map(drop)
}

/// What a server shows, as bytes.
fn shown(port: u16) -> Result<Vec<u8>> {
    let options = options("127.0.0.1", port, SslMode::Required);
    let shown = Connection::connect(&options)?.certificate_fingerprint().context("no certificate")?;
    Ok(shown.to_vec())
}

fn files_are_read_again() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let dir = tempfile::tempdir()?;
    certificate(dir.path())?;
    let text = |name: &str| dir.path().join(name).display().to_string();
    let more = ["--tls-cert", &text("cert.pem"), "--tls-key", &text("key.pem")];
    let served = serve(&source, &dir.path().join("mirror"), free_port()?, &more)?;
    let first = shown(served.port)?;
    certificate(dir.path())?;
    ensure!(shown(served.port)? == first, "read again without being asked");
    served.heddle.signal(Signal::HUP)?;
    until("the new certificate is shown", || Ok(shown(served.port)? != first))?;
    served.kill().map(drop)
}

/// A MariaDB that has made its certificate itself is verified by the password, and nothing else is.
fn verified_by_password() -> Result<()> {
    let later: Kind = "mariadb-11.4".parse()?;
    let (server, older) = Server::start_two((later, &["--ssl"]), (MARIADB_10_11, &[]))?;
    let connected = |port, mode| Connection::connect(&options("127.0.0.1", port, mode));
    for mode in [SslMode::VerifyCa, SslMode::VerifyIdentity] {
        ensure!(connected(server.port, mode)?.server().tls, "no TLS");
    }
    // A binlog server, too, which has such a certificate of its own.
    let dir = tempfile::tempdir()?;
    let served = serve(&older, &dir.path().join("mirror"), free_port()?, &[])?;
    ensure!(connected(served.port, SslMode::VerifyIdentity)?.server().tls, "no TLS");
    server.execute("CREATE USER none@'%'; GRANT ALL ON *.* TO none@'%'")?;
    let mut without = options("127.0.0.1", server.port, SslMode::VerifyIdentity);
    (without.user, without.password) = ("none".to_owned(), None);
    let refused = Connection::connect(&without).err().context("verified without a password")?;
    ensure!(refused.to_string().contains("can not be verified"), "{refused}");
    served.kill().map(drop)
}

e2e::tests! {
    mysql_attaches_by_default: replicas_attach_by_default(MYSQL_9_7, MYSQL_9_7);
    mariadb_attaches_by_default: replicas_attach_by_default(MARIADB_10_11, "mariadb-11.4".parse().expect("a name"));
    #[ignore = "a server that only scripts/nightly fetches"]
    mariadb_11_8_attaches_by_default: replicas_attach_by_default(MARIADB_10_11, "mariadb-11.8".parse().expect("a name"));
    certificate_is_read_again: files_are_read_again();
    mariadb_11_4_verified_by_password: verified_by_password();
}
