//! `heddle watch` on real servers: each rule on a replica that was put into its state, and none on one that was not.
//!
//! How long a state lasts does not depend on the machine: statements that sleep take as long on the replica as on the source, and a library that makes fsync
//! slow bounds the rest.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::bench::slow_disk;
use e2e::heddle::{Heddle, Run, heddle};
use e2e::native::{
    configure, configure_port, native_replica, start_applier, start_native, statement, stop_applier, wait_caught_up,
};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, USER, free_port};
use e2e::until;
use serde_json::Value;

/// A source and its native replica.
struct Watched {
    source: Server,
    replica: Server,
}

impl Watched {
    fn start(kind: Kind, options: &[&str]) -> Result<Watched> {
        Self::start_two((kind, &[]), (kind, options))
    }

    fn start_two(source: (Kind, &[&str]), replica: (Kind, &[&str])) -> Result<Watched> {
        let (source, replica) = Server::start_two(source, replica)?;
        let watched = Watched { source, replica };
        configure(&watched.source, &watched.replica)?;
        start_native(&watched.replica)?;
        watched.source.execute(
            "CREATE DATABASE s; CREATE TABLE s.slow (id INT PRIMARY KEY AUTO_INCREMENT, a INT); \
             CREATE TABLE s.t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(200)); INSERT INTO s.t (a) VALUES (1), (2)",
        )?;
        watched.caught_up()?;
        Ok(watched)
    }

    /// Old servers have no TLS that anybody still speaks.
    fn url(server: &Server) -> String {
        if server.kind.is_mariadb() || server.kind.has_new_words() { server.url() } else { server.plain_url() }
    }

    fn caught_up(&self) -> Result<()> {
        wait_caught_up(&self.source, &self.replica)
    }

    /// The number of workers; 0: the SQL thread applies.
    fn workers(&self, workers: u32) -> Result<()> {
        let old = !self.replica.kind.is_mariadb() && !self.replica.kind.has_new_words();
        let name = match (self.replica.kind.is_mariadb(), old) {
            (true, _) => "slave_parallel_threads",
            (false, true) => "slave_parallel_workers",
            (false, false) => "replica_parallel_workers",
        };
        let kind = if old { "SET GLOBAL slave_parallel_type='LOGICAL_CLOCK';" } else { "" };
        // MySQL has no fewer than one.
        let workers = if self.replica.kind.is_mysql_since(&[8, 4]) { workers.max(1) } else { workers };
        self.replica.execute(&format!("{}; {kind} SET GLOBAL {name}={workers}", statement(&self.replica, "STOP")))?;
        start_native(&self.replica)
    }

    /// While the applier stands still the source writes; then it goes on.
    fn behind(&self, write: impl FnOnce(&Server) -> Result<()>) -> Result<()> {
        stop_applier(&self.replica)?;
        write(&self.source)?;
        start_applier(&self.replica)
    }

    fn watch(&self, more: &[&str]) -> Result<Said> {
        let url = Watched::url(&self.replica);
        let mut arguments = vec!["watch", &url, "--once", "--json", "--interval", "1"];
        arguments.extend(more);
        Said::of(heddle(&arguments)?)
    }

    /// Until a rule is among the findings: a state may take a moment to be there.
    fn finds(&self, rule: &str, more: &[&str]) -> Result<Said> {
        const TRIES: u32 = 8;
        let mut said = self.watch(more)?;
        for _ in 1..TRIES {
            if said.has(rule) {
                break;
            }
            eprintln!("{} no {rule} yet: {}", self.replica.kind, said.verdict());
            said = self.watch(more)?;
        }
        ensure!(said.has(rule), "{rule} is not found: {}", said.run);
        let finding = said.finding(rule)?;
        for field in ["cause", "share", "evidence", "statement", "risk"] {
            ensure!(!finding[field].is_null(), "{rule} has no {field}: {finding}");
        }
        ensure!(finding["evidence"].as_array().is_some_and(|all| !all.is_empty()), "{rule} has no evidence: {finding}");
        eprintln!("{} {rule}: {}", self.replica.kind, said.verdict());
        Ok(said)
    }

