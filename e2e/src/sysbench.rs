//! Load from sysbench, as everybody in the field measures with it.

use crate::repository;
use crate::server::{PASSWORD, Server, USER, servers_script};
use anyhow::{Context, Result, ensure};
use std::path::Path;
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

/// One of sysbench's own scripts by its name, or a file; and options of it.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    pub name: &'a str,
    pub options: &'a [&'a str],
}

impl<'a, T: AsRef<str> + ?Sized> From<&'a T> for Script<'a> {
    fn from(name: &'a T) -> Self {
        Self { name: name.as_ref(), options: &[] }
    }
}

/// A load that runs in the background.
#[derive(Debug)]
pub struct Sysbench {
    child: Child,
    script: String,
}

fn command(server: &Server, script: Script<'_>, load: Load, step: &str) -> Command {
    let mut command = servers_script(&["run", "sysbench", "sysbench"]);
    if Path::new(script.name).extension().is_some_and(|extension| extension == "lua") {
        command.arg(repository().join(script.name));
    } else {
        command.arg(script.name);
    }
    command.args(script.options);
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
pub fn prepare<'a>(server: &Server, script: impl Into<Script<'a>>, load: Load) -> Result<()> {
    let script = script.into();
    server.execute("CREATE DATABASE IF NOT EXISTS sbtest")?;
    finish(&command(server, script, load, "prepare").output().context("starting sysbench")?, script.name)
}

/// Runs a script to its end on prepared tables; returns sysbench's report.
pub fn run<'a>(server: &Server, script: impl Into<Script<'a>>, load: Load) -> Result<()> {
    let script = script.into();
    finish(&command(server, script, load, "run").output().context("starting sysbench")?, script.name)
}

/// Starts a script on prepared tables.
pub fn start<'a>(server: &Server, script: impl Into<Script<'a>>, load: Load) -> Result<Sysbench> {
    start_at(server, script, load, 0)
}

/// The same, with so many transactions a second; 0: as many as it can.
pub fn start_at<'a>(server: &Server, script: impl Into<Script<'a>>, load: Load, rate: u32) -> Result<Sysbench> {
    let script = script.into();
    let child = command(server, script, load, "run")
        .arg(format!("--rate={rate}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting sysbench")?;
    Ok(Sysbench { child, script: script.name.to_owned() })
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
        finish(&self.child.wait_with_output()?, &self.script)
    }
}

fn finish(output: &std::process::Output, script: &str) -> Result<()> {
    ensure!(
        output.status.success(),
        "sysbench {script}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
