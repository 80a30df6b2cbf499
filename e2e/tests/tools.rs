//! The tools that read a source's log, or ask it questions, run on a source and on Heddle in front of it: what they print is the same. `scripts/tools` brings them.
//!
//! One that can not be had on a machine is named, and its row of the table in docs/binlog-server.md stays as it is.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::made_table::MadeTable;
use e2e::native::{position, wait_caught_up};
use e2e::repository;
use e2e::served::{Ask, By, Served, attach, connect};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, Server, USER, free_port, servers_script};
use e2e::workload::{Size, Workload};
use wire::{Connection, Error};

const STUCK_AFTER: Duration = Duration::from_secs(120);
/// `scripts/tools`: it is not in the cache.
const UNAVAILABLE: i32 = 69;
const SIZE: Size = Size {
    tables: 3,
    sessions: 2,
    transactions: 40,
    definitions_percent: 0,
    xa: false,
    replace: false,
    temporary: false,
    same_flavour: true,
    unlogged: false,
};
const HEAD: &str = "| Tool | MySQL | MariaDB | |\n|---|---|---|---|";

fn tools(arguments: &[&str]) -> Command {
    let mut command = Command::new(repository().join("scripts/tools"));
    command.arg("run").args(arguments);
    command
}

/// What it prints; none where it is not in the cache.
fn printed(arguments: &[&str]) -> Result<Option<String>> {
    let output = tools(arguments).output()?;
    if output.status.code() == Some(UNAVAILABLE) {
        eprintln!("skipped: {}", arguments[0]);
        return Ok(None);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{arguments:?}: {errors}");
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// What was seen of a tool at each vendor.
#[derive(Default)]
struct Seen {
    rows: Vec<(String, [&'static str; 2], String)>,
}

impl Seen {
    fn add(&mut self, tool: &str, kind: Kind, note: &str) {
        let at = usize::from(kind.is_mariadb());
        match self.rows.iter_mut().find(|(known, _, _)| known == tool) {
            Some(row) => row.1[at] = "yes",
            None => {
                let mut of = ["", ""];
                of[at] = "yes";
                self.rows.push((tool.to_owned(), of, note.to_owned()));
            }
        }
    }

    fn lines(self) -> Vec<(String, String)> {
        let line = |(tool, [mysql, mariadb], note): (String, [&'static str; 2], String)| {
            let line = format!("| {tool} | {mysql} | {mariadb} | {note} |");
            (tool, line)
        };
        self.rows.into_iter().map(line).collect()
    }
}

#[test]
#[ignore = "long: scripts/nightly tools"]
fn tools_get_what_the_source_gives_them() -> Result<()> {
    let mut seen = Seen::default();
    for kind in [MYSQL_9_7, "mysql-8.0.15".parse()?, MARIADB_10_11] {
        eprintln!("{kind}");
        let (source, replica) = Server::start_two(
            (kind, &["--max-binlog-size=65536"]),
            (kind, &["--report-host=replica", "--report-port=3306"]),
        )?;
        transactions(&source)?;
        let dir = tempfile::tempdir()?;
        let served = Served::start(source.port, &dir.path().join("mirror"), free_port()?, &[])?;
        attach(&replica, Ask::new(served.port, By::Gtid))?;
        wait_caught_up(&source, &replica)?;
        readers(&source, &served, &mut seen).with_context(|| kind.to_string())?;
        drivers(&source, &served, &mut seen).with_context(|| kind.to_string())?;
        exporter(&source, &served, &mut seen).with_context(|| kind.to_string())?;
        orchestrator(&source, &served, &mut seen).with_context(|| kind.to_string())?;
        // It knows no word of 8.4 and later.
        if kind != MYSQL_9_7 {
            heartbeat(&source, &replica, &served, &mut seen).with_context(|| kind.to_string())?;
        }
        served.kill()?;
    }
    MadeTable::new("binlog-server.md", "tools").settle(HEAD, &seen.lines())
}

/// Such as all tools can read: python-mysql-replication does not know all that 9.7 writes beside a statement.
fn transactions(source: &Server) -> Result<()> {
    source.execute("CREATE DATABASE tools; CREATE TABLE tools.t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(40), b DATETIME(3), c DECIMAL(12, 4), d TEXT)")?;
    let mut sql = String::new();
    for number in 0..120 {
        sql.push_str(&format!(
            "INSERT INTO tools.t (a, b, c, d) VALUES ('row {number}', NOW(3), {number}.25, REPEAT('d', {number})), ('other', NULL, -1, NULL);"
        ));
        sql.push_str("UPDATE tools.t SET c = c + 1 WHERE id % 7 = 1;");
        sql.push_str(&format!(
            "BEGIN; DELETE FROM tools.t WHERE id = {}; INSERT INTO tools.t (a) VALUES ('again'); COMMIT;",
            number * 2
        ));
        if number % 40 == 20 {
            sql.push_str("FLUSH BINARY LOGS;");
        }
    }
    source.execute(&sql)
}

/// Every event, from both, by position and by GTID.
fn readers(source: &Server, served: &Served, seen: &mut Seen) -> Result<()> {
    let vendor = if source.kind.is_mariadb() { "mariadb" } else { "mysql" };
    let (file, offset) = position(source)?;
    let offset = offset.to_string();
    // MariaDB's clients begin behind a transaction.
    let first =
        if source.kind.is_mariadb() { format!("0-{}-1", source.scalar("SELECT @@server_id")?) } else { String::new() };
    for (tool, note) in [
        ("python-mysql-replication", "1.0.17 (PyPI). Every event, by position and by GTID"),
        (
            "mysql-binlog-connector-java",
            "0.30.1 (Maven Central; Debezium and Maxwell use it). Every event, by position and by GTID",
        ),
        (
            "go-mysql",
            "its newest commit. Every event, by position and by GTID. Its `canal`: [clients that ask more](#clients-that-ask-more)",
        ),
    ] {
        for by in ["position", "gtid"] {
            let run = |port: u16| {
                printed(&[tool, "127.0.0.1", &port.to_string(), USER, PASSWORD, vendor, by, &file, &offset, &first])
            };
            let (Some(theirs), Some(ours)) = (run(source.port)?, run(served.port)?) else { continue };
            ensure!(theirs.lines().count() > 100, "{tool} {by} read little:\n{theirs}");
            let differs = theirs.lines().zip(ours.lines()).find(|(theirs, ours)| theirs != ours);
            ensure!(theirs == ours, "{tool} {by}: {differs:?}");
            seen.add(&format!("`{tool}`"), source.kind, note);
        }
    }
    Ok(())
}

/// What Debezium and Maxwell ask by JDBC, and what the drivers ask by themselves.
fn drivers(source: &Server, served: &Served, seen: &mut Seen) -> Result<()> {
    let vendor = if source.kind.is_mariadb() { "mariadb" } else { "mysql" };
    let run = |port: u16| {
        printed(&[
            "jdbc",
            "127.0.0.1",
            &port.to_string(),
            USER,
            PASSWORD,
            vendor,
            "SHOW VARIABLES LIKE 'server_id'",
            "SELECT @@server_id",
            "SHOW GLOBAL VARIABLES LIKE 'binlog_checksum'",
            "SHOW MASTER STATUS",
            "SHOW BINARY LOG STATUS",
            "SHOW BINARY LOGS",
            "SELECT @@GTID_MODE",
            "SHOW GLOBAL VARIABLES LIKE 'gtid_purged'",
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_format', 'binlog_row_image')",
            "SELECT @@version_comment LIMIT 1",
        ])
    };
    let (Some(theirs), Some(ours)) = (run(source.port)?, run(served.port)?) else { return Ok(()) };
    // The MariaDB driver also prints the text of an error.
    let plain = |text: &str| {
        text.lines().filter(|line| !line.contains("WARN")).map(|line| format!("{line}\n")).collect::<String>()
    };
    ensure!(plain(&theirs) == plain(&ours), "JDBC:\n{theirs}\n{ours}");
    seen.add(
        "JDBC: Connector/J, MariaDB's driver",
        source.kind,
        "9.7.0, 3.5.8. What Debezium and Maxwell ask before they read; snapshots of rows need the tables: not here",
    );
    Ok(())
}

/// mysqld_exporter on both: the collectors that are about logs and replication succeed, and have the source's numbers.
fn exporter(source: &Server, served: &Served, seen: &mut Seen) -> Result<()> {
    let scrape = |port: u16| -> Result<Option<String>> {
        let listen = free_port()?;
        let mut child = tools(&["mysqld_exporter"])
            .args([format!("--web.listen-address=127.0.0.1:{listen}")])
            .args([
                "--collect.slave_status",
                "--collect.slave_hosts",
                "--collect.binlog_size",
                "--collect.global_status",
            ])
            .args([
                "--collect.global_variables",
                "--no-collect.info_schema.innodb_cmp",
                "--no-collect.info_schema.innodb_cmpmem",
            ])
            .env("DATA_SOURCE_NAME", format!("{USER}:{PASSWORD}@(127.0.0.1:{port})/"))
            .stderr(Stdio::null())
            .spawn()?;
        let started = Instant::now();
        let text = loop {
            if child.try_wait()?.is_some_and(|status| status.code() == Some(UNAVAILABLE)) {
                return Ok(None);
            }
            if let Ok(mut tcp) = TcpStream::connect(("127.0.0.1", listen)) {
                tcp.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
                let mut text = String::new();
                tcp.read_to_string(&mut text)?;
                break text;
            }
            ensure!(started.elapsed() < STUCK_AFTER, "mysqld_exporter does not listen");
            thread::sleep(Duration::from_millis(50));
        };
        child.kill()?;
        child.wait()?;
        Ok(Some(text))
    };
    let (Some(theirs), Some(ours)) = (scrape(source.port)?, scrape(served.port)?) else { return Ok(()) };
    let has = |text: &str, line: &str| text.lines().any(|known| known == line);
    let collected = |text: &str, collector: &str| {
        has(text, &format!("mysql_exporter_collector_success{{collector=\"collect.{collector}\"}} 1"))
    };
    for collector in ["global_status", "global_variables", "binlog_size", "slave_hosts", "slave_status"] {
        let (there, here) = (collected(&theirs, collector), collected(&ours, collector));
        // The source is no replica. MySQL 8.4 and later have other words than this version of the exporter.
        ensure!(there == here, "collect.{collector}: {there} at the source, {here} at heddle");
    }
    ensure!(has(&ours, "mysql_up 1"), "{ours}");
    let value = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name).map(str::trim).map(str::to_owned))
    };
    for name in [
        "mysql_binlog_files",
        "mysql_binlog_file_number",
        "mysql_binlog_size_bytes",
        "mysql_global_variables_server_id",
        "mysql_global_variables_log_bin",
    ] {
        ensure!(
            value(&ours, name) == value(&theirs, name),
            "{name}: {:?} is not {:?}",
            value(&ours, name),
            value(&theirs, name)
        );
    }
    if source.kind != MYSQL_9_7 {
        let running = |thread: &str| {
            let name = format!("mysql_slave_status_slave_{thread}_running{{");
            ours.lines()
                .find(|line| line.starts_with(&name))
                .and_then(|line| line.rsplit(' ').next())
                .map(str::to_owned)
        };
        ensure!(running("io").as_deref() == Some("1") && running("sql").as_deref() == Some("0"), "{ours}");
    }
    seen.add("`mysqld_exporter`", source.kind, "0.14.0 (Debian). With `--no-collect.info_schema.innodb_cmp --no-collect.info_schema.innodb_cmpmem`, which need tables. Alert on `slave_io_running`: there is no applier");
    Ok(())
}

/// The questions of orchestrator's `ReadTopologyInstance`, one after the other.
fn orchestrator(source: &Server, served: &Served, seen: &mut Seen) -> Result<()> {
    let (mut ours, mut theirs) = (served.connected()?, connect(source.port, PASSWORD)?);
    let cells = |connection: &mut Connection, sql: &str| -> Result<Result<Vec<Vec<String>>, u16>> {
        match connection.rows(sql) {
            Ok(rows) => {
                let line = |row: &wire::Row| {
                    (0..row.len()).map(|at| row.text(at).ok().flatten().unwrap_or("NULL").to_owned()).collect()
                };
                Ok(Ok(rows.iter().map(line).collect()))
            }
            Err(Error::Server { code, .. }) => Ok(Err(code)),
            Err(error) => Err(error.into()),
        }
    };
    for sql in [
        "show variables like 'maxscale%'",
        "show global variables like 'rpl_semi_sync_%'",
        "select @@global.server_id, @@global.version, @@global.version_comment, @@global.binlog_format, @@global.log_bin",
        "select @@global.log_slave_updates",
        "show master status",
        "select @@global.gtid_mode, @@global.server_uuid, @@global.gtid_executed, @@global.gtid_purged, @@global.binlog_row_image",
        "select @@global.server_uuid",
        "select ifnull(NULL, 'x'), 'TABLE' = 'TABLE', 'FILE' = 'TABLE'",
        "show binary logs",
        "show slave hosts",
        "select substring_index('host:123', ':', 1) as slave_hostname from information_schema.processlist where command IN ('no such')",
    ] {
        let (here, there) = (cells(&mut ours, sql)?, cells(&mut theirs, sql)?);
        if sql == "show slave hosts" && source.kind == MYSQL_9_7 {
            ensure!(here == there && here.is_err(), "{sql}: {here:?} is not {there:?}");
            continue;
        }
        // The source's replica is Heddle, and Heddle's is the replica.
        if sql == "show slave hosts" {
            ensure!(
                here.as_ref().is_ok_and(|rows| rows.len() == 1 && rows[0][1] == "replica" && rows[0][2] == "3306"),
                "{sql}: {here:?}"
            );
            continue;
        }
        // Semi-synchronous replicas may attach to Heddle, whatever the source has.
        if sql.contains("rpl_semi_sync") {
            let enabled = |rows: &Vec<Vec<String>>| {
                rows.iter().any(|row| row[0].ends_with("_enabled") && !row[0].contains("replica") && row[1] == "ON")
            };
            ensure!(here.as_ref().is_ok_and(enabled), "{sql}: {here:?}");
            continue;
        }
        ensure!(here == there, "{sql}: {here:?} is not {there:?}");
    }
    let hosts = cells(
        &mut ours,
        "\n      \tselect\n      \t\tsubstring_index(host, ':', 1) as slave_hostname\n      \tfrom\n      \t\tinformation_schema.processlist\n      \twhere\n          command IN ('Binlog Dump', 'Binlog Dump GTID')\n",
    )?;
    ensure!(hosts == Ok(vec![vec!["127.0.0.1".to_owned()]]), "{hosts:?}");
    let sql = "select @@global.hostname, ifnull(@@global.report_host, ''), @@global.read_only";
    let own = cells(&mut ours, sql)?;
    ensure!(own.as_ref().is_ok_and(|rows| rows[0][2] == "1" && !rows[0][0].is_empty()), "{own:?}");
    let status = if source.kind == MYSQL_9_7 { "show replica status" } else { "show slave status" };
    let rows = ours.rows(status)?;
    ensure!(rows.len() == 1, "{status}: {} rows", rows.len());
    seen.add("orchestrator's questions", source.kind, "shown with its position and its replicas, as an intermediate server whose applier is stopped; versions of before 8.4: it knows no other words");
    Ok(())
}

/// pt-heartbeat's rows go through to the replica; at Heddle itself there are no tables.
fn heartbeat(source: &Server, replica: &Server, served: &Served, seen: &mut Seen) -> Result<()> {
    let at = |port: u16, more: &[&str]| -> Result<std::process::Output> {
        let port = port.to_string();
        let base = [
            "pt-heartbeat",
            "--host",
            "127.0.0.1",
            "--port",
            &port,
            "--user",
            USER,
            "--password",
            PASSWORD,
            "-D",
            "beats",
        ];
        Ok(tools(&[&base[..], more].concat()).output()?)
    };
    source.execute("CREATE DATABASE beats")?;
    // The old client has no key for caching_sha2: a login of ours puts the account into the cache.
    connect(source.port, PASSWORD)?.ping()?;
    let id = source.scalar("SELECT @@server_id")?;
    let written = at(source.port, &["--create-table", "--update", "--run-time", "3", "--interval", "1"])?;
    if written.status.code() == Some(UNAVAILABLE) {
        return Ok(());
    }
    ensure!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    wait_caught_up(source, replica)?;
    connect(replica.port, PASSWORD)?.ping()?;
    let checked = at(replica.port, &["--check", "--master-server-id", &id])?;
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    ensure!(text.trim().parse::<f64>().is_ok(), "{text}{}", String::from_utf8_lossy(&checked.stderr));
    let refused = at(served.port, &["--check", "--master-server-id", &id])?;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(!refused.status.success() && text.contains("doesn't yet support"), "{text}");
    seen.add("`pt-heartbeat`", source.kind, "3.2.1 (Debian; versions of before 8.4: it knows no other words). Its rows go through to the replicas: run it at the source and at a replica. At Heddle itself: error 1235");
    Ok(())
}

/// The stock tools of each version that has them fetch files, raw and for ever, and stop when they are told to.
#[test]
#[ignore = "long: scripts/nightly tools"]
fn mysqlbinlog_of_every_version() -> Result<()> {
    let mut seen = Seen::default();
    for (kind, tools) in [
        (MYSQL_9_7, &["mysql-9.7"][..]),
        // It reads nothing of a later version than 8.
        ("mysql-5.6.14".parse()?, &["mysql-5.6.14"]),
        (MARIADB_10_11, &["mariadb-10.11", "mariadb-10.1", "mariadb-10.2", "mariadb-11.4", "mariadb-11.8"]),
    ] {
        let source = Server::start(kind, &["--max-binlog-size=65536"])?;
        Workload::new(7, SIZE, kind).run(&source)?;
        source.execute("FLUSH BINARY LOGS")?;
        let dir = tempfile::tempdir()?;
        let served = Served::start(source.port, &dir.path().join("mirror"), free_port()?, &[])?;
        for tool in tools {
            let name = if tool.starts_with("mariadb-1") && *tool != "mariadb-10.1" && *tool != "mariadb-10.2" {
                "mariadb-binlog"
            } else {
                "mysqlbinlog"
            };
            let raw = dir.path().join(format!("raw-{tool}"));
            std::fs::create_dir(&raw)?;
            match fetched(&source, &served, tool, &raw) {
                Ok(()) => {
                    let version = tool.replace("mysql-", "").replace("mariadb-", "");
                    seen.add(&format!("`{name}` {version}"), kind, "`--raw --stop-never`: equal files");
                }
                Err(error) if error.to_string().contains("has no mysqlbinlog") => eprintln!("{tool}: {error}"),
                Err(error) => return Err(error.context(*tool)),
            }
        }
        served.kill()?;
    }
    MadeTable::new("binlog-server.md", "tools").settle(HEAD, &seen.lines())
}

fn fetched(source: &Server, served: &Served, tool: &str, raw: &Path) -> Result<()> {
    let mut command = servers_script(&["run", tool, "mysqlbinlog"]);
    command
        .args(["--no-defaults", "--read-from-remote-server", "--host=127.0.0.1", "--raw", "--stop-never"])
        .args([format!("--port={}", served.port), "--user=heddle".to_owned(), "--password=heddle".to_owned()])
        .arg(format!("--result-file={}/", raw.display()));
    match tool {
        "mysql-9.7" => drop(command.arg("--ssl-mode=DISABLED").arg("--connection-server-id=99")),
        "mariadb-11.4" | "mariadb-11.8" => drop(command.arg("--skip-ssl")),
        _ => {}
    }
    let log = std::fs::File::create(raw.with_extension("log"))?;
    let mut child = command.arg("binlog.000001").stderr(log.try_clone()?).stdout(log).spawn()?;
    let logs = source.binary_logs()?;
    let started = Instant::now();
    let done = loop {
        let all = logs.iter().take(logs.len() - 1).all(|log| {
            let here = log.file_name().and_then(|name| std::fs::read(raw.join(name)).ok());
            here.is_some() && here == std::fs::read(log).ok()
        });
        if all {
            break Ok(());
        }
        if child.try_wait()?.is_some() || started.elapsed() > STUCK_AFTER {
            let text = std::fs::read_to_string(raw.with_extension("log"))?;
            break Err(anyhow::anyhow!("the files are not equal: {text}"));
        }
        thread::sleep(Duration::from_millis(100));
    };
    let _ = child.kill();
    let _ = child.wait();
    done
}
