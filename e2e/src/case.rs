//! One folder per case: a workload on a real source, what heddle is told, and what must come of it.
//!
//! - `source.sql`: the workload, run by the stock client on a fresh source. `source.mariadb.sql` and
//!   `source.mysql.sql` are run after it (or alone) on that flavour only. Behind a line `-- as NAME` the account NAME goes on in a session of its
//!   own, with the password `secret`.
//! - `options`: lines `servers: NAME…` (default: both of `make test`); `since: NAME` and `until: NAME`, the first and the last
//!   version that knows what the case needs (`mariadb-10.6`, `mysql-8.0.21`), one line for each flavour that has a limit, and
//!   `except: NAME`, a server that can not be a source or a target of it for a reason of its own; `source: OPTION…` and
//!   `target: OPTION…` for the servers, `source.mariadb:`, `target.mysql:` and so on for one flavour, `run: files|live [HEDDLE OPTION…]`, one
//!   line per way to replicate (default: [`DEFAULT_RUNS`]); `errors: allowed`, the workload goes on behind a statement that fails.
//! - `expect`: lines `error: TEXT` (heddle must stop with a message that holds TEXT), `native: stops` (the servers' own replica stops as well: the
//!   target then holds what that one holds), `native` (the target holds what the servers' own replica holds, which is not what the source holds), or `equal` (the default: the target then holds what the source holds, and the same command again finds
//!   nothing to do). `sql: TEXT`, `sql.mysql: TEXT`, `sql.mariadb: TEXT`, `sql-preserve: TEXT`, `sql-preserve.mariadb: TEXT`: what comes instead with rows as SQL
//!   (`HEDDLE_E2E_ROWS=sql`; of that flavour; with `--gtids preserve`): a message that holds TEXT, `equal`, or `native`.

use crate::client::Errors;
use crate::pool::ServerPool;
use crate::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use crate::{checksum, heddle, native};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// How a case is replicated unless its options say otherwise: grouped from files, and live one by one in order.
pub const DEFAULT_RUNS: [&str; 2] = ["files", "live --grouping off --workers 4"];

/// Replicates each case with the servers' own replication instead: shows that the case itself is sound.
pub const NATIVE: &str = "native";

/// A case read from its folder.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub kinds: Vec<Kind>,
    pub runs: Vec<String>,
    folder: PathBuf,
    options: Vec<(String, String)>,
    limits: Vec<Limit>,
    error: Option<String>,
    native_stops: bool,
    /// A native replica's end is the right one, not the source's.
    as_native: bool,
    errors_allowed: bool,
    /// What comes of it with rows as SQL: which runs, and what.
    as_sql: Vec<(String, String)>,
}

/// A version that the servers for a case must have at least, or at most; or one that they must not have.
#[derive(Clone, Debug)]
struct Limit {
    mariadb: bool,
    version: Vec<u32>,
    wrong: Ordering,
}

impl Limit {
    /// `name`: as those of the servers, also of versions that nobody has here.
    fn read(name: &str, wrong: Ordering) -> Result<Self> {
        let read = || {
            let (flavour, version) = name.split_once('-')?;
            let mariadb = ["mysql", "mariadb"].iter().position(|known| *known == flavour)? == 1;
            let version: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
            Some(Self { mariadb, version: version.ok()?, wrong })
        };
        read().with_context(|| format!("options: expected mysql-8.0.21, mariadb-10.6 and the like, not '{name}'"))
    }

    fn allows(&self, kind: Kind) -> bool {
        kind.is_mariadb() != self.mariadb || kind.version().cmp(&self.version) != self.wrong
    }
}

