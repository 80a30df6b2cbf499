//! A running `heddle serve --listen`, and replicas that are pointed at it, in the words of their version.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use wire::{ConnectOptions, Connection, SslMode};

use crate::checksum::assert_equal;
use crate::heddle::{Heddle, Run};
use crate::native::{gtids, statement, wait_caught_up};
use crate::server::{PASSWORD, Server, USER};

const STUCK_AFTER: Duration = Duration::from_secs(180);

/// A binlog server, and where it listens.
#[derive(Debug)]
pub struct Served {
    pub heddle: Heddle,
    pub port: u16,
}

impl Served {
    /// Of a source, which may be another one; `more` are flags. Returns when it listens.
    pub fn start(source_port: u16, dir: &Path, port: u16, more: &[&str]) -> Result<Served> {
        let (from, dir, listen) = (from(source_port), dir.display().to_string(), format!("127.0.0.1:{port}"));
        let base = ["serve", "--from", &from, "--dir", &dir, "--listen", &listen, "--replica-user", USER];
        let served = Served { heddle: Heddle::start(&[&base[..], more].concat())?, port };
        served.connected()?;
        Ok(served)
    }

    /// As if no file could grow beyond so many bytes.
    pub fn start_with_small_files(source_port: u16, dir: &Path, port: u16, bytes_max: u64) -> Result<Served> {
        let (from, dir, listen) = (from(source_port), dir.display().to_string(), format!("127.0.0.1:{port}"));
        let arguments = ["serve", "--from", &from, "--dir", &dir, "--listen", &listen, "--replica-user", USER];
        Ok(Served { heddle: Heddle::start_with_small_files(&arguments, bytes_max)?, port })
    }

    /// Killed, and started again at the same place; `more` are flags.
    pub fn restarted(self, source: &Server, dir: &Path, more: &[&str]) -> Result<Served> {
        let port = self.port;
        self.kill()?;
        Served::start(source.port, dir, port, more)
    }

    pub fn kill(self) -> Result<Run> {
        self.heddle.kill()?;
        self.heddle.wait()
    }

    /// A client of our own.
    pub fn connect(&self, password: &str) -> Result<Connection, wire::Error> {
        connect(self.port, password)
    }

