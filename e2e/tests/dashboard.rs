//! The dashboard and `heddle top` on real channels. By default: what is served, and its shape. `-- --ignored` (scripts/nightly dashboard): a headless
//! Chromium looks at a channel in each state, at light, dark and on a phone; pictures go to HEDDLE_PICTURES, if it is set.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::chromium::Chromium;
use e2e::heddle::{Heddle, binary, heddle};
use e2e::pair::Pair;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, free_port};
use serde_json::Value;

/// What a frame has, and of which kind: `docs/dashboard.md`.
const SHAPE: &[(&str, &str)] = &[
    ("version", "string"),
    ("channel", "string"),
    ("route", "string"),
    ("started_ms", "number"),
    ("at_ms", "number"),
    ("ended", "bool"),
    ("verdict", "object"),
    ("lag_s", "number?"),
    ("stages", "array"),
    ("rates", "object"),
    ("waits", "object"),
    ("workers", "array"),
    ("quality", "object"),
    ("queues", "object"),
    ("counters", "object"),
    ("evidence", "array"),
];

fn get(port: u16, path: &str, header: &str, until: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n{header}\r\n")?;
    let mut answer = Vec::new();
    let mut piece = [0; 8192];
    loop {
        let count = stream.read(&mut piece)?;
        answer.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&answer);
        if count == 0 || (!until.is_empty() && text.contains(until)) {
            return Ok(text.into_owned());
        }
    }
}

fn frame(port: u16) -> Result<Value> {
    let answer = get(port, "/frame", "", "")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    ensure!(head.contains(" 200 "), "{head}");
    Ok(serde_json::from_str(body)?)
}

/// Until the channel says that this is so.
fn until(port: u16, cause: &str) -> Result<Value> {
    let since = Instant::now();
    let mut said = std::collections::BTreeSet::new();
    loop {
        let frame = frame(port)?;
        if frame["verdict"]["cause"] == cause {
            return Ok(frame);
        }
        said.insert(frame["verdict"]["sentence"].to_string());
        ensure!(since.elapsed() < Duration::from_secs(90), "never {cause}: {said:#?} {frame:#}");
        thread::sleep(Duration::from_millis(100));
    }
}

fn check_shape(frame: &Value) -> Result<()> {
    for (field, kind) in SHAPE {
        let value = &frame[*field];
        let is_it = match kind.trim_end_matches('?') {
            "string" => value.is_string(),
            "number" => value.is_number(),
            "bool" => value.is_boolean(),
            "object" => value.is_object(),
            _ => value.is_array(),
        };
        ensure!(is_it || (kind.ends_with('?') && value.is_null()), "{field} is no {kind}: {frame:#}");
    }
    let shares: f64 = frame["waits"].as_object().context("waits")?.values().filter_map(Value::as_f64).sum();
    ensure!(shares < 1e-9 || (shares - 1.0).abs() < 1e-6, "parts of the time are {shares}: {frame:#}");
    Ok(())
}

#[test]
fn the_page_its_events_and_top() -> Result<()> {
    let pair = Pair::start(MARIADB_10_11)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT)")?;
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let running = pair.begin(&["--workers", "3", "--http", &address])?;
    let inserts: Vec<String> = (0..50).map(|id| format!("INSERT INTO d.t VALUES ({id}, 0)")).collect();
    pair.source.execute(&inserts.join(";"))?;
    let since = Instant::now();
    while frame(port).map_or(0, |frame| frame["counters"]["rows"].as_u64().unwrap_or(0)) < 50 {
        ensure!(since.elapsed() < Duration::from_secs(30), "never applied");
        thread::sleep(Duration::from_millis(50));
    }
    let idle = until(port, "idle")?;
    check_shape(&idle)?;
    ensure!(idle["stages"].as_array().is_some_and(|stages| stages.len() == 5), "{idle:#}");

    let page = get(port, "/", "", "")?;
    ensure!(page.len() < 300 << 10 && page.contains("content-security-policy: default-src 'none'"), "{}", page.len());
    let events = get(port, "/events", "", "event: frame\n")?;
    ensure!(events.contains("content-type: text/event-stream") && events.contains("event: history\n"), "{events}");
    let history = events.lines().find_map(|line| line.strip_prefix("data: ")).context("data")?;
    let history: Value = serde_json::from_str(history)?;
    let rows = history["at_ms"].as_array().context("at_ms")?.len();
    let columns = history["values"].as_array().context("values")?;
    ensure!(rows > 0 && columns.len() == history["columns"].as_array().map_or(0, Vec::len), "{history}");
    ensure!(columns.iter().all(|column| column.as_array().is_some_and(|values| values.len() == rows)), "{history}");

    let top = Command::new(binary()?).args(["top", "--once", &format!("http://{address}")]).output()?;
    let text = String::from_utf8_lossy(&top.stdout);
    ensure!(top.status.success() && text.contains("Nothing to do") && text.contains("committed"), "{text}");
    // What `heddle status` knows it says in the same words.
    let status = Command::new(binary()?)
        .args(["status", "--to", &pair.target.url()])
        .env("HEDDLE_TARGET_PASSWORD", "heddle")
        .output()?;
    ensure!(String::from_utf8_lossy(&status.stdout).contains("Nothing to do"), "{status:?}");

    running.terminate()?;
    running.wait()?.successful()?;
    let lost = Command::new(binary()?).args(["top", "--once", &format!("http://{address}")]).output()?;
    ensure!(lost.status.code() == Some(75), "{lost:?}");
    Ok(())
}

