//! What `contrib/` has, taken by a real Prometheus: every expression of the rules and of the Grafana dashboards finds something, each alert fires. `-- --ignored`
//! (scripts/nightly dashboard).

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::heddle::Heddle;
use e2e::http::get;
use e2e::native::{native_replica, wait_caught_up};
use e2e::pair::Pair;
use e2e::patience::until;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server, free_port};
use serde_json::Value;

/// For what is scraped and recorded to have been, every second.
const PATIENCE: Duration = Duration::from_secs(40);

struct Prometheus {
    process: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    /// Scrapes this port.
    fn start(scraped: u16) -> Result<Self> {
        let rules = e2e::repository().join("contrib/prometheus/heddle-rules.yml");
        ensure!(Command::new("promtool").args(["check", "rules"]).arg(&rules).status()?.success(), "promtool");
        let (dir, port) = (tempfile::tempdir()?, free_port()?);
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\n\
             scrape_configs: [{{job_name: heddle, static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]}}]\n",
            rules.display()
        );
        let file = dir.path().join("prometheus.yml");
        std::fs::write(&file, config)?;
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stderr(Stdio::null())
            .spawn()
            .context("prometheus")?;
        Ok(Self { process, port, _dir: dir })
    }

    /// What it answers to a query: how many series, and whether it understands it.
    fn query(&self, expression: &str) -> Result<usize> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer")?;
        let body: Value = serde_json::from_str(body).with_context(|| answer.clone())?;
        ensure!(body["status"] == "success", "{expression}: {body}");
        body["data"]["result"].as_array().map(Vec::len).context("a result")
    }

    /// Until each of them has had something.
    fn has(&self, expressions: &[String]) -> Result<()> {
        let since = Instant::now();
        let mut left = expressions.to_vec();
        loop {
            // Before the server answers there is nothing.
            left.retain(|expression| !self.query(expression).is_ok_and(|series| series > 0));
            match left.first() {
                None => return Ok(()),
                Some(empty) if since.elapsed() > PATIENCE => {
                    bail!("nothing for {empty}: {:?}; {left:?}", self.query(empty))
                }
                Some(_) => thread::sleep(Duration::from_millis(500)),
            }
        }
    }
}

/// The rules' lines of this kind.
fn rules(of: &str) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(e2e::repository().join("contrib/prometheus/heddle-rules.yml"))?;
    Ok(text.lines().filter_map(|line| line.trim().strip_prefix(of)).map(str::to_owned).collect())
}

fn board(name: &str, variable: &str) -> Result<Vec<String>> {
    let file = e2e::repository().join("contrib/grafana").join(name);
    let board: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let mut expressions = Vec::new();
    for panel in board["panels"].as_array().context("panels")? {
        for target in panel["targets"].as_array().context("targets")? {
            expressions.push(target["expr"].as_str().context("expr")?.replace(variable, ".*"));
        }
    }
    Ok(expressions)
}

/// A transaction each.
fn inserts(ids: std::ops::Range<u32>) -> String {
    ids.map(|id| format!("INSERT INTO d.t VALUES ({id}, 0);")).collect()
}

/// Each alert has its section in the runbook, and each section its alert.
#[test]
fn every_alert_has_a_runbook() -> Result<()> {
    let alerts = rules("- alert: ")?;
    let page = std::fs::read_to_string(e2e::repository().join("docs/alerts.md"))?;
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    ensure!(alerts == sections, "{alerts:?} and {sections:?}");
    let runbooks: Vec<String> = alerts.iter().map(|alert| format!("docs/alerts.md#{}", alert.to_lowercase())).collect();
    ensure!(rules("runbook: ")? == runbooks, "{runbooks:?}");
    Ok(())
}

/// What the alerts' test has: which of them fire, which are quiet, and on which series.
fn alert_tests() -> Result<(Vec<String>, Vec<String>, Vec<String>)> {
    let text = std::fs::read_to_string(e2e::repository().join("contrib/prometheus/heddle-rules.test.yml"))?;
    let (mut firing, mut quiet, mut series) = (Vec::new(), Vec::new(), Vec::new());
    let name = |text: &str| text.trim_end_matches('}').trim().to_owned();
    for line in text.lines().map(str::trim) {
        if let Some((_, alert)) = line.strip_prefix("- {eval_time:").and_then(|rest| rest.split_once("alertname:")) {
            quiet.push(name(alert));
        } else if let Some(alert) = line.strip_prefix("alertname:") {
            firing.push(name(alert));
        } else if let Some(rest) = line.strip_prefix("- {series: '") {
            series.push(rest.split(['{', '\'']).next().unwrap_or_default().to_owned());
        }
    }
    series.sort();
    series.dedup();
    Ok((firing, quiet, series))
}

/// Each alert is fired by the test, and shown to be quiet before its time, on series that docs/metrics.md has.
#[test]
fn every_alert_has_a_test() -> Result<()> {
    let (firing, quiet, series) = alert_tests()?;
    let page = std::fs::read_to_string(e2e::repository().join("docs/metrics.md"))?;
    for alert in rules("- alert: ")? {
        ensure!(firing.contains(&alert) && quiet.contains(&alert), "{alert} is not tested");
    }
    for name in series.iter().filter(|name| *name != "up") {
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        ensure!(page.contains(&format!("| `{family}` |")), "{name} is no metric of heddle's");
    }
    Ok(())
}