/// All cases below a folder, by name.
pub fn cases(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            cases.push(read(&path).with_context(|| path.display().to_string())?);
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn read(folder: &Path) -> Result<Case> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let mut case = Case {
        name: folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        kinds: Vec::new(),
        runs: Vec::new(),
        folder: folder.to_path_buf(),
        options: Vec::new(),
        limits: Vec::new(),
        error: None,
        native_stops: false,
        as_native: false,
        errors_allowed: false,
        as_sql: Vec::new(),
    };
    for line in content_lines(&text("options")) {
        let (key, value) = line.split_once(':').with_context(|| format!("options: no ':' in '{line}'"))?;
        let value = value.trim();
        match key {
            "servers" => case.kinds = value.split_whitespace().map(str::parse).collect::<Result<_>>()?,
            "since" => case.limits.push(Limit::read(value, Ordering::Less)?),
            "except" => case.limits.push(Limit::read(value, Ordering::Equal)?),
            "until" => case.limits.push(Limit::read(value, Ordering::Greater)?),
            "run" => case.runs.push(value.to_owned()),
            "errors" if value == "allowed" => case.errors_allowed = true,
            "source" | "source.mariadb" | "source.mysql" | "target" | "target.mariadb" | "target.mysql" => {
                case.options.push((key.to_owned(), value.to_owned()));
            }
            _ => bail!("options: unknown key '{key}'"),
        }
    }
    for line in content_lines(&text("expect")) {
        match line.split_once(':') {
            Some(("error", message)) => case.error = Some(message.trim().to_owned()),
            Some((key, what)) if key.starts_with("sql") => {
                if std::env::var("HEDDLE_E2E_ROWS").is_ok_and(|rows| rows == "sql") {
                    case.as_sql.push((key.to_owned(), what.trim().to_owned()));
                }
            }
            Some(("native", what)) if what.trim() == "stops" => case.native_stops = true,
            None if line == "equal" => {}
            None if line == "native" => case.as_native = true,
            _ => bail!("expect: '{line}' not understood"),
        }
    }
    if case.kinds.is_empty() {
        case.kinds = vec![MARIADB_10_11, MYSQL_9_7];
    }
    if case.runs.is_empty() {
        case.runs = DEFAULT_RUNS.map(str::to_owned).to_vec();
    }
    Ok(case)
}

fn content_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

impl Case {
    /// The options for one end of this case: each line's words, split at blanks.
    fn server_options(&self, end: &str, kind: Kind) -> Vec<&str> {
        let flavoured = format!("{end}.{}", flavour(kind));
        let lines = self.options.iter().filter(|(key, _)| key == end || *key == flavoured);
        lines.flat_map(|(_, value)| value.split_whitespace()).collect()
    }

    fn workload(&self, kind: Kind) -> Result<Vec<Vec<u8>>> {
        let names = ["source.sql".to_owned(), format!("source.{}.sql", flavour(kind))];
        let files: Vec<PathBuf> =
            names.iter().map(|name| self.folder.join(name)).filter(|path| path.exists()).collect();
        ensure!(!files.is_empty(), "no source.sql for {kind}");
        files.iter().map(|path| Ok(std::fs::read(path)?)).collect()
    }

    /// Whether such a server can run it: it has the flavour of one that the case names, and a version that knows what the case needs.
    pub fn suits(&self, kind: Kind) -> bool {
        self.kinds.iter().any(|own| own.is_mariadb() == kind.is_mariadb())
            && self.limits.iter().all(|limit| limit.allows(kind))
    }

    /// Whether the target is to hold what the source holds in the end.
    pub fn ends_equal(&self) -> bool {
        self.error.is_none()
    }

    /// Whether the servers' own replication says how it ends.
    pub fn is_known_natively(&self) -> bool {
        self.ends_equal() || self.native_stops
    }