/// A channel that is shown, and where.
struct Shown {
    pair: Pair,
    port: u16,
}

impl Shown {
    fn new(kind: Kind) -> Result<Self> {
        // A source that is fast, so that the target is what holds it up.
        let fast = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"];
        let pair = Pair::start_with(kind, &fast, &[])?;
        pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT, s VARCHAR(200))")?;
        pair.source.execute("INSERT INTO d.t SELECT seq, 0, REPEAT('x', 100) FROM (SELECT @n := @n + 1 AS seq FROM information_schema.columns, (SELECT @n := 0) z LIMIT 1000) q")?;
        Ok(Self { pair, port: free_port()? })
    }

    fn begin(&self, more: &[&str]) -> Result<Heddle> {
        let address = format!("127.0.0.1:{}", self.port);
        let mut arguments = vec!["--http", address.as_str()];
        arguments.extend(more);
        let mut running = self.pair.begin(&arguments)?;
        running.wait_for_log("dashboard at http://")?;
        Ok(running)
    }

    /// Many transactions of one row each: a procedure makes them on the source.
    fn load(&self, count: u32, change: &str) -> Result<()> {
        let body =
            format!("BEGIN DECLARE i INT DEFAULT 0; WHILE i < {count} DO {change}; SET i = i + 1; END WHILE; END");
        let mut client = self.pair.source.connect()?;
        client.execute("DROP PROCEDURE IF EXISTS d.p")?;
        client.execute(format!("CREATE PROCEDURE d.p() {body}"))?;
        client.execute("CALL d.p()")?;
        Ok(())
    }
}

/// Beside the pictures: what was said.
fn told(line: &str) -> Result<()> {
    let Some(dir) = pictures() else { return Ok(()) };
    std::fs::create_dir_all(&dir)?;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("sentences.txt"))?;
    writeln!(file, "{line}").context("sentences.txt")
}

fn pictures() -> Option<PathBuf> {
    std::env::var_os("HEDDLE_PICTURES").map(PathBuf::from)
}

/// The page says the channel's sentence at each size, and nothing hangs over.
fn look(browser: &mut Chromium, name: &str, cause: &str) -> Result<()> {
    for (look, width, height, scheme) in
        [("light", 1280, 900, "light"), ("dark", 1280, 900, "dark"), ("phone", 390, 844, "light")]
    {
        browser.look(width, height, scheme)?;
        thread::sleep(Duration::from_millis(300));
        browser.until(&format!("frame !== null && frame.verdict.cause === '{cause}' && document.getElementById('sentence').textContent === frame.verdict.sentence"))?;
        let wide = browser.ask("document.documentElement.scrollWidth - window.innerWidth")?;
        if let Some(dir) = pictures() {
            std::fs::create_dir_all(&dir)?;
            browser.picture(&dir.join(format!("{name}-{look}.png")))?;
        }
        ensure!(wide.as_i64().is_some_and(|wide| wide <= 0), "{name} {look}: {wide} pixels too wide");
    }
    ensure!(browser.complaints.is_empty(), "{name}: {:?}", browser.complaints);
    Ok(())
}

