//! `--config` and `heddle run`: channels by files, one failing without the others, none left behind.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use std::net::TcpListener;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Heddle, heddle};
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
    let of_process = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read(entry.ok()?.path().join("cmdline")).ok();
    let lines = std::fs::read_dir("/proc")?.filter_map(of_process);
    Ok(lines.filter(|line| String::from_utf8_lossy(line).contains(&file)).count())
}

#[test]
fn one_channel_fails_without_the_others() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let store = format!("store:{}", dir.path().join("store").display());
    std::fs::write(dir.path().join("good.toml"), format!("from = '{}'\nto = '{store}'\nuntil-end = true\n", golden()))?;
    std::fs::write(dir.path().join("slip.toml"), "wrokers = 8\n")?;
    std::fs::write(dir.path().join("broken.toml"), "from = \n")?;
    let folder = dir.path().display().to_string();
    let run = heddle(&["run", &folder])?;
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
    std::fs::write(&file, format!("from = 'mysql://u@127.0.0.1:{port}'\nto = 'store:{}'\n", store.display()))?;
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
