//! `heddle serve --source-accounts`: who may replicate from the source may attach to Heddle, with the same password, from the same hosts.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::heddle::Heddle;
use e2e::served::{Ask, By, assert_same, attach};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, USER, free_port};
use wire::{ConnectOptions, Connection, SslMode};

const STUCK_AFTER: Duration = Duration::from_secs(60);

/// What a version has.
struct Has {
    locks: bool,
    netmasks: bool,
    expires: bool,
}

impl Has {
    fn of(kind: Kind) -> Self {
        let (name, is_mariadb) = (kind.to_string(), kind.is_mariadb());
        let is_one_of = |names: &[&str]| names.iter().any(|known| name == *known);
        Self {
            locks: !is_one_of(&["mysql-5.6.14", "mariadb-10.1", "mariadb-10.2"]),
            netmasks: !is_mariadb,
            expires: !is_mariadb,
        }
    }
}

/// A login at Heddle, from 127.0.0.1.
fn is_let_in(port: u16, user: &str, password: &str) -> Result<bool> {
    let mut options =
        ConnectOptions { port, user: user.to_owned(), password: Some(password.into()), ..ConnectOptions::default() };
    options.tls.mode = SslMode::Disabled;
    options.password_options.get_server_public_key = true;
    match Connection::connect(&options) {
        Ok(mut connection) => Ok(connection.scalar("SELECT @@server_id")?.is_some()),
        Err(error) if error.code() == Some(1045) => Ok(false),
        Err(error) => Err(error).with_context(|| format!("{user} at Heddle")),
    }
}

