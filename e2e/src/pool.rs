//! Servers that serve one test after the other: each is made as new in between, and is ended where it does not get so.

use crate::patience::until_within;
use crate::repository;
use crate::server::{self, Kind, Server, ServerKeeper};
use anyhow::{Context, Result, ensure};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use wire::Connection;

/// So many wait for their next test. A server takes some hundred megabytes.
const IDLE_MAX: usize = 6;
/// Sessions of a test may still be on their way out.
const SESSIONS_END_WITHIN: Duration = Duration::from_secs(2);

/// Tables of `mysql` that say nothing about how a server is set up.
const VOLATILE_TABLES: &str = "'general_log','slow_log','gtid_executed','gtid_slave_pos','innodb_table_stats','innodb_index_stats','slave_master_info',\
    'slave_relay_log_info','slave_worker_info','replication_asynchronous_connection_failover','replication_asynchronous_connection_failover_managed',\
    'replication_group_member_actions','replication_group_configuration_version','table_stats','column_stats','index_stats','transaction_registry'";
/// Variables that follow the log.
const VOLATILE_VARIABLES: [&str; 6] =
    ["gtid_executed", "gtid_purged", "gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos", "gtid_slave_pos"];
const NO_SUCH_SESSION: u16 = 1094;
/// Of a server's folder.
const PARTS: [&str; 9] = ["server.pid", "data", "tmp", "socket", "socket.lock", "pid", "error.log", "name", "options"];
const SERVERS_OWN: &str = "'mysql','sys','information_schema','performance_schema'";

/// Servers of one test program.
#[derive(Debug, Default)]
pub struct ServerPool {
    idle: Mutex<Vec<Idle>>,
    started: AtomicUsize,
    used_again: AtomicUsize,
    folder: Mutex<Option<GuardedFolder>>,
}

#[derive(Debug)]
struct GuardedFolder {
    path: PathBuf,
    /// It waits for the end of its input, which this process holds.
    _guard: Child,
}

#[derive(Debug)]
struct Idle {
    server: Server,
    options: Vec<String>,
    setup: Vec<String>,
}

/// A server that a test has.
#[derive(Debug)]
struct Loan {
    pool: Arc<ServerPool>,
    options: Vec<String>,
    setup: Vec<String>,
}

static SHARED: LazyLock<Arc<ServerPool>> = LazyLock::new(Arc::default);

/// The pool of this test program.
pub fn shared() -> &'static Arc<ServerPool> {
    &SHARED
}

impl ServerPool {
    /// A server with these options, as new.
    pub fn take(self: &Arc<Self>, kind: Kind, options: &[&str]) -> Result<Server> {
        if std::env::var_os("HEDDLE_KEEP").is_some() {
            return Server::start(kind, options);
        }
        let found = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let at = idle.iter().position(|idle| idle.server.kind == kind && idle.options == options);
            at.map(|at| idle.remove(at))
        };
        let Idle { server, options, setup } = if let Some(idle) = found {
            self.used_again.fetch_add(1, Ordering::Relaxed);
            idle
        } else {
            self.started.fetch_add(1, Ordering::Relaxed);
            let server = Server::start_below(&self.folder()?, kind, options, None)?;
            let setup = setup(&mut server.connect()?)?;
            Idle { server, options: options.iter().map(|&option| option.to_owned()).collect(), setup }
        };
        Ok(server.kept_by(Arc::new(Loan { pool: Arc::clone(self), options, setup })))
    }

    /// Two at once: starting is mostly waiting.
    pub fn take_two(self: &Arc<Self>, first: (Kind, &[&str]), second: (Kind, &[&str])) -> Result<(Server, Server)> {
        server::at_once(first, second, &|(kind, options)| self.take(kind, options))
    }

    /// Where its servers are. When this process ends, in whatever way, they are ended, and the folder goes.
    fn folder(&self) -> Result<PathBuf> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*folder {
            return Ok(folder.path.clone());
        }
        let path = tempfile::Builder::new().prefix("pool-").tempdir_in(server::folder()?)?.keep();
        let guard = Command::new("bash")
            .args(["-c", r#"cat >/dev/null; "$0" sweep "$1"; rm -rf "$1" || { sleep 1; rm -rf "$1"; }"#])
            .arg(repository().join("scripts/servers"))
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("the guard of the pool's servers")?;
        *folder = Some(GuardedFolder { path: path.clone(), _guard: guard });
        Ok(path)
    }

    /// Ends those that wait, and says how many there were.
    pub fn end(&self) -> String {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let (started, again) = (self.started.load(Ordering::Relaxed), self.used_again.load(Ordering::Relaxed));
        format!("{started} servers were started, and used again {again} times")
    }

    fn give_back(&self, idle: Idle) {
        let mut waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(idle);
        let oldest = (waiting.len() > IDLE_MAX).then(|| waiting.remove(0));
        drop(waiting);
        drop(oldest);
    }
}

