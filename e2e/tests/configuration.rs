//! `--config` and `heddle run`: channels by files, one failing without the others, none left behind.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, binary, heddle};
use e2e::http::get;
use e2e::server::{MARIADB_10_11, Server, free_port};
use e2e::until;

fn golden() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/binlog/tests/golden/mysql-9.7/rows.binlog")
        .display()
        .to_string()
}

/// Processes that run with this file.
fn with_file(file: &Path) -> Result<usize> {
    let file = file.display().to_string();
    let of_process = |entry: std::io::Result<fs::DirEntry>| fs::read(entry.ok()?.path().join("cmdline")).ok();
    let lines = fs::read_dir("/proc")?.filter_map(of_process);
    Ok(lines.filter(|line| String::from_utf8_lossy(line).contains(&file)).count())
}

#[test]
fn one_channel_fails_without_the_others() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let store = format!("store:{}", dir.path().join("store").display());
    fs::write(dir.path().join("good.toml"), format!("from = '{}'\nto = '{store}'\nuntil-end = true\n", golden()))?;
    fs::write(dir.path().join("slip.toml"), "wrokers = 8\n")?;
    fs::write(dir.path().join("broken.toml"), "from = \n")?;
    let files = ["good", "slip", "broken"].map(|name| dir.path().join(format!("{name}.toml")).display().to_string());
    let run = heddle(&["run", &files[0], &files[1], &files[2]])?;
    ensure!(run.status.code() == Some(1), "{run}");
    for says in ["[slip] heddle: ", "did you mean \"workers\"?", "[broken] heddle: ", "line 1", "[good] "] {
        ensure!(format!("{}{}", run.stdout, run.stderr).contains(says), "{says}: {run}");
    }
    let good = dir.path().join("good.toml").display().to_string();
    let status = heddle(&["status", "--config", &good, "--json"])?.successful()?;
    let status: serde_json::Value = serde_json::from_str(&status.stdout)?;
    let text = status.to_string();
    ensure!(text.contains("\"good\"") && !text.contains("\"slip\""), "{text}");
    Ok(())
}

/// The source takes connections and says nothing, so that the channel waits.
#[test]
fn a_channels_process_does_not_outlive_the_one_that_started_it() -> Result<()> {
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("silent.toml");
    let (port, store) = (silent.local_addr()?.port(), dir.path().join("store"));
    fs::write(&file, format!("from = 'mysql://u@127.0.0.1:{port}'\nto = 'store:{}'\n", store.display()))?;
    let folder = dir.path().display().to_string();
    for kill in [true, false] {
        let run = Heddle::start(&["run", &folder])?;
        until("the channel's process", || Ok(with_file(&file)? == 1))?;
        if kill {
            run.kill()?;
        } else {
            run.terminate()?;
            let ended = run.wait().context("run")?;
            ensure!(ended.status.code() == Some(0), "{ended}");
        }
        until("the channel's process is gone", || Ok(with_file(&file)? == 0))?;
    }
    Ok(())
}

fn body(port: u16, path: &str) -> Result<String> {
    Ok(get(port, path)?.split_once("\r\n\r\n").context("an answer")?.1.to_owned())
}

/// The names of those whose process shows a frame, with their workers.
fn shown(port: u16) -> Result<Vec<(String, usize)>> {
    let members: Vec<serde_json::Value> = serde_json::from_str(&body(port, "/frames")?)?;
    let mut shown = Vec::new();
    for member in members {
        if let Some(workers) = member["frame"]["workers"].as_array().filter(|workers| !workers.is_empty()) {
            shown.push((member["name"].as_str().context("a name")?.to_owned(), workers.len()));
        }
    }
    shown.sort();
    Ok(shown)
}

/// Files that come, change and go while it runs; one page, one text of metrics and one `top` for all.
#[test]
fn a_fleet_follows_its_files() -> Result<()> {
    let source = Server::start(MARIADB_10_11, &[])?;
    let (dir, port) = (tempfile::tempdir()?, free_port()?);
    let file = |name: &str| dir.path().join(format!("{name}.toml"));
    let write = |name: &str, more: &str| -> Result<()> {
        let text = format!(
            "from = '{}'\nto = 'store:{}'\nrelay-dir = '{}'\n{more}\n",
            source.url(),
            dir.path().join(name).display(),
            dir.path().join(format!("{name}-relay")).display()
        );
        Ok(fs::write(file(name), text)?)
    };
    write("a", "workers = 2")?;
    let (folder, http) = (dir.path().display().to_string(), format!("127.0.0.1:{port}"));
    let state = [("XDG_STATE_HOME".to_owned(), dir.path().join("s").display().to_string())];
    let mut run = Heddle::start_with(&["run", "--restart-seconds", "1", "--http", &http, &folder], &state)?;
    let wait_for = |run: &mut Heddle, expected: &[(&str, usize)]| -> Result<()> {
        let expected: Vec<(String, usize)> =
            expected.iter().map(|(name, workers)| ((*name).to_owned(), *workers)).collect();
        let found = until(format!("{expected:?}"), || {
            ensure!(!run.has_ended()?, "it has ended");
            Ok(shown(port).is_ok_and(|shown| shown == expected))
        });
        found.with_context(|| format!("{:?}\n{}", body(port, "/frames"), run.log()))
    };
    wait_for(&mut run, &[("a", 2)])?;
    write("b", "workers = 3")?;
    wait_for(&mut run, &[("a", 2), ("b", 3)])?;
    write("a", "workers = 4")?;
    wait_for(&mut run, &[("a", 4), ("b", 3)])?;
    fs::write(file("b"), "from = \n")?;
    run.wait_for_log("can not be read: the channel goes on as before")?;
    wait_for(&mut run, &[("a", 4), ("b", 3)])?;
    let metrics = body(port, "/metrics")?;
    for name in ["a", "b"] {
        for family in ["heddle_process_up", "heddle_transactions_total"] {
            ensure!(metrics.contains(&format!("\n{family}{{channel=\"{name}\"}}")), "{family} of {name}: {metrics}");
        }
    }
    ensure!(metrics.matches("# EOF").count() == 1 && metrics.matches("# TYPE heddle_transactions ").count() == 1);
    let top = Command::new(binary()?).args(["top", "--once", &format!("http://{http}")]).output()?;
    let screen = String::from_utf8_lossy(&top.stdout).into_owned();
    ensure!(top.status.success() && screen.matches("trx/s").count() >= 2, "{screen}");
    ensure!(body(port, "/")?.contains("heddle run"), "the page");
    fs::remove_file(file("b"))?;
    wait_for(&mut run, &[("a", 4)])?;
    // One that needs a person, and gets one.
    fs::write(file("c"), "wrokers = 8\n")?;
    run.wait_for_log("stopped, and needs a person")?;
    ensure!(body(port, "/frames")?.contains("\"state\":\"needs_person\""), "c");
    write("c", "workers = 1")?;
    wait_for(&mut run, &[("a", 4), ("c", 1)])?;
    run.terminate()?;
    run.wait()?.successful()?;
    ensure!(fs::read_dir(dir.path().join("s/heddle"))?.count() == 0, "sockets are left");
    Ok(())
}