fn state(browser: &mut Chromium, shown: &Shown, name: &str, cause: &str) -> Result<Value> {
    let seen = until(shown.port, cause).with_context(|| name.to_owned())?;
    check_shape(&seen)?;
    told(&format!("{name}: {} → {}", seen["verdict"]["sentence"], seen["verdict"]["remedy"]))?;
    browser.open(&format!("http://127.0.0.1:{}/", shown.port))?;
    look(browser, name, cause).with_context(|| name.to_owned())?;
    Ok(seen)
}

fn end(running: Heddle) -> Result<()> {
    running.terminate()?;
    running.wait()?.successful()?;
    Ok(())
}

/// All states that a channel can be put into, one after the other.
fn states(kind: Kind) -> Result<()> {
    let mut browser = Chromium::start()?;
    let shown = Shown::new(kind)?;
    let (source, target) = (&shown.pair.source, &shown.pair.target);
    let of = |name: &str| format!("{kind}-{name}");

    let running = shown.begin(&[])?;
    state(&mut browser, &shown, &of("idle"), "idle")?;
    browser.open("about:blank")?;
    browser.open(&format!("http://127.0.0.1:{}/", shown.port))?;
    browser.until("frame !== null")?;
    let painted = "performance.getEntriesByName('first-contentful-paint')[0]";
    browser.until(&format!("{painted} !== undefined"))?;
    let paint = browser.ask(&format!("{painted}.startTime"))?;
    told(&format!("first paint after {paint} ms"))?;

    // A client of the target holds a row.
    let since = Instant::now();
    while target
        .rows("SELECT 1 FROM information_schema.tables WHERE table_schema = 'd' AND table_name = 't'")?
        .is_empty()
    {
        ensure!(since.elapsed() < Duration::from_secs(60), "the target has no d.t");
        thread::sleep(Duration::from_millis(100));
    }
    until(shown.port, "idle")?;
    let mut client = target.connect()?;
    client.execute("BEGIN")?;
    client.execute("SELECT * FROM d.t WHERE id = 7 FOR UPDATE")?;
    source.execute("UPDATE d.t SET n = 1 WHERE id = 7")?;
    shown.load(300, "UPDATE d.t SET n = n + 1 WHERE id = 10 + i")?;
    let held = state(&mut browser, &shown, &of("lock"), "target_lock")?;
    browser.until("!byId('ahead-card').hidden && byId('ahead-times').rows.length > 3")?;
    look(&mut browser, &of("log-ahead"), "target_lock")?;
    let sentence = held["verdict"]["sentence"].as_str().unwrap_or_default();
    ensure!(sentence.contains("session ") && sentence.contains("d.t"), "{sentence}");
    client.execute("ROLLBACK")?;
    until(shown.port, "idle")?;

    // A table without a key, searched for each row.
    source.execute("CREATE TABLE d.nokey (a INT, b INT, c VARCHAR(100))")?;
    source.execute("INSERT INTO d.nokey SELECT a.id, b.id, 'x' FROM d.t a, d.t b WHERE b.id <= 40")?;
    until(shown.port, "idle")?;
    // One row a transaction, none of them merged: MySQL searches the table once for all rows of one. Behind, for the source searches as long as the target.
    end(running)?;
    shown.load(1500, "UPDATE d.nokey SET c = CONCAT('y', i) WHERE a = 1 + i % 1000 AND b = 39")?;
    let running = shown.begin(&["--grouping", "off", "--workers", "1"])?;
    let keyless = state(&mut browser, &shown, &of("no-key"), "no_key")?;
    ensure!(keyless["verdict"]["sentence"].as_str().is_some_and(|said| said.contains("d.nokey")), "{keyless:#}");
    until(shown.port, "idle")?;

    // A DDL that copies a large table.
    source.execute("CREATE TABLE d.large (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(250))")?;
    source.execute("INSERT INTO d.large (s) SELECT REPEAT('y', 200) FROM d.t a, d.t b")?;
    until(shown.port, "idle")?;
    source.execute("ALTER TABLE d.large MODIFY s VARCHAR(249) CHARACTER SET latin1, ALGORITHM=COPY")?;
    let ddl = state(&mut browser, &shown, &of("ddl"), "ddl")?;
    ensure!(ddl["verdict"]["sentence"].as_str().is_some_and(|said| said.contains("ALTER TABLE d.large")), "{ddl:#}");
    until(shown.port, "idle")?;

    // The source is gone.
    source.stop()?;
    state(&mut browser, &shown, &of("source-gone"), "source_lost")?;
    source.restart(&[])?;
    until(shown.port, "idle")?;
    end(running)?;

    // One row that every transaction changes.
    shown.load(120_000, "UPDATE d.t SET n = n + 1 WHERE id = 17")?;
    let running = shown.begin(&["--grouping", "off", "--workers", "4"])?;
    let hot = state(&mut browser, &shown, &of("hot-row"), "hot_row")?;
    ensure!(
        hot["verdict"]["sentence"].as_str().is_some_and(|said| said.contains("d.t") && said.contains("17")),
        "{hot:#}"
    );
    running.kill()?;
    running.wait()?;

    // Behind, and the target is what takes the time.
    shown.load(120_000, "UPDATE d.t SET n = n + 1 WHERE id = 1 + i % 1000")?;
    let running = shown.begin(&["--grouping", "off", "--workers", "1"])?;
    state(&mut browser, &shown, &of("catching-up"), "target")?;
    running.kill()?;
    running.wait()?;
    let running = shown.begin(&[])?;
    until(shown.port, "idle")?;

    // Source and target differ: the run ends, and the page says why; started again, the page goes on with what it has.
    browser.open(&format!("http://127.0.0.1:{}/", shown.port))?;
    browser.until("frame !== null")?;
    target.execute("DELETE FROM d.t WHERE id = 5")?;
    source.execute("UPDATE d.t SET n = -1 WHERE id = 5")?;
    running.wait()?;
    look(&mut browser, &of("divergence"), "divergence")?;
    let before = browser.ask("[samples.length, started]")?;
    target.execute("INSERT INTO d.t SELECT 5, n, s FROM d.t WHERE id = 6")?;
    target.execute("UPDATE d.t SET n = 60 WHERE id = 5")?;
    let fixed: Vec<Vec<String>> = source.rows("SELECT n FROM d.t WHERE id = 6")?;
    ensure!(!fixed.is_empty(), "a row");
    let running = shown.begin(&[])?;
    browser.until(&format!("started !== {} && samples.length > {}", before[1], before[0]))?;
    ensure!(browser.ask("document.getElementById('connection').className")? == "", "the page says that nobody answers");
    drop(running);
    Ok(())
}

