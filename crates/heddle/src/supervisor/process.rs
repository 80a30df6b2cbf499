//! One channel's process: its own process group, so that a Ctrl-C at the terminal reaches only the supervisor, which asks once.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use super::lines;

/// The variable that tells a channel's process who started it: it ends with that process.
pub const PARENT: &str = "HEDDLE_PARENT";

/// How a channel is started.
#[derive(Clone, Debug)]
pub struct Program {
    /// The same for as long as its file, or its table there, has the same name.
    pub id: String,
    /// What only one process can have: a channel of a target, a mirror's folder.
    pub subject: String,
    /// Of what the file says of it: another one is another program.
    pub version: u64,
    /// The file can be read.
    pub is_valid: bool,
    pub channel: String,
    pub file: PathBuf,
    /// Where its process shows itself, if the supervisor has chosen that.
    pub socket: Option<PathBuf>,
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
}

pub struct Process(Child);

impl Program {
    /// A binlog server: it reads its certificates again at SIGHUP, which ends a channel.
    pub fn is_server(&self) -> bool {
        self.arguments.first().is_some_and(|command| command == "serve")
    }

    pub fn start(&self) -> Result<Process> {
        let mut child = Command::new(&self.path)
            .args(&self.arguments)
            .env(PARENT, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("channel {}: starting {}", self.channel, self.path.display()))?;
        if let Some(out) = child.stdout.take() {
            lines::pass_on(out, &self.channel, lines::OutputStream::Out)?;
        }
        if let Some(errors) = child.stderr.take() {
            lines::pass_on(errors, &self.channel, lines::OutputStream::Error)?;
        }
        Ok(Process(child))
    }
}

impl Process {
    /// What it ended with, once it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.0.try_wait().context("waiting for a channel's process")
    }

    /// It stops without gaps, within five seconds. One that has ended in between is seen as ended.
    pub fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    pub fn ask_to_reload(&self) {
        self.signal(Signal::HUP);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }
}