fn becomes(port: u16, user: &str, password: &str, want: bool) -> Result<()> {
    let started = Instant::now();
    // At first nobody listens.
    while !is_let_in(port, user, password).is_ok_and(|is_in| is_in == want) {
        ensure!(started.elapsed() < STUCK_AFTER, "{user}: not {want}: {:?}", is_let_in(port, user, password));
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn create(source: &Server, user: &str, host: &str, password: &str) -> Result<()> {
    source.execute(&format!(
        "CREATE USER '{user}'@'{host}' IDENTIFIED BY '{password}'; GRANT REPLICATION SLAVE ON *.* TO '{user}'@'{host}'"
    ))
}

fn lets_in(kind: Kind) -> Result<()> {
    let has = Has::of(kind);
    let (source, replica) = Server::start_two((kind, &[]), (kind, &[]))?;
    // What stands in an account's name, host and password may be anything.
    create(&source, "repl", "127.%", "first")?;
    create(&source, "repl", "10.0.0.0", "other")?;
    create(&source, "o''`x", "%", "it''s")?;
    create(&source, "near", "%", "far")?;
    create(&source, "near", "127.0.0.1", "near")?;
    create(&source, "blocked", "%", "secret")?;
    source.execute("CREATE USER 'blocked'@'127.0.0.1' IDENTIFIED BY 'secret'")?;
    source.execute("CREATE USER reader IDENTIFIED BY 'secret'; GRANT SELECT ON *.* TO reader")?;
    create(&source, "named", "replica.example.com", "secret")?;
    create(&source, "later", "%", "secret")?;
    if has.netmasks {
        create(&source, "masked", "127.0.0.0/255.0.0.0", "secret")?;
        create(&source, "elsewhere", "128.0.0.0/255.0.0.0", "secret")?;
    }
    let dir = tempfile::tempdir()?;
    let (port, folder) = (free_port()?, dir.path().display().to_string());
    let listen = format!("127.0.0.1:{port}");
    let source_url = format!("mysql://{USER}@127.0.0.1:{}?ssl-mode=disabled&get-server-public-key=true", source.port);
    let arguments = ["serve", "--from", &source_url, "--dir", &folder, "--listen", &listen, "--source-accounts"];
    let mut heddle = Heddle::start(&arguments)?;
    becomes(port, "repl", "first", true)?;
    let check = |user: &str, password: &str, want: bool| -> Result<()> {
        ensure!(is_let_in(port, user, password)? == want, "{user} with {password}");
        Ok(())
    };
    check("repl", "other", false)?;
    check("o'`x", "it's", true)?;
    check("near", "near", true)?;
    check("near", "far", false)?;
    check("blocked", "secret", false)?;
    check("reader", "secret", false)?;
    check("named", "secret", false)?;
    check("nobody", "", false)?;
    if has.netmasks {
        check("masked", "secret", true)?;
        check("elsewhere", "secret", false)?;
    }
    heddle.wait_for_log("account named@replica.example.com cannot attach: its host is a name")?;
    // A native replica with an account of the source's.
    attach(&replica, Ask { user: "repl", password: "first", ..Ask::new(port, By::Gtid) })?;
    assert_same(&source, &replica)?;
    // A new password, a lock, an account that goes.
    let set = |user: &str, password: &str| {
        // MariaDB 10.2.11 does not log ALTER USER.
        if ["mysql-5.6.14", "mariadb-10.1", "mariadb-10.2"].contains(&kind.to_string().as_str()) {
            format!("SET PASSWORD FOR {user} = PASSWORD('{password}')")
        } else {
            format!("ALTER USER {user} IDENTIFIED BY '{password}'")
        }
    };
    source.execute("DROP USER later")?;
    if has.locks {
        source.execute("ALTER USER 'near'@'127.0.0.1' ACCOUNT LOCK")?;
    }
    if has.expires {
        source.execute("ALTER USER 'masked'@'127.0.0.0/255.0.0.0' PASSWORD EXPIRE")?;
    }
    source.execute(&set("'repl'@'127.%'", "second"))?;
    becomes(port, "repl", "second", true)?;
    check("repl", "first", false)?;
    check("later", "secret", false)?;
    check("near", "near", !has.locks)?;
    check("near", "far", false)?;
    if has.expires {
        check("masked", "secret", false)?;
    }
    assert_same(&source, &replica)?;
    // While the source is away, also after a start.
    let kept = dir.path().join("heddle-accounts.json");
    ensure!(kept.metadata()?.permissions().mode() & 0o777 == 0o600);
    let log = heddle.log();
    ensure!(!log.contains("second") && !log.contains("authentication") && !log.contains('*'), "{log}");
    heddle.kill()?;
    heddle.wait()?;
    drop(source);
    heddle = Heddle::start(&arguments)?;
    becomes(port, "repl", "second", true)?;
    check("repl", "first", false)?;
    heddle.kill()?;
    heddle.wait().map(drop)
}

/// What Heddle's account lacks is said, with what to do.
fn says_what_is_missing(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    source.execute(
        "CREATE USER small IDENTIFIED BY 'heddle'; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO small",
    )?;
    let dir = tempfile::tempdir()?;
    let listen = format!("127.0.0.1:{}", free_port()?);
    let url = format!("mysql://small@127.0.0.1:{}?ssl-mode=disabled&get-server-public-key=true", source.port);
    let folder = dir.path().display().to_string();
    let mut heddle =
        Heddle::start(&["serve", "--from", &url, "--dir", &folder, "--listen", &listen, "--source-accounts"])?;
    let table = if kind.is_mariadb() { "mysql.global_priv" } else { "mysql.user" };
    heddle.wait_for_log(&format!("GRANT SELECT ON {table} to Heddle's account there"))?;
    source.execute(&format!("GRANT SELECT ON {table} TO small"))?;
    heddle.wait_for_log("accounts of the source that can attach: heddle@")?;
    heddle.kill()?;
    heddle.wait().map(drop)
}

fn every_version() -> Result<()> {
    for kind in
        ["mysql-5.6.14", "mysql-5.7.22", "mysql-8.0.15", "mariadb-10.1", "mariadb-10.2", "mariadb-11.4", "mariadb-11.8"]
    {
        eprintln!("{kind}");
        lets_in(kind.parse()?).with_context(|| kind.to_owned())?;
    }
    Ok(())
}

e2e::tests! {
    mysql_lets_in: lets_in(MYSQL_9_7);
    mariadb_lets_in: lets_in(MARIADB_10_11);
    mysql_says_what_is_missing: says_what_is_missing(MYSQL_9_7);
    mariadb_says_what_is_missing: says_what_is_missing(MARIADB_10_11);
    #[ignore = "all versions: scripts/nightly serve"] every_version_lets_in: every_version();
}