#[test]
#[ignore = "needs promtool"]
fn every_alert_fires() -> Result<()> {
    let tests = e2e::repository().join("contrib/prometheus/heddle-rules.test.yml");
    let tool = e2e::repository().join("scripts/tools");
    let run = Command::new(tool).args(["run", "promtool", "test", "rules"]).arg(tests).output()?;
    ensure!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    Ok(())
}

/// The series of the alerts' tests that begin so are in what the program serves.
fn serves_series(port: u16, prefix: &str, not: &[&str]) -> Result<()> {
    let (_, _, series) = alert_tests()?;
    let of_this = |name: &&String| name.starts_with(prefix) && !not.iter().any(|other| name.starts_with(other));
    for name in series.iter().filter(of_this) {
        let family = name.strip_suffix("_bucket").or_else(|| name.strip_suffix("_total")).unwrap_or(name);
        // Some come with the first look.
        until(format!("{name} among the metrics"), || {
            Ok(get(port, "/metrics")?.lines().any(|line| line.starts_with(&format!("# TYPE {family} "))))
        })?;
    }
    Ok(())
}

#[test]
#[ignore = "needs prometheus"]
fn of_a_channel() -> Result<()> {
    let pair = Pair::start(MYSQL_9_7)?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT)")?;
    let port = free_port()?;
    let mut running = pair.begin(&["--http", &format!("127.0.0.1:{port}")])?;
    running.wait_for_log("dashboard at http://")?;
    serves_series(port, "heddle_", &["heddle_watch_", "heddle_compare_"])?;
    let prometheus = Prometheus::start(port)?;
    for round in 0..8 {
        pair.source.execute(&inserts(round * 200..(round + 1) * 200))?;
        thread::sleep(Duration::from_secs(1));
    }
    // Of the alerts it is enough that they are understood.
    for expression in rules("expr: ")? {
        prometheus.query(&expression)?;
    }
    prometheus.has(&rules("- record: ")?)?;
    let expressions = board("heddle.json", "$channel")?;
    ensure!(expressions.len() > 30, "{}", expressions.len());
    prometheus.has(&expressions)?;
    running.terminate()?;
    running.wait()?.successful()?;
    Ok(())
}

/// `without`: what this vendor does not have, or what is not there while all is well.
fn of_a_native_replica(kind: Kind, options: &[&str], without: &[&str]) -> Result<()> {
    let (source, replica) = Server::start_two((kind, &[]), (kind, options))?;
    native_replica(&source, &replica)?;
    source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT)")?;
    source.execute(&inserts(0..1000))?;
    wait_caught_up(&source, &replica)?;
    let port = free_port()?;
    let (at, by) = (replica.url(), source.url());
    let http = format!("127.0.0.1:{port}");
    let mut running = Heddle::start(&["watch", &at, "--source", &by, "--interval", "1", "--http", &http])?;
    running.wait_for_log("dashboard at http://")?;
    serves_series(port, "heddle_watch_", &[])?;
    let prometheus = Prometheus::start(port)?;
    let mut expressions = board("native-replicas.json", "$replica")?;
    // The others are of channels.
    expressions.extend(rules("- record: ")?.into_iter().filter(|name| name.ends_with("seconds_behind_master")));
    expressions.dedup();
    expressions.retain(|expression| !without.iter().any(|name| expression.contains(name)));
    thread::scope(|scope| {
        let writing = scope.spawn(|| -> Result<()> {
            for round in 10..30 {
                source.execute(&inserts(round * 100..(round + 1) * 100))?;
                thread::sleep(Duration::from_millis(500));
            }
            replica.execute(if kind.is_mariadb() { "STOP SLAVE SQL_THREAD" } else { "STOP REPLICA SQL_THREAD" })?;
            source.execute("INSERT INTO d.t VALUES (100000, 0)")
        });
        prometheus.has(&expressions)?;
        writing.join().expect("the writer")
    })?;
    running.terminate()?;
    running.wait()?.successful()?;
    Ok(())
}

#[test]
#[ignore = "needs prometheus"]
fn of_a_native_replica_mysql() -> Result<()> {
    of_a_native_replica(MYSQL_9_7, &[], &["binlog_group_size", "caught_up_in"])
}

#[test]
#[ignore = "needs prometheus"]
fn of_a_native_replica_mariadb() -> Result<()> {
    of_a_native_replica(MARIADB_10_11, &["--slave-parallel-threads=4"], &["source_amil{", "jain", "caught_up_in"])
}

/// Its metrics are those of the alerts' tests.
#[test]
#[ignore = "scripts/nightly dashboard"]
fn of_a_comparison() -> Result<()> {
    let (source, target) = Server::start_two((MYSQL_9_7, &[]), (MYSQL_9_7, &[]))?;
    for server in [&source, &target] {
        server.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    }
    let (from, to, port) = (source.url(), target.url(), free_port()?);
    let http = format!("127.0.0.1:{port}");
    let mut running = Heddle::start(&["compare", "--from", &from, "--to", &to, "--watch", "1s", "--http", &http])?;
    running.wait_for_log("dashboard at http://")?;
    serves_series(port, "heddle_compare_", &[])?;
    running.terminate()?;
    running.wait()?;
    Ok(())
}
