//! Load from sysbench, as everybody in the field measures with it.

use crate::server::{PASSWORD, Server, USER, servers_script};
use anyhow::{Context, Result, ensure};
use std::process::{Child, Command, Stdio};

/// How much work: sysbench ends at whichever comes first; 0 is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub tables: u32,
    pub rows: u32,
    pub threads: u32,
    pub events: u64,
    pub seconds: u32,
}

/// A load that runs in the background.
#[derive(Debug)]
pub struct Sysbench {
    child: Child,
    script: String,
}

fn command(server: &Server, script: &str, load: Load, step: &str) -> Command {
    let mut command = servers_script(&["run", "sysbench", "sysbench", script]);
    command.args([
        "--db-driver=mysql".to_owned(),
        format!("--mysql-socket={}", server.socket().display()),
        format!("--mysql-user={USER}"),
        format!("--mysql-password={PASSWORD}"),
        "--mysql-db=sbtest".to_owned(),
        format!("--tables={}", load.tables),
        format!("--table-size={}", load.rows),
        format!("--threads={}", load.threads),
        format!("--events={}", load.events),
        format!("--time={}", load.seconds),
        // Deadlocks and duplicate keys are part of the scripts' own work.
        "--mysql-ignore-errors=1213,1020,1205,1062".to_owned(),
        step.to_owned(),
    ]);
    command
}

/// Creates and fills the tables `sbtest.sbtest1…`.
pub fn prepare(server: &Server, script: &str, load: Load) -> Result<()> {
    server.execute("CREATE DATABASE IF NOT EXISTS sbtest")?;
    finish(command(server, script, load, "prepare").output().context("starting sysbench")?, script)
}

/// Runs a script to its end on prepared tables; returns sysbench's report.
pub fn run(server: &Server, script: &str, load: Load) -> Result<()> {
    finish(command(server, script, load, "run").output().context("starting sysbench")?, script)
}

/// Starts a script on prepared tables.
pub fn start(server: &Server, script: &str, load: Load) -> Result<Sysbench> {
    start_at(server, script, load, 0)
}

/// The same, with so many transactions a second; 0: as many as it can.
pub fn start_at(server: &Server, script: &str, load: Load, rate: u32) -> Result<Sysbench> {
    let child = command(server, script, load, "run")
        .arg(format!("--rate={rate}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting sysbench")?;
    Ok(Sysbench { child, script: script.to_owned() })
}

impl Sysbench {
    /// Ends the load now.
    pub fn stop(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits for the load's end.
    pub fn wait(self) -> Result<()> {
        finish(self.child.wait_with_output()?, &self.script)
    }
}

fn finish(output: std::process::Output, script: &str) -> Result<()> {
    ensure!(
        output.status.success(),
        "sysbench {script}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
