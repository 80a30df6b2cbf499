//! One real server instance in a folder of its own, from start to removal.

use crate::repository;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Signal, kill_process};
use std::fmt;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The account that every instance has, with all rights, from everywhere.
pub const USER: &str = "heddle";
pub const PASSWORD: &str = "heddle";

/// A free port may be taken by another process before the server binds it.
const START_ATTEMPTS: usize = 4;
const PORT_ATTEMPTS: usize = 1000;

/// The names that `scripts/servers` knows.
const NAMES: [&str; 12] = [
    "mariadb-10.1",
    "mariadb-10.2",
    "mariadb-10.6",
    "mariadb-10.11",
    "mariadb-11.4",
    "mariadb-11.8",
    "mysql-5.6.14",
    "mysql-5.7.22",
    "mysql-8.0.15",
    "mysql-8.0.46",
    "mysql-8.4",
    "mysql-9.7",
];

/// Which server, by its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kind(&'static str);

pub const MARIADB_10_11: Kind = Kind("mariadb-10.11");
pub const MYSQL_9_7: Kind = Kind("mysql-9.7");

impl Kind {
    pub fn is_mariadb(self) -> bool {
        self.0.starts_with("mariadb")
    }

    /// First number of the version.
    pub fn major(self) -> u32 {
        self.version().first().copied().unwrap_or(0)
    }

    /// As many numbers of the version as its name has.
    pub fn version(self) -> Vec<u32> {
        let version = self.0.split('-').nth(1).unwrap_or_default();
        version.split('.').map_while(|number| number.parse().ok()).collect()
    }

    /// A MySQL of this version or a later one.
    pub fn is_mysql_since(self, version: &[u32]) -> bool {
        !self.is_mariadb() && self.version().as_slice() >= version
    }

    /// MySQL that says `REPLICA` and `SOURCE` in every statement and variable. Those before 8.4 take the old words as well.
    pub fn has_new_words(self) -> bool {
        self.is_mysql_since(&[8, 0, 26])
    }

    /// MySQL that no longer takes `SLAVE` and `MASTER`.
    pub fn lacks_old_words(self) -> bool {
        self.is_mysql_since(&[8, 4])
    }

    /// MySQL's binary JSON; MariaDB's is text.
    pub fn has_json(self) -> bool {
        !self.is_mariadb() && self.0 != "mysql-5.6.14"
    }

    /// XA PREPARE is in the log, and a transaction that was prepared outlives its session.
    pub fn logs_prepared(self) -> bool {
        !["mysql-5.6.14", "mariadb-10.1", "mariadb-10.2"].contains(&self.0)
    }

    /// A REPLACE leaves the rows that refer to the one that it replaces, whatever their foreign keys say: MySQL from 9.6 on.
    pub fn keeps_referring_rows(self) -> bool {
        self == MYSQL_9_7
    }

    /// `OPTIMIZE TABLE` beside changes of the table can wait for itself, for ever (seen with 10.1.23).
    pub fn has_old_optimize(self) -> bool {
        self.0 == "mariadb-10.1"
    }

    /// Tables WITH SYSTEM VERSIONING.
    pub fn has_history(self) -> bool {
        self.is_mariadb() && !["mariadb-10.1", "mariadb-10.2"].contains(&self.0)
    }

    /// It has no TLS that is spoken today, and passwords that want some, or the server's key.
    pub fn has_old_tls(self) -> bool {
        self.0 == "mysql-8.0.15"
    }

    /// The tree whose command-line client can talk to this server.
    pub fn client_tree(self) -> &'static str {
        if self.has_new_words() { "mysql-9.7" } else { "mariadb-10.11" }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Kind> {
        let known = NAMES.into_iter().find(|known| *known == name);
        known.map(Kind).with_context(|| format!("unknown server {name}; known: {}", NAMES.join(", ")))
    }
}