    /// When it listens.
    pub fn connected(&self) -> Result<Connection> {
        let started = Instant::now();
        loop {
            match self.connect(PASSWORD) {
                Ok(connection) => return Ok(connection),
                Err(error) if started.elapsed() > STUCK_AFTER => {
                    bail!("heddle does not listen: {error}\n{}", self.heddle.log())
                }
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// As native replication connects: old servers have no TLS that is spoken today.
fn from(port: u16) -> String {
    format!("mysql://{USER}@127.0.0.1:{port}?ssl-mode=disabled&get-server-public-key=true")
}

/// A client without TLS, of Heddle or of a server.
pub fn connect(port: u16, password: &str) -> Result<Connection, wire::Error> {
    let mut options =
        ConnectOptions { port, user: USER.to_owned(), password: Some(password.into()), ..ConnectOptions::default() };
    options.tls.mode = SslMode::Disabled;
    options.password_options.get_server_public_key = true;
    Connection::connect(&options)
}

/// Where a replica is to go on.
#[derive(Clone, Copy, Debug)]
pub enum By<'a> {
    Gtid,
    Position(&'a str, u64),
}

/// Whom a replica asks, and how.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub port: u16,
    pub user: &'a str,
    pub password: &'a str,
    pub by: By<'a>,
    pub tls: bool,
}

impl<'a> Ask<'a> {
    /// With every server's own account, without TLS.
    pub fn new(port: u16, by: By<'a>) -> Self {
        Ask { port, user: USER, password: PASSWORD, by, tls: false }
    }
}

/// The statement that points a replica there.
pub fn change(replica: &Server, ask: Ask<'_>) -> String {
    let name = replica.kind.to_string();
    let place = match (ask.by, replica.kind.is_mariadb()) {
        (By::Gtid, true) => "master_use_gtid=slave_pos".to_owned(),
        (By::Gtid, false) => "master_auto_position=1".to_owned(),
        (By::Position(file, offset), true) => {
            format!("master_use_gtid=no, master_log_file='{file}', master_log_pos={offset}")
        }
        (By::Position(file, offset), false) => {
            format!("master_auto_position=0, master_log_file='{file}', master_log_pos={offset}")
        }
    };
    // Old servers have no get_master_public_key.
    let key = if name.starts_with("mysql-8") || name.starts_with("mysql-9") { ", get_master_public_key=1" } else { "" };
    let tls = if ask.tls { ", master_ssl=1, master_ssl_verify_server_cert=0" } else { ", master_ssl=0" };
    let sql = format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='{}', master_password='{}', master_connect_retry=1, \
         master_heartbeat_period=1, {place}{tls}{key}",
        ask.port, ask.user, ask.password
    );
    if name == "mysql-9.7" {
        sql.replace("CHANGE MASTER TO", "CHANGE REPLICATION SOURCE TO").replace("master_", "source_")
    } else {
        sql
    }
}

/// Points a replica there and starts it.
pub fn attach(replica: &Server, ask: Ask<'_>) -> Result<()> {
    replica.execute(statement(replica, "STOP"))?;
    replica.execute(&change(replica, ask))?;
    replica.execute(statement(replica, "START"))
}

/// What `heddle status --json` says of a mirror that a process has.
pub fn status_of_mirror(dir: &Path) -> Result<serde_json::Value> {
    let run = Heddle::start(&["status", "--dir", &dir.display().to_string(), "--json"])?.wait()?.successful()?;
    Ok(serde_json::from_str(&run.stdout)?)
}

/// What a replica says of itself: names as they were before 8.0.22, and values.
pub fn status(replica: &Server) -> Result<Vec<(String, String)>> {
    let output = replica.client(&["--vertical", "-e", statement(replica, "STATUS")]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let old = |name: &str| name.replace("Source", "Master").replace("Replica", "Slave");
    let pairs = text.lines().filter_map(|line| line.trim_start().split_once(": "));
    Ok(pairs.map(|(name, value)| (old(name), value.trim_end().to_owned())).collect())
}

/// One value of it.
pub fn status_of(replica: &Server, name: &str) -> Result<String> {
    Ok(status(replica)?.into_iter().find(|(known, _)| known == name).map(|(_, value)| value).unwrap_or_default())
}

/// Until the receiver runs, or has said why it does not: the error.
pub fn receives(replica: &Server) -> Result<Option<String>> {
    let started = Instant::now();
    loop {
        let status = status(replica)?;
        let of = |name: &str| status.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        if of("Slave_IO_Running") == Some("Yes") {
            return Ok(None);
        }
        if let Some(error) = of("Last_IO_Error").filter(|error| !error.is_empty()) {
            return Ok(Some(error.to_owned()));
        }
        ensure!(started.elapsed() < STUCK_AFTER, "neither attached nor refused: {status:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Tables and GTIDs of a replica that has caught up.
pub fn assert_same(source: &Server, replica: &Server) -> Result<()> {
    wait_caught_up(source, replica)?;
    assert_equal(source, replica)?;
    let has = if replica.kind.is_mariadb() { replica.scalar("SELECT @@gtid_slave_pos")? } else { gtids(replica)? };
    let sorted = |text: &str| {
        let mut parts: Vec<String> = text.split(',').map(str::to_owned).collect();
        parts.sort();
        parts
    };
    ensure!(sorted(&has) == sorted(&gtids(source)?), "{has} on the replica, {} on the source", gtids(source)?);
    Ok(())
}

/// A certificate of this machine's, signed by itself: cert.pem and key.pem.
pub fn certificate(dir: &Path) -> Result<()> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(dir.join("key.pem"))
        .arg("-out")
        .arg(dir.join("cert.pem"))
        .output()
        .context("openssl makes the certificate")?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}