    /// Caught up, with a little to do now and then: nothing is found.
    fn is_healthy(&self) -> Result<Said> {
        self.caught_up()?;
        self.source.execute("INSERT INTO s.t (a) VALUES (3)")?;
        self.caught_up()?;
        let said = self.watch(&[])?;
        ensure!(said.rules().is_empty() && said.code() == 0, "a false alarm: {}", said.run);
        ensure!(said.verdict().contains("keeps up") && said.json["lag_seconds"] == 0.0, "{}", said.run);
        Ok(said)
    }
}

/// What a watch said.
struct Said {
    run: Run,
    json: Value,
}

impl Said {
    fn of(run: Run) -> Result<Said> {
        let json = run.summary()?;
        Ok(Said { run, json })
    }

    fn code(&self) -> i32 {
        self.run.status.code().unwrap_or(-1)
    }

    fn verdict(&self) -> &str {
        self.json["verdict"].as_str().unwrap_or_default()
    }

    fn rules(&self) -> Vec<&str> {
        let findings = self.json["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
        findings.iter().filter_map(|finding| finding["rule"].as_str()).collect()
    }

    fn has(&self, rule: &str) -> bool {
        self.rules().contains(&rule)
    }

    fn finding(&self, rule: &str) -> Result<&Value> {
        let findings = self.json["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
        findings.iter().find(|finding| finding["rule"] == rule).with_context(|| self.run.to_string())
    }
}

/// Statements that take so many milliseconds here and on the replica; each session's one after the other.
fn slow(server: &Server, sessions: u32, each: u32, milliseconds: u32) -> Result<()> {
    let seconds = f64::from(milliseconds) / 1e3;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..sessions)
            .map(|_| {
                scope.spawn(move || -> Result<()> {
                    let mut connection = server.connect()?;
                    connection.execute("SET SESSION binlog_format=STATEMENT")?;
                    if server.kind.has_new_words() {
                        // As on a source that was restored from its own log: how old its first commit is does not count.
                        connection
                            .execute("SET SESSION original_commit_timestamp=1600000000000000, timestamp=1600000000")?;
                    }
                    for _ in 0..each {
                        // MariaDB 10.2 may take two of them for a deadlock.
                        while let Err(error) =
                            connection.execute(format!("INSERT INTO s.slow (a) SELECT SLEEP({seconds})"))
                        {
                            ensure!(error.code() == Some(1213), "{error}");
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a session"))
    })
}

/// One session, a row each.
fn rows(server: &Server, count: u32, sql: impl Fn(u32) -> String) -> Result<()> {
    let mut connection = server.connect()?;
    for number in 0..count {
        connection.execute(sql(number))?;
    }
    Ok(())
}

/// So many rows in `s.big`, in one transaction.
fn big(server: &Server, rows: u32) -> Result<()> {
    let ten = "(SELECT 0 n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 \
               UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    server.execute(
        "CREATE TABLE IF NOT EXISTS s.big (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(200), b INT, KEY (b))",
    )?;
    server.execute(&format!(
        "INSERT INTO s.big (a, b) SELECT REPEAT('x', 150), RAND()*1000000 FROM {ten} a, {ten} b, {ten} c, {ten} d, {ten} e, {ten} f LIMIT {rows}"
    ))
}

fn healthy_then_stopped(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    watched.is_healthy()?;
    watched.replica.execute("INSERT INTO s.t (id, a) VALUES (100, 1)")?;
    watched.source.execute("INSERT INTO s.t (id, a) VALUES (100, 2)")?;
    let said = watched.finds("stopped", &[])?;
    ensure!(said.code() == 2 && said.verdict().contains("1062"), "{}", said.run);
    let text = heddle(&["watch", &Watched::url(&watched.replica), "--once", "--interval", "1"])?;
    ensure!(text.stdout.contains("START"), "{text}");
    // As monitoring systems read it: state, text, bar, numbers.
    let first = text.stdout.lines().next().unwrap_or_default();
    ensure!(first.starts_with("CRITICAL - The replica") && first.contains(" | '"), "{text}");
    over_http(&watched)
}

/// Of a replica whose applier has stopped, and of a server that is none.
fn over_http(watched: &Watched) -> Result<()> {
    let http = format!("127.0.0.1:{}", free_port()?);
    let (replica, source) = (Watched::url(&watched.replica), Watched::url(&watched.source));
    let mut heddle = Heddle::start(&["watch", &replica, &source, "--interval", "1", "--http", &http])?;
    heddle.wait_for_log("its applier is stopped")?;
    let get = |path: &str| -> Result<String> {
        let mut stream = TcpStream::connect(&http)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
        Ok(body.to_owned())
    };
    ensure!(get("/")?.contains("<title>heddle watch"));
    let began = Instant::now();
    let reports = loop {
        let reports: Value = serde_json::from_str(&get("/reports.json")?)?;
        if reports.as_array().is_some_and(|all| all.len() == 2) {
            break reports;
        }
        ensure!(began.elapsed() < Duration::from_secs(60), "{reports}");
        thread::sleep(Duration::from_millis(100));
    };
    let severities = [&reports[0]["severity"], &reports[1]["severity"]];
    ensure!(severities == ["critical", "unknown"] && reports[0]["findings"][0]["rule"] == "stopped", "{reports}");
    ensure!(reports[0]["history"].as_array().is_some_and(|points| !points.is_empty()), "{reports}");
    let metrics = get("/metrics")?;
    let port = format!(":{}\"", watched.replica.port);
    let value = |name: &str, label: &str| {
        let line = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains(&port) && line.contains(label);
        metrics.lines().find(line).and_then(|line| line.rsplit_once(' ')).map(|(_, value)| value.parse::<f64>())
    };
    ensure!(
        value("heddle_watch_severity", "") == Some(Ok(2.0)) && value("heddle_watch_up", "") == Some(Ok(1.0)),
        "{metrics}"
    );
    ensure!(value("heddle_watch_finding_ratio", "rule=\"stopped\",severity=\"critical\"").is_some(), "{metrics}");
    ensure!(
        value("heddle_watch_look_timestamp_seconds", "").is_some_and(|at| at.is_ok_and(|at| at > 1e9)),
        "{metrics}"
    );
    heddle.terminate()?;
    let run = heddle.wait()?.successful()?;
    ensure!(run.stdout.is_empty(), "a log has no screens in it: {run}");
    Ok(())
}

/// PmaControl#150: workers idle, one transaction that the next one depends on.
fn idle_workers_wait_for_a_dependency(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    watched.workers(64)?;
    if kind.is_mariadb() {
        // Its usual mode does not wait for dependencies.
        watched.replica.execute("STOP SLAVE; SET GLOBAL slave_parallel_mode='conservative'; START SLAVE")?;
    }
    watched.behind(|source| slow(source, 1, 160, 25))?;
    // MariaDB says 0 when all is handed out: then the lag is at least the time that the look took.
    let critical = if kind.is_mariadb() { "1" } else { "2" };
    let said = watched.finds("dependency", &["--warn", "1", "--critical", critical])?;
    let first = said.verdict();
    ensure!(
        first.contains("waits for one that it depends on") && first.contains("more workers do not help"),
        "{first}"
    );
    let idle =
        if kind.is_mariadb() { "of 64 workers had nothing that they could begin" } else { "of 64 workers had no work" };
    ensure!(first.contains(idle), "{first}");
    ensure!(said.code() == 2, "{}", said.run);
    ensure!(said.json["lag_seconds"].as_f64().is_some_and(|lag| (1.0..3600.0).contains(&lag)), "{}", said.run);
    ensure!(!said.has("intermediate"), "the source is no replica: {}", said.run);
    ensure!(said.json["workers"].as_array().is_some_and(|all| all.len() == 64), "{}", said.run);
    ensure!(said.json["jain"].as_f64().is_some_and(|jain| jain < 0.2), "{}", said.run);
    ensure!(!said.has("more_workers"), "{}", said.run);
    ensure!(kind.is_mariadb() || said.has("fewer_workers"), "{}", said.run);
    Ok(())
}

fn one_worker(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    watched.workers(0)?;
    watched.behind(|source| slow(source, 16, 10, 20))?;
    let said = watched.finds("more_workers", &[])?;
    ensure!(said.finding("more_workers")?["statement"].as_str().is_some_and(|sql| sql.contains("=16")), "{}", said.run);
    Ok(())
}

fn a_session_holds_a_lock(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    let mut holder = watched.replica.connect()?;
    holder.execute("BEGIN")?;
    holder.rows("SELECT * FROM s.t WHERE id=1 FOR UPDATE")?;
    watched.source.execute("UPDATE s.t SET a=a+1 WHERE id=1")?;
    let said = watched.finds("blocked", &[])?;
    let finding = said.finding("blocked")?;
    ensure!(finding["statement"].as_str().is_some_and(|sql| sql.starts_with("KILL ")), "{finding}");
    ensure!(finding["evidence"].to_string().contains("s.t"), "{finding}");
    // The statement does what it says.
    watched.replica.execute(finding["statement"].as_str().unwrap_or_default())?;
    watched.is_healthy().map(drop)
}

fn a_ddl_runs(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    big(&watched.source, 500_000)?;
    watched.caught_up()?;
    watched.behind(|source| source.execute("ALTER TABLE s.big ADD KEY (a), ADD KEY (b, a)"))?;
    let said = watched.finds("ddl", &[])?;
    ensure!(said.verdict().contains("s.big"), "{}", said.run);
    watched.is_healthy().map(drop)
}

fn a_large_transaction(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    watched.behind(|source| big(source, 600_000))?;
    let said = watched.finds("large_transaction", &[])?;
    ensure!(kind.is_mariadb() || said.verdict().contains("s.big"), "{}", said.run);
    watched.is_healthy()?;
    if !kind.is_mariadb() {
        watched.replica.execute("STOP REPLICA; SET GLOBAL replica_pending_jobs_size_max=1024; START REPLICA")?;
        watched.behind(|source| big(source, 600_000))?;
        watched.finds("queue_full", &[])?;
    }
    Ok(())
}

fn a_table_without_key(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    big(&watched.source, 200_000)?;
    watched
        .source
        .execute("CREATE TABLE s.nokey (a INT, b VARCHAR(50)); INSERT INTO s.nokey SELECT id, 'x' FROM s.big")?;
    watched.caught_up()?;
    watched.is_healthy()?;
    watched.behind(|source| rows(source, 150, |at| format!("UPDATE s.nokey SET b='y{at}' WHERE a={at} LIMIT 1")))?;
    let said = watched.finds("table_without_key", &[])?;
    ensure!(said.finding("table_without_key")?["cause"].to_string().contains("s.nokey"), "{}", said.run);
    // The statement is one that the server takes.
    let statement = said.finding("table_without_key")?["statement"].as_str().unwrap_or_default().to_owned();
    watched.source.execute(&statement)?;
    watched.is_healthy().map(drop)
}

fn commits_wait_for_their_turn(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    watched.workers(8)?;
    // The first transaction does not get on; those behind it are applied and wait.
    let mut holder = watched.replica.connect()?;
    holder.execute("BEGIN")?;
    holder.rows("SELECT * FROM s.t WHERE id=1 FOR UPDATE")?;
    watched.behind(|source| {
        // MySQL's coordinator runs nothing beside the first transaction after its start.
        source.execute("INSERT INTO s.t (a) VALUES (7); UPDATE s.t SET a=a+1 WHERE id=1")?;
        rows(source, 400, |at| format!("INSERT INTO s.slow (a) VALUES ({at})"))
    })?;
    let said = watched.finds("commit_order", &[])?;
    ensure!(said.finding("commit_order")?["share"].as_f64().is_some_and(|share| share > 0.3), "{}", said.run);
    ensure!(said.has("blocked") && !said.has("more_workers"), "{}", said.run);
    holder.execute("ROLLBACK")?;
    watched.is_healthy().map(drop)
}

fn slow_fsyncs(kind: Kind) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let preload = slow_disk::option(dir.path())?;
    let watched = Watched::start(kind, &[&preload, "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"])?;
    watched.workers(4)?;
    watched.behind(|source| rows(source, 3000, |at| format!("INSERT INTO s.t (a) VALUES ({at})")))?;
    watched.finds("durability", &[])?;
    watched.caught_up()?;
    watched.workers(2)?;
    watched.behind(|source| rows(source, 3000, |at| format!("INSERT INTO s.t (a) VALUES ({at})")))?;
    let said = watched.finds("more_workers", &[])?;
    ensure!(said.finding("more_workers")?["statement"].as_str().is_some_and(|sql| sql.contains("=4")), "{}", said.run);
    watched.caught_up()?;
    // Rows of one session and conservative tags: what the source writes is less parallel than its rows.
    if kind.is_mariadb() {
        watched.replica.execute("STOP SLAVE; SET GLOBAL slave_parallel_mode='conservative'; START SLAVE")?;
        watched.behind(|source| rows(source, 3000, |at| format!("INSERT INTO s.t (a) VALUES ({at})")))?;
        watched.finds("source_tags", &["--source", &Watched::url(&watched.source)])?;
    }
    // The same row again and again.
    watched.workers(8)?;
    watched.behind(|source| rows(source, 3000, |_| "UPDATE s.t SET a=a+1 WHERE id=1".to_owned()))?;
    let said = watched.finds("hot_rows", &["--source", &Watched::url(&watched.source)])?;
    ensure!(said.finding("hot_rows")?["cause"].to_string().contains("s.t"), "{}", said.run);
    watched.is_healthy().map(drop)
}

fn a_small_redo_log_and_pool(kind: Kind) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let preload = slow_disk::option(dir.path())?;
    let redo = if kind.is_mariadb() { "--innodb-log-file-size=4M" } else { "--innodb-redo-log-capacity=8M" };
    // Pages are written late.
    let late = ["--innodb-io-capacity=100", "--innodb-io-capacity-max=100", "--innodb-adaptive-flushing=0"];
    let options = [redo, "--innodb-buffer-pool-size=8M", "--innodb-flush-log-at-trx-commit=2", &preload];
    let watched = Watched::start(kind, &[&options[..], &late].concat())?;
    watched.workers(4)?;
    big(&watched.source, 400_000)?;
    watched.caught_up()?;
    watched.is_healthy()?;
    watched.behind(|source| {
        // Rows all over the table.
        rows(source, 4000, |at| {
            let place = u64::from(at) * 7919 % 400_000;
            format!("UPDATE s.big SET b=b+1, a=REPEAT('y', 150) WHERE id BETWEEN {place} AND {}", place + 20)
        })
    })?;
    let mut pool = false;
    let mut redo = false;
    for _ in 0..10 {
        let said = watched.watch(&[])?;
        pool |= said.has("buffer_pool");
        redo |= said.has("redo_log");
        if pool && (redo || kind.is_mariadb()) {
            break;
        }
    }
    ensure!(pool, "the buffer pool is not named");
    // MariaDB's page cleaner was not seen to fall behind in memory: there a test over a recorded period has to do.
    ensure!(redo || kind.is_mariadb(), "the redo log is not named");
    Ok(())
}

/// Lets through so many bytes a second from the server.
fn throttle(port: u16, bytes_per_second: usize) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let own = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (Ok(mut up), Ok(mut up_to)) = (client.try_clone(), server.try_clone()) else { continue };
            thread::spawn(move || std::io::copy(&mut up, &mut up_to));
            thread::spawn(move || {
                let (mut server, mut client) = (server, client);
                let mut chunk = vec![0; (bytes_per_second / 20).max(1)];
                while let Ok(count @ 1..) = server.read(&mut chunk) {
                    if client.write_all(&chunk[..count]).is_err() {
                        break;
                    }
                    thread::sleep(Duration::from_secs_f64(count as f64 / bytes_per_second as f64));
                }
            });
        }
    });
    Ok(own)
}