    /// Replicates what the source has made in one of the case's ways.
    pub fn check(&self, source: &Source, run: &str) -> Result<()> {
        let (flavour, keeps_gtids) = (flavour(source.kind), run.contains("--gtids preserve"));
        let is_of_run = |(key, _): &&(String, String)| {
            let (kind, of) = key.split_once('.').unwrap_or((key, flavour));
            of == flavour && (kind == "sql" || kind == "sql-preserve" && keeps_gtids)
        };
        if let Some((_, what)) = self.as_sql.iter().find(is_of_run).filter(|_| run != NATIVE) {
            let error = (!matches!(what.as_str(), "equal" | "native")).then(|| what.clone());
            let case =
                Case { as_sql: Vec::new(), error, native_stops: false, as_native: what == "native", ..self.clone() };
            return case.check(source, run);
        }
        let target_options = self.server_options("target", source.kind);
        let pool = &source.pool;
        let target = pool.take(source.kind, &target_options)?;
        let source = source.server()?;
        if run == NATIVE {
            native::native_replica(source, &target)?;
            if self.native_stops {
                return native::wait_stopped(&target);
            }
            native::wait_caught_up(source, &target)?;
            return if self.as_native { Ok(()) } else { checksum::assert_equal(source, &target) };
        }
        let (way, options) = run.split_once(' ').unwrap_or((run, ""));
        let from = match way {
            "files" => source.binlog_index().display().to_string(),
            "live" => source.url(),
            _ => bail!("options: unknown way to replicate '{way}'"),
        };
        let to = target.url();
        let relay = target.dir().join("relay").display().to_string();
        let mut arguments =
            vec!["replicate", "--from", &from, "--to", &to, "--json", "--until-end", "--relay-dir", &relay];
        arguments.extend(options.split_whitespace());
        let first = heddle::heddle(&arguments)?;
        if let Some(message) = &self.error {
            first.failed_with(message)?;
            return if self.native_stops { self.holds_what_native_holds(pool, source, &target) } else { Ok(()) };
        }
        let first = first.successful()?;
        ensure!(!first.was_stopped()?, "a signal from outside ended it: {first}");
        self.holds_what_it_should(pool, source, &target).with_context(|| first.to_string())?;
        let again = heddle::heddle(&arguments)?.successful().context("the same command again")?;
        ensure!(again.number("transactions")? == 0, "the same command again applied something: {again}");
        self.holds_what_it_should(pool, source, &target).context("after the same command again")
    }

    fn holds_what_it_should(&self, pool: &Arc<ServerPool>, source: &Server, target: &Server) -> Result<()> {
        if self.as_native {
            self.holds_what_native_holds(pool, source, target)
        } else {
            checksum::assert_equal(source, target)
        }
    }

    fn holds_what_native_holds(&self, pool: &Arc<ServerPool>, source: &Server, target: &Server) -> Result<()> {
        let replica = pool.take(source.kind, &self.server_options("target", source.kind))?;
        native::native_replica(source, &replica)?;
        if self.native_stops {
            native::wait_stopped(&replica)?;
        } else {
            native::wait_caught_up(source, &replica)?;
        }
        checksum::assert_equal(&replica, target).context("'source' is a native replica")
    }
}

/// What has made the workload of a case: for all of its runs, none of which changes it. Started by the first that needs it.
#[derive(Debug)]
pub struct Source {
    case: Case,
    kind: Kind,
    pool: Arc<ServerPool>,
    server: OnceLock<Result<Server, String>>,
}

impl Source {
    pub fn new(case: Case, kind: Kind, pool: Arc<ServerPool>) -> Self {
        Self { case, kind, pool, server: OnceLock::new() }
    }

    fn server(&self) -> Result<&Server> {
        let server = self.server.get_or_init(|| self.start().map_err(|error| format!("{error:#}")));
        server.as_ref().map_err(|error| anyhow!("{error}"))
    }

    fn start(&self) -> Result<Server> {
        let server = self.pool.take(self.kind, &self.case.server_options("source", self.kind))?;
        for sql in self.case.workload(self.kind)? {
            for (account, sql) in sessions(&sql) {
                let errors = if self.case.errors_allowed { Errors::Allowed } else { Errors::Fatal };
                server.run_script_as(account, sql, errors).context("the workload")?;
            }
        }
        Ok(server)
    }
}

/// The parts of a workload, and the account of each if it is not the usual one.
fn sessions(sql: &[u8]) -> Vec<(Option<&str>, &[u8])> {
    let mut parts = Vec::new();
    let (mut account, mut start, mut at) = (None, 0, 0);
    for line in sql.split_inclusive(|&byte| byte == b'\n') {
        let name = line.strip_prefix(b"-- as ").and_then(|name| std::str::from_utf8(name).ok());
        if let Some(name) = name {
            parts.push((account, sql.get(start..at).unwrap_or_default()));
            (account, start) = (Some(name.trim()), at);
        }
        at += line.len();
    }
    parts.push((account, sql.get(start..).unwrap_or_default()));
    parts
}

fn flavour(kind: Kind) -> &'static str {
    if kind.is_mariadb() { "mariadb" } else { "mysql" }
}