impl ServerKeeper for Loan {
    fn take_back(&self, server: Server) {
        let idle = Idle { server, options: self.options.clone(), setup: self.setup.clone() };
        match renew(&idle) {
            Ok(()) => self.pool.give_back(idle),
            Err(error) if std::env::var_os("HEDDLE_E2E_POOL").is_some() => {
                eprintln!("{} {:?} is not as new: {error:#}", idle.server.kind, idle.options);
            }
            Err(_) => {}
        }
    }
}

/// What a test can change of a server besides its schemas and its log.
fn setup(connection: &mut Connection) -> Result<Vec<String>> {
    let mut setup = Vec::new();
    // Whatever the server's `max_join_size` is.
    connection.execute("SET SESSION sql_big_selects=1")?;
    let mut add = |connection: &mut Connection, sql: &str| -> Result<()> {
        for row in connection.rows(sql)? {
            let first = row.text(0)?.unwrap_or_default().to_ascii_lowercase();
            if !VOLATILE_VARIABLES.contains(&first.as_str()) {
                setup.push(format!("{first} = {}", String::from_utf8_lossy(row.get(1).unwrap_or_default())));
            }
        }
        Ok(())
    };
    add(connection, "SHOW GLOBAL VARIABLES")?;
    add(connection, "SELECT PLUGIN_NAME, PLUGIN_STATUS FROM information_schema.PLUGINS")?;
    let tables = connection.rows(format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA='mysql' AND TABLE_TYPE='BASE TABLE' AND TABLE_NAME NOT IN ({VOLATILE_TABLES})"
    ))?;
    let mut names = Vec::new();
    for row in &tables {
        names.push(format!("mysql.`{}`", row.text(0)?.unwrap_or_default()));
    }
    add(connection, &format!("CHECKSUM TABLE {}", names.join(", ")))?;
    Ok(setup)
}

fn renew(idle: &Idle) -> Result<()> {
    ensure!(idle.server.pid().is_some(), "it does not run");
    let mut connection = idle.server.connect()?;
    connection.execute("SET SESSION sql_big_selects=1")?;
    let others = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID<>CONNECTION_ID() AND USER NOT IN ('system user','event_scheduler')";
    let (replica, log) = if idle.server.kind.lacks_old_words() {
        (["STOP REPLICA", "RESET REPLICA ALL"], "RESET BINARY LOGS AND GTIDS")
    } else {
        (["STOP SLAVE", "RESET SLAVE ALL"], "RESET MASTER")
    };
    for statement in replica {
        connection.execute(statement)?;
    }
    // The log's dump to a client that has gone ends with the next event that the source has for it.
    for row in connection.rows(others.replacen("COUNT(*)", "ID", 1))? {
        if let Err(error) = connection.execute(format!("KILL {}", row.text(0)?.unwrap_or_default())) {
            ensure!(error.code() == Some(NO_SUCH_SESSION), "{error}");
        }
    }
    until_within(SESSIONS_END_WITHIN, others, || Ok(connection.scalar(others)?.as_deref() == Some("0")))?;
    ensure!(connection.rows("XA RECOVER")?.is_empty(), "there are prepared transactions");
    connection.execute("SET SESSION foreign_key_checks=0, sql_log_bin=0")?;
    let schemas = connection.rows(format!(
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ({SERVERS_OWN})"
    ))?;
    for row in &schemas {
        let name = row.text(0)?.unwrap_or_default().replace('`', "``");
        connection.execute(format!("DROP DATABASE `{name}`"))?;
    }
    connection.execute(log)?;
    if idle.server.kind.is_mariadb() {
        connection.execute("SET GLOBAL gtid_slave_pos=''")?;
    }
    if !idle.server.kind.is_mariadb() {
        // Passwords that it has seen are forgotten, as after a start.
        connection.execute("FLUSH PRIVILEGES")?;
    }
    let setup = setup(&mut connection)?;
    let differs = setup.iter().find(|line| !idle.setup.contains(line));
    ensure!(setup == idle.setup, "another setup: {differs:?}");
    for entry in std::fs::read_dir(idle.server.dir())? {
        let entry = entry?;
        // What tests have put there, such as relay logs.
        if PARTS.iter().any(|own| entry.file_name() == *own) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    ensure!(connection.scalar(others)?.as_deref() == Some("0"), "somebody has come back");
    Ok(())
}