fn a_slow_network(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    let port = throttle(watched.source.port, 500_000)?;
    watched.replica.execute(statement(&watched.replica, "STOP"))?;
    configure_port(&watched.replica, port)?;
    start_native(&watched.replica)?;
    watched.is_healthy()?;
    big(&watched.source, 1000)?;
    let text = "x".repeat(100_000);
    watched.source.execute("CREATE TABLE s.long_texts (id INT PRIMARY KEY AUTO_INCREMENT, a LONGTEXT)")?;
    rows(&watched.source, 150, |_| format!("INSERT INTO s.long_texts (a) VALUES ('{text}')"))?;
    thread::sleep(Duration::from_secs(4));
    watched.finds("receiver", &["--source", &Watched::url(&watched.source)]).map(drop)
}

fn an_intermediate_server(kind: Kind) -> Result<()> {
    // What it logs sleeps, too.
    let statements = &["--binlog-format=STATEMENT"];
    let watched = Watched::start_two((kind, statements), (kind, statements))?;
    watched.workers(0)?;
    let below = Server::start(kind, &[])?;
    configure(&watched.replica, &below)?;
    start_native(&below)?;
    let chain = Watched { source: watched.replica, replica: below };
    chain.workers(8)?;
    chain.caught_up()?;
    if kind.is_mariadb() {
        chain.replica.execute("STOP SLAVE; SET GLOBAL slave_parallel_mode='conservative'; START SLAVE")?;
    }
    chain.is_healthy_by(&watched.source)?;
    stop_applier(&chain.replica)?;
    slow(&watched.source, 8, 25, 20)?;
    wait_caught_up(&watched.source, &chain.source)?;
    start_applier(&chain.replica)?;
    let said = chain.finds("intermediate", &[])?;
    ensure!(said.finding("intermediate")?["statement"].to_string().contains("heddle serve"), "{}", said.run);
    Ok(())
}