/// A running (or stopped) instance. Dropping it ends the process and removes its folder, unless `HEDDLE_KEEP` is set, or somebody keeps it for the next test.
#[derive(Debug)]
pub struct Server {
    pub kind: Kind,
    pub port: u16,
    dir: Option<tempfile::TempDir>,
    keeper: Option<Arc<dyn ServerKeeper>>,
    /// It was stopped, killed or started again.
    was_down: AtomicBool,
}

/// Who takes a server back that a test needs no more.
pub trait ServerKeeper: fmt::Debug + Send + Sync {
    fn take_back(&self, server: Server);
}

/// `scripts/servers` with these arguments.
pub fn servers_script(arguments: &[&str]) -> Command {
    let mut command = Command::new(repository().join("scripts/servers"));
    command.args(arguments);
    // Nodes of a cluster look for the script of their state transfer there.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = repository().join("e2e/tools/galera");
    let folders = std::iter::once(tools).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(folders) {
        command.env("PATH", path);
    }
    command
}

impl Server {
    /// Starts an instance with a fresh data folder; `options` come after (and so override) the defaults.
    pub fn start(kind: Kind, options: &[&str]) -> Result<Server> {
        Server::start_from(kind, options, None)
    }

    /// As `start`, on a copy of another (stopped) instance's data folder.
    pub fn start_from(kind: Kind, options: &[&str], data: Option<&Path>) -> Result<Server> {
        Server::start_below(&folder()?, kind, options, data)
    }

    /// With its folder in this one.
    pub fn start_below(base: &Path, kind: Kind, options: &[&str], data: Option<&Path>) -> Result<Server> {
        let mut last_error = None;
        for _ in 0..START_ATTEMPTS {
            let dir = tempfile::Builder::new().prefix("heddle-e2e-").tempdir_in(base)?;
            if let Some(data) = data {
                let copied = Command::new("cp")
                    .args(["-a", "--reflink=auto"])
                    .arg(data)
                    .arg(dir.path().join("data"))
                    .status()?;
                ensure!(copied.success(), "copying {}", data.display());
                // Two servers with one id cannot replicate from each other.
                let _ = std::fs::remove_file(dir.path().join("data/auto.cnf"));
            }
            let port = free_port()?;
            let output = servers_script(&["start", &kind.to_string()])
                .arg(dir.path())
                .arg(port.to_string())
                .args(options)
                .output()
                .context("running scripts/servers")?;
            if output.status.success() {
                return Ok(Server { kind, port, dir: Some(dir), keeper: None, was_down: AtomicBool::new(false) });
            }
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let again = text.contains("Address already in use");
            last_error = Some(text);
            if !again {
                break;
            }
        }
        bail!("could not start {kind}: {}", last_error.unwrap_or_default())
    }

    /// Two instances at once: starting is mostly waiting.
    pub fn start_two(first: (Kind, &[&str]), second: (Kind, &[&str])) -> Result<(Server, Server)> {
        at_once(first, second, &|(kind, options)| Server::start(kind, options))
    }

    /// It goes to the keeper when it is dropped.
    #[must_use]
    pub fn kept_by(mut self, keeper: Arc<dyn ServerKeeper>) -> Server {
        self.keeper = Some(keeper);
        self
    }

    pub fn dir(&self) -> &Path {
        self.dir.as_ref().map_or(Path::new("/nonexistent"), tempfile::TempDir::path)
    }

    pub fn data(&self) -> PathBuf {
        self.dir().join("data")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir().join("socket")
    }

    /// The binary logs' index file: a SOURCE made of files.
    pub fn binlog_index(&self) -> PathBuf {
        self.data().join("binlog.index")
    }

    /// Its binary logs, the oldest first.
    pub fn binlogs(&self) -> Result<Vec<PathBuf>> {
        let index = std::fs::read_to_string(self.binlog_index())?;
        Ok(index.lines().map(|line| self.data().join(line.trim_start_matches("./"))).collect())
    }

    /// The instance as heddle's SOURCE or TARGET; the password goes through the environment.
    pub fn url(&self) -> String {
        if self.kind.has_old_tls() { self.plain_url() } else { self.address() }
    }