#[test]
#[ignore = "minutes, and needs chromium"]
fn chromium_mysql() -> Result<()> {
    states(MYSQL_9_7)
}

#[test]
#[ignore = "minutes, and needs chromium"]
fn chromium_mariadb() -> Result<()> {
    states(MARIADB_10_11)
}

/// A library that makes each sync of a server's files take its time.
fn slow_sync(dir: &Path) -> Result<PathBuf> {
    let (code, library) = (dir.join("slow.c"), dir.join("slow.so"));
    let program = "#include <unistd.h>\n#include <sys/syscall.h>\n\
        int fsync(int f) { usleep(100000); return syscall(SYS_fsync, f); }\n\
        int fdatasync(int f) { usleep(100000); return syscall(SYS_fdatasync, f); }\n";
    std::fs::write(&code, program)?;
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&code).status()?;
    ensure!(built.success(), "cc");
    Ok(library)
}

#[test]
#[ignore = "needs chromium"]
fn chromium_slow_sync() -> Result<()> {
    let mut browser = Chromium::start()?;
    let shown = Shown::new(MARIADB_10_11)?;
    let dir = tempfile::tempdir()?;
    let preload = format!("--preload={}", slow_sync(dir.path())?.display());
    let running = shown.begin(&[])?;
    until(shown.port, "idle")?;
    end(running)?;
    shown.pair.target.stop()?;
    shown.pair.target.restart(&[&preload, "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"])?;
    let running = shown.begin(&[])?;
    thread::scope(|scope| {
        let load = scope.spawn(|| shown.load(400, "UPDATE d.t SET n = n + 1 WHERE id = 1 + i; DO SLEEP(0.05)"));
        let seen = state(&mut browser, &shown, "mariadb-slow-sync", "slow_commit");
        load.join().map_err(|_| anyhow::anyhow!("the load has panicked"))??;
        seen
    })?;
    end(running)
}