impl Watched {
    /// As `is_healthy`, written on the first source of a chain.
    fn is_healthy_by(&self, first: &Server) -> Result<()> {
        first.execute("INSERT INTO s.t (a) VALUES (3)")?;
        wait_caught_up(first, &self.replica)?;
        let said = self.watch(&[])?;
        ensure!(said.rules().is_empty() && said.code() == 0, "a false alarm: {}", said.run);
        Ok(())
    }
}

fn a_lag_that_grows(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    watched.workers(0)?;
    thread::scope(|scope| {
        let began = Instant::now();
        let writer = scope.spawn(|| slow(&watched.source, 8, 200, 40));
        thread::sleep(Duration::from_secs(3));
        let said = watched.finds("rescue", &["--warn", "1", "--critical", "3600"])?;
        ensure!(said.json["trend"] == "falling_behind", "{}", said.run);
        ensure!(said.code() == 1 && said.verdict().contains("falls further behind"), "{}", said.run);
        ensure!(
            said.finding("rescue")?["statement"].to_string().contains("heddle rescue mysql://admin@"),
            "{}",
            said.run
        );
        // What waits takes several times as long: that is a forecast. The server counts from the last transaction that it has applied.
        let possible = began.elapsed().as_secs_f64() + 5.0;
        ensure!(said.json["lag_seconds"].as_f64().is_some_and(|lag| lag <= possible), "in {possible} s: {}", said.run);
        if kind.is_mariadb() {
            let said = watched.watch(&["--source", &Watched::url(&watched.source)])?;
            let possible = began.elapsed().as_secs_f64() + 2.0;
            ensure!(said.json["lag_from"] == "source_log", "{}", said.run);
            ensure!(
                said.json["lag_seconds"].as_f64().is_some_and(|lag| lag <= possible),
                "in {possible} s: {}",
                said.run
            );
        }
        writer.join().expect("the writer")
    })
}