    fn address(&self) -> String {
        format!("mysql://{USER}@127.0.0.1:{}", self.port)
    }

    /// The same without TLS, as native replication connects unless it is told otherwise. A MySQL that has just started has no account in its cache.
    pub fn plain_url(&self) -> String {
        format!("{}?ssl-mode=disabled&get-server-public-key=true", self.address())
    }

    pub fn error_log(&self) -> String {
        std::fs::read(self.dir().join("error.log"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    pub fn pid(&self) -> Option<i32> {
        std::fs::read_to_string(self.dir().join("pid")).ok()?.trim().parse().ok()
    }

    /// A clean shutdown; returns when the process is gone.
    pub fn stop(&self) -> Result<()> {
        self.script(&["stop"], &[])
    }

    /// SIGKILL, as a crash of the process; returns when it is gone.
    pub fn kill(&self) -> Result<()> {
        self.was_down.store(true, Ordering::Relaxed);
        let pid = self.pid().context("the server does not run")?;
        let process = rustix::process::Pid::from_raw(pid).context("the server's process id")?;
        kill_process(process, Signal::KILL).with_context(|| format!("kill {pid}"))?;
        while Path::new(&format!("/proc/{pid}/stat")).exists() && !is_zombie(pid) {
            thread::sleep(Duration::from_millis(5));
        }
        std::fs::remove_file(self.dir().join("pid"))?;
        Ok(())
    }

    /// Starts again on the same data and port, with the first options and these.
    pub fn restart(&self, options: &[&str]) -> Result<()> {
        self.script(&["restart"], options)
    }

    fn script(&self, command: &[&str], options: &[&str]) -> Result<()> {
        self.was_down.store(true, Ordering::Relaxed);
        let output = servers_script(command).arg(self.dir()).args(options).output()?;
        ensure!(output.status.success(), "servers {command:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

/// Two servers, each from what it is to be.
pub fn at_once<T: Send>(first: T, second: T, start: &(dyn Fn(T) -> Result<Server> + Sync)) -> Result<(Server, Server)> {
    thread::scope(|scope| {
        let other = scope.spawn(|| start(second));
        let one = start(first);
        let two = other.join().map_err(|_| anyhow::anyhow!("the thread that starts a server ended"))?;
        Ok((one?, two?))
    })
}

/// Several servers as the nodes of one TARGET or SOURCE.
pub fn url_of(nodes: &[Server]) -> String {
    let addresses: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
    format!("mysql://{USER}@{}", addresses.join(","))
}

/// A free port below those that the kernel gives to outgoing connections: one of these could take the port of a server
/// that is down for a moment, and a client that tries to get back to that server could even connect to itself.
pub fn free_port() -> Result<u16> {
    for _ in 0..PORT_ATTEMPTS {
        let port = rand::random_range(10_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port")
}

fn is_zombie(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z"))
}

/// Where instances have their folders.
pub fn folder() -> Result<PathBuf> {
    let base = std::env::var_os("HEDDLE_E2E_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    std::fs::create_dir_all(&base)?;
    Ok(base)
}

impl Drop for Server {
    fn drop(&mut self) {
        let is_kept = std::env::var_os("HEDDLE_KEEP").is_some();
        if let Some(keeper) = self.keeper.take()
            && !self.was_down.load(Ordering::Relaxed)
            // Whoever keeps servers wants to see them as the test left them.
            && !is_kept
            && !thread::panicking()
            && self.pid().is_some()
        {
            let (kind, port, dir) = (self.kind, self.port, self.dir.take());
            return keeper.take_back(Server { kind, port, dir, keeper: None, was_down: AtomicBool::new(false) });
        }
        if self.pid().is_some() {
            let _ = self.kill();
        }
        if is_kept && let Some(dir) = self.dir.take() {
            eprintln!("kept {} in {}", self.kind, dir.keep().display());
        }
    }
}