/// A certificate of its own authority, and its key.
fn certificate(dir: &Path) -> Result<(PathBuf, PathBuf)> {
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .stderr(Stdio::null())
        .status()?;
    ensure!(made.success(), "openssl");
    Ok((cert, key))
}

/// All addresses of the machine: only with a token and TLS, and `heddle top` over both.
#[test]
#[ignore = "needs openssl"]
fn a_token_and_tls() -> Result<()> {
    let pair = Pair::start(MARIADB_10_11)?;
    let (dir, port) = (tempfile::tempdir()?, free_port()?);
    let (cert, key) = certificate(dir.path())?;
    let address = format!("0.0.0.0:{port}");
    pair.begin(&["--http", &address])?.wait()?.failed_with("it needs a token")?;
    let token = dir.path().join("token");
    std::fs::write(&token, "correct horse battery staple\n")?;
    ensure!(Command::new("chmod").arg("600").arg(&token).status()?.success(), "chmod");
    let (cert, key, token) = (cert.display().to_string(), key.display().to_string(), token.display().to_string());
    let mut running =
        pair.begin(&["--http", &address, "--http-cert", &cert, "--http-key", &key, "--http-token-file", &token])?;
    running.wait_for_log("dashboard at https://")?;
    let curl = |user: &str, path: &str| -> Result<String> {
        let url = format!("https://localhost:{port}{path}");
        let output = Command::new("curl")
            .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", &cert, "-u", user, &url])
            .output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for path in ["/", "/frame", "/metrics"] {
        ensure!(
            curl("any:correct horse battery staple", path)? == "200" && curl("any:wrong", path)? == "401",
            "{path}"
        );
    }
    ensure!(curl("any:wrong", "/healthz")? == "200", "healthz");
    let url = format!("https://localhost:{port}");
    let top = |token: &str| {
        Command::new(binary()?)
            .args(["top", "--once", "--ca", &cert, &url])
            .env("HEDDLE_HTTP_TOKEN", token)
            .output()
            .context("top")
    };
    let right = top("correct horse battery staple")?;
    ensure!(right.status.success() && String::from_utf8_lossy(&right.stdout).contains("committed"), "{right:?}");
    let wrong = top("wrong")?;
    ensure!(
        wrong.status.code() == Some(75) && String::from_utf8_lossy(&wrong.stdout).contains("token is missing or wrong"),
        "{wrong:?}"
    );
    end(running)
}

/// While somebody looks at a channel that is behind, the log that it has still to apply is read: what `inspect` finds in it, what `simulate` says.
fn the_log_ahead(kind: Kind) -> Result<()> {
    let shown = Shown::new(kind)?;
    let running = shown.begin(&["--workers", "4"])?;
    let since = Instant::now();
    while frame(shown.port)?["counters"]["rows"].as_u64().unwrap_or(0) < 1000 {
        ensure!(since.elapsed() < Duration::from_secs(30), "never applied");
        thread::sleep(Duration::from_millis(50));
    }
    ensure!(frame(shown.port)?["ahead"].is_null(), "of a channel that keeps up");
    let mut holder = shown.pair.target.connect()?;
    holder.execute("BEGIN")?;
    holder.rows("SELECT n FROM d.t WHERE id = 7 FOR UPDATE")?;
    shown.load(2000, "UPDATE d.t SET n = n + 1 WHERE id = 7")?;
    let since = Instant::now();
    let ahead = loop {
        let frame = frame(shown.port)?;
        if !frame["ahead"].is_null() {
            break frame["ahead"].clone();
        }
        ensure!(since.elapsed() < Duration::from_secs(60), "never looked: {frame:#}");
        thread::sleep(Duration::from_millis(300));
    };
    ensure!(ahead["transactions"].as_u64().is_some_and(|count| count > 1000), "{ahead:#}");
    ensure!(ahead["causes"][0]["cause"].as_str().is_some_and(|cause| cause.contains("row")), "{ahead:#}");
    let what_if = ahead["what_if"].as_array().context("what_if")?;
    let times = |policy: &str| {
        let one = what_if.iter().find(|one| one["policy"] == policy).with_context(|| format!("{policy}: {ahead:#}"))?;
        one["times"].as_f64().context("times")
    };
    ensure!(times("serial")? < 1.0, "{ahead:#}");
    let native = if kind.is_mariadb() { "mariadb-optimistic" } else { "mysql-writeset" };
    ensure!(times(native)? < 1.0 && ahead["predictions_off"].as_f64().is_some_and(|off| off > 0.0), "{ahead:#}");
    ensure!(ahead["commands"].as_array().is_some_and(|all| all.len() == 3), "{ahead:#}");
    let top = heddle(&["top", "--once", &format!("http://127.0.0.1:{}", shown.port)])?.successful()?;
    ensure!(top.stdout.contains("ahead: "), "{top}");
    holder.execute("ROLLBACK")?;
    until(shown.port, "idle")?;
    end(running)
}

#[test]
fn the_log_ahead_mysql() -> Result<()> {
    the_log_ahead(MYSQL_9_7)
}

#[test]
fn the_log_ahead_mariadb() -> Result<()> {
    the_log_ahead(MARIADB_10_11)
}

/// Through a socket's file: `heddle top` of a channel, `heddle status` of a mirror.
#[test]
fn a_socket_instead_of_a_port() -> Result<()> {
    let pair = Pair::start(MARIADB_10_11)?;
    let dir = tempfile::tempdir()?;
    let socket = dir.path().join("channel.sock");
    let place = format!("unix:{}", socket.display());
    let mut running = pair.begin(&["--http", &place])?;
    running.wait_for_log("seen through unix:")?;
    ensure!(std::fs::metadata(&socket)?.permissions().mode() & 0o777 == 0o600, "others may open it");
    e2e::patience::until("the channel has begun", || {
        Ok(heddle(&["top", "--once", &place])?.successful()?.stdout.contains("Nothing to do"))
    })
    .with_context(|| running.log())?;
    running.terminate()?;
    running.wait()?.successful()?;
    ensure!(!socket.exists(), "it is left");
    let gone = heddle(&["top", "--once", &place])?;
    // A long path breaks the line.
    let words: Vec<&str> = gone.stdout.split_whitespace().collect();
    ensure!(gone.status.code() == Some(75) && words.join(" ").contains("does not answer"), "{gone}");
    let mirror = dir.path().join("mirror");
    let from = pair.source.url();
    let mut serving = Heddle::start(&["serve", "--from", &from, "--dir", &mirror.to_string_lossy(), "--http", &place])?;
    serving.wait_for_log("seen through unix:")?;
    let said = heddle(&["status", "--http", &place, "--json"])?.successful()?;
    ensure!(said.stdout.contains("\"files\""), "{said}");
    serving.terminate()?;
    serving.wait()?.successful()?;
    Ok(())
}

/// `heddle top` on a terminal of its own, over a real channel: draws, ends at `q`, and leaves the terminal as it was.
#[test]
#[ignore = "needs script(1)"]
fn top_on_a_terminal() -> Result<()> {
    let shown = Shown::new(MARIADB_10_11)?;
    let running = shown.begin(&[])?;
    until(shown.port, "idle")?;
    for signal in [None, Some("TERM")] {
        let top = format!("stty rows 24 cols 80; {} top http://127.0.0.1:{}", binary()?.display(), shown.port);
        let mut script = Command::new("script")
            .args(["-qfec", &top, "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("script")?;
        thread::sleep(Duration::from_secs(4));
        match signal {
            None => script.stdin.as_mut().context("a pipe")?.write_all(b"q")?,
            Some(signal) => {
                let pattern = format!("top http://127.0.0.1:{}$", shown.port);
                let found = Command::new("pgrep").args(["-xf", &format!(".*heddle {pattern}")]).output()?;
                for id in String::from_utf8_lossy(&found.stdout).lines() {
                    ensure!(Command::new("kill").args([&format!("-{signal}"), id]).status()?.success(), "kill");
                }
            }
        }
        let output = script.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{:?}: {text}", output.status);
        // The other screen, and back; the cursor is shown again.
        ensure!(
            text.contains("\u{1b}[?1049h") && text.contains("\u{1b}[?1049l") && text.contains("\u{1b}[?25h"),
            "{text:?}"
        );
        ensure!(text.contains("Nothing"), "{text:?}");
    }
    end(running)
}