fn a_delay(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    let change = if kind.has_new_words() {
        "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=3"
    } else {
        "CHANGE MASTER TO MASTER_DELAY=3"
    };
    watched.replica.execute(&format!(
        "{}; {change}; {}",
        statement(&watched.replica, "STOP"),
        statement(&watched.replica, "START")
    ))?;
    watched.source.execute("INSERT INTO s.t (a) VALUES (9)")?;
    let said = watched.finds("delayed", &[])?;
    ensure!(said.code() == 0, "{}", said.run);
    Ok(())
}

/// What the source tags by commits alone.
fn tags_of_commits() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let preload = slow_disk::option(dir.path())?;
    let kind: Kind = "mysql-8.0.15".parse()?;
    let watched = Watched::start(kind, &[&preload, "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"])?;
    watched.workers(8)?;
    watched.behind(|source| rows(source, 3000, |at| format!("INSERT INTO s.t (a) VALUES ({at})")))?;
    let said = watched.finds("source_tags", &["--source", &Watched::url(&watched.source)])?;
    let finding = said.finding("source_tags")?;
    ensure!(finding["statement"] == "SET GLOBAL binlog_transaction_dependency_tracking=WRITESET", "{finding}");
    ensure!(said.has("dependency"), "{}", said.run);
    // It does what it says, for what is written from then on.
    watched.caught_up()?;
    watched.source.execute(
        "SET GLOBAL transaction_write_set_extraction=XXHASH64; SET GLOBAL binlog_transaction_dependency_tracking=WRITESET",
    )?;
    watched.behind(|source| rows(source, 3000, |at| format!("INSERT INTO s.t (a) VALUES ({at})")))?;
    let said = watched.watch(&["--source", &Watched::url(&watched.source)])?;
    ensure!(!said.has("source_tags") && !said.has("dependency"), "{}", said.run);
    Ok(())
}

/// With the source: what its log holds back, what other appliers would make of it, how far such predictions were off, and what says more.
fn what_the_log_says(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    watched.workers(4)?;
    stop_applier(&watched.replica)?;
    rows(&watched.source, 600, |at| format!("UPDATE s.t SET a = {at} WHERE id = 1"))?;
    let source = Watched::url(&watched.source);
    let said = watched.watch(&["--source", &source])?;
    let seen = &said.json["source"];
    let causes = seen["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_hot = |cause: &Value| {
        cause["cause"].as_str().is_some_and(|text| text.contains("s.t")) && cause["share"].as_f64() > Some(0.5)
    };
    ensure!(causes.iter().any(is_hot), "{seen:#}");
    ensure!(seen["what_if"].as_array().is_some_and(|all| !all.is_empty()), "{seen:#}");
    ensure!(seen["heddle_times"].as_f64().is_some_and(|times| times > 0.0), "{seen:#}");
    ensure!(seen["predictions_off"].as_f64().is_some_and(|off| (0.0..1.0).contains(&off)), "{seen:#}");
    let commands = seen["commands"].as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(
        commands.iter().any(|sql| sql.as_str().is_some_and(|sql| sql.contains("heddle inspect --from"))),
        "{seen:#}"
    );
    let text = heddle(&["watch", &Watched::url(&watched.replica), "--source", &source, "--once", "--interval", "1"])?;
    for part in ["its log ", "such predictions were", "more   ", "simulated:"] {
        ensure!(text.stdout.contains(part), "no {part}: {text}");
    }
    Ok(())
}

/// Advice that is followed while a watch goes on: it says what came of it.
fn advice_comes_true(kind: Kind) -> Result<()> {
    let watched = Watched::start(kind, &[])?;
    watched.workers(1)?;
    let url = watched.replica.url();
    watched.behind(|source| slow(source, 16, 60, 20))?;
    let mut running = Heddle::start(&["watch", &url, "--json", "--interval", "1"])?;
    thread::sleep(Duration::from_secs(4));
    watched.workers(16)?;
    let since = Instant::now();
    while !running.stdout_so_far().contains("\"came_true\":true") {
        ensure!(since.elapsed() < Duration::from_secs(40), "{}", running.stdout_so_far());
        ensure!(!running.has_ended()?, "it has ended");
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// A source, its replica, the replica of that one, and the next one, of which the source is a replica: each once. One that does not let the account in is said, and the others
/// are watched.
fn replicas_of_replicas(kind: Kind) -> Result<()> {
    let options: &[&str] = if kind.is_mariadb() { &["--log-slave-updates"] } else { &[] };
    let (source, first) = Server::start_two((kind, options), (kind, options))?;
    let (second, third) = Server::start_two((kind, options), (kind, options))?;
    for (from, to) in [(&source, &first), (&first, &second), (&second, &third), (&third, &source)] {
        native_replica(from, to)?;
    }
    source.execute("CREATE DATABASE d")?;
    third.wait_until("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME='d'")?;
    let url = source.plain_url();
    let look = || heddle(&["watch", "--replicas-of", &url, "--once", "--interval", "1", "--json"]);
    let found = |run: &Run| -> Result<Vec<(u64, u64)>> {
        let line = |line: &str| -> Result<(u64, u64)> {
            let report: Value = serde_json::from_str(line)?;
            let (_, port) = report["replica"].as_str().and_then(|name| name.rsplit_once(':')).context("an address")?;
            Ok((port.parse()?, report["depth"].as_u64().context("a depth")?))
        };
        let mut found = run.stdout.lines().map(line).collect::<Result<Vec<_>>>()?;
        found.sort_by_key(|(_, depth)| *depth);
        Ok(found)
    };
    let levels = |servers: &[&Server]| -> Vec<(u64, u64)> {
        servers.iter().zip(1..).map(|(server, depth)| (u64::from(server.port), depth)).collect()
    };
    let mut run = look()?;
    // A receiver registers a moment after it has started.
    until("all are registered", || {
        run = look()?;
        Ok(found(&run)?.len() == 3)
    })?;
    ensure!(found(&run)? == levels(&[&first, &second, &third]), "{run}");
    let text = heddle(&["watch", "--replicas-of", &url, "--once", "--interval", "1"])?.stdout;
    ensure!(text.contains("(level 2)") && text.contains("(level 3)") && !text.contains("(level 1)"), "{text}");
    let hosts =
        ["%", "localhost", "127.0.0.1"].map(|host| format!("ALTER USER {USER}@'{host}' IDENTIFIED BY 'another'"));
    second.execute(&format!("SET sql_log_bin=0; {}", hosts.join(";")))?;
    let run = look()?;
    ensure!(found(&run)? == levels(&[&first, &second]), "{run}");
    ensure!(run.stderr.contains(&format!(":{} are not known: login refused", second.port)), "{run}");
    Ok(())
}

/// The collector on every version: a healthy replica, one that is behind, one that is stopped.
fn every_version() -> Result<()> {
    for name in [
        "mysql-5.7.22",
        "mysql-8.0.15",
        "mysql-8.0.46",
        "mysql-8.4",
        "mariadb-10.1",
        "mariadb-10.2",
        "mariadb-10.6",
        "mariadb-11.4",
        "mariadb-11.8",
    ] {
        let kind: Kind = name.parse()?;
        healthy_then_stopped(kind).with_context(|| name.to_owned())?;
        one_worker(kind).with_context(|| name.to_owned())?;
        idle_workers_wait_for_a_dependency(kind).with_context(|| name.to_owned())?;
    }
    Ok(())
}

e2e::tests! {
    mysql_healthy_then_stopped: healthy_then_stopped(MYSQL_9_7);
    mysql_idle_workers_wait_for_a_dependency: idle_workers_wait_for_a_dependency(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_healthy_then_stopped: healthy_then_stopped(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mariadb_idle_workers_wait_for_a_dependency: idle_workers_wait_for_a_dependency(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_one_worker: one_worker(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_one_worker: one_worker(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_a_session_holds_a_lock: a_session_holds_a_lock(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_a_session_holds_a_lock: a_session_holds_a_lock(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_a_ddl_runs: a_ddl_runs(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_a_ddl_runs: a_ddl_runs(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_a_large_transaction: a_large_transaction(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_a_large_transaction: a_large_transaction(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_a_table_without_key: a_table_without_key(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_a_table_without_key: a_table_without_key(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_commits_wait_for_their_turn: commits_wait_for_their_turn(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_commits_wait_for_their_turn: commits_wait_for_their_turn(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_slow_fsyncs: slow_fsyncs(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_slow_fsyncs: slow_fsyncs(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_a_small_redo_log_and_pool: a_small_redo_log_and_pool(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_a_small_redo_log_and_pool: a_small_redo_log_and_pool(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_a_slow_network: a_slow_network(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_a_slow_network: a_slow_network(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_an_intermediate_server: an_intermediate_server(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_an_intermediate_server: an_intermediate_server(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_a_lag_that_grows: a_lag_that_grows(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_a_lag_that_grows: a_lag_that_grows(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_a_delay: a_delay(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_a_delay: a_delay(MARIADB_10_11);
    mysql_what_the_log_says: what_the_log_says(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_what_the_log_says: what_the_log_says(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_replicas_of_replicas: replicas_of_replicas(MYSQL_9_7);
    mariadb_replicas_of_replicas: replicas_of_replicas(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] mysql_tags_of_commits: tags_of_commits();
    #[ignore = "scripts/nightly watch"] mysql_advice_comes_true: advice_comes_true(MYSQL_9_7);
    #[ignore = "scripts/nightly watch"] mariadb_advice_comes_true: advice_comes_true(MARIADB_10_11);
    #[ignore = "scripts/nightly watch"] every_version_is_watched: every_version();
}
