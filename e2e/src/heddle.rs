//! Runs the built `heddle` binary as a user would and reads its `--json` summary.

use crate::server::PASSWORD;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// After this a run counts as stuck and is ended, so that a hang shows as a failed test with the process's output.
const STUCK_AFTER: Duration = Duration::from_secs(240);

/// `$HEDDLE_BIN`, or the one that was built as the program that asks, or another build beside it.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("HEDDLE_BIN") {
        return Ok(path.into());
    }
    let own = std::env::current_exe()?;
    let profile = own.ancestors().skip(1).find(|folder| !folder.ends_with("deps")).context("no target directory")?;
    let target = profile.parent().context("no target directory")?;
    let candidates =
        [profile.to_owned(), target.join("release"), target.join("debug")].map(|folder| folder.join("heddle"));
    let found = candidates.iter().find(|path| path.exists());
    found.cloned().with_context(|| {
        format!(
            "no heddle binary; build it (cargo build --release -p heddle) or set HEDDLE_BIN; looked for {candidates:?}"
        )
    })
}

/// `$HEDDLE_E2E_ROWS`: how rows are written by runs that do not say it themselves, so that whole programs run a second time with `sql`.
fn rows_as(arguments: &[&str]) -> Option<String> {
    let is_asked = arguments.iter().any(|argument| argument.starts_with("--rows"));
    let to_server =
        arguments.iter().any(|argument| argument.starts_with("mysql://") || argument.starts_with("mariadb://"))
            && !arguments.iter().any(|argument| argument.contains("store:"));
    let is_replicate = arguments.first() == Some(&"replicate");
    std::env::var("HEDDLE_E2E_ROWS").ok().filter(|_| is_replicate && to_server && !is_asked)
}

/// A started heddle.
#[derive(Debug)]
pub struct Heddle {
    child: Child,
    stdout: Option<Collected>,
    stderr: Option<Collected>,
    arguments: String,
}

/// What a pipe has brought so far, and the thread that reads it.
#[derive(Debug)]
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// How a heddle ended.
#[derive(Debug)]
pub struct Run {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    arguments: String,
}

impl Heddle {
    pub fn start(arguments: &[&str]) -> Result<Heddle> {
        Heddle::start_as(Command::new(binary()?), arguments)
    }

    /// With more in its environment.
    pub fn start_with(arguments: &[&str], environment: &[(String, String)]) -> Result<Heddle> {
        let mut command = Command::new(binary()?);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Heddle::start_as(command, arguments)
    }

    /// Another build of it.
    pub fn start_program(program: &Path, arguments: &[&str]) -> Result<Heddle> {
        Heddle::start_as(Command::new(program), arguments)
    }

    /// As a service: SIGHUP does not come from a terminal.
    pub fn start_without_terminal(arguments: &[&str]) -> Result<Heddle> {
        let mut command = Command::new("setsid");
        command.arg(binary()?);
        Heddle::start_as(command, arguments)
    }

    /// In another network namespace.
    pub fn start_in(namespace: &str, arguments: &[&str]) -> Result<Heddle> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(binary()?);
        Heddle::start_as(command, arguments)
    }

    /// No file that it writes may grow beyond so many bytes, as if the disk were full then.
    #[expect(unsafe_code, reason = "what runs between fork and exec is unsafe")]
    pub fn start_with_small_files(arguments: &[&str], bytes_max: u64) -> Result<Heddle> {
        let mut command = Command::new(binary()?);
        let limit = libc::rlimit { rlim_cur: bytes_max, rlim_max: bytes_max };
        // SAFETY: both calls are safe between fork and exec, and `limit` is the closure's own.
        unsafe {
            command.pre_exec(move || {
                // Ignored, as it then also is by the new program, the signal leaves the write to fail with an error.
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                match libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        Heddle::start_as(command, arguments)
    }

    /// `dir` is a disk of so many bytes of its own. `None`: the system does not allow it.
    pub fn start_on_small_disk(arguments: &[&str], dir: &Path, bytes: u64) -> Result<Option<Heddle>> {
        std::fs::create_dir_all(dir)?;
        let mount = format!("mount -t tmpfs -o size={bytes} none '{}'", dir.display());
        let apart = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
            command
        };
        if !apart(&mount).output().is_ok_and(|done| done.status.success()) {
            return Ok(None);
        }
        let mut command = apart(&format!("{mount} && exec \"$0\" \"$@\""));
        command.arg(binary()?);
        Heddle::start_as(command, arguments).map(Some)
    }

    fn start_as(mut command: Command, arguments: &[&str]) -> Result<Heddle> {
        let rows = rows_as(arguments);
        let mut child = command
            .args(arguments)
            .args(rows.iter().flat_map(|rows| ["--rows", rows]))
            .env("HEDDLE_SOURCE_PASSWORD", PASSWORD)
            .env("HEDDLE_TARGET_PASSWORD", PASSWORD)
            .env("HEDDLE_REPLICA_PASSWORD", PASSWORD)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting heddle")?;
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Ok(Heddle { child, stdout, stderr, arguments: arguments.join(" ") })
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        // The child is not reaped before `wait`, so the id is its own.
        kill_process(Pid::from_child(&self.child), signal).context("signalling heddle")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)
    }

    /// Waits until it has logged a line with `text`, or has ended.
    pub fn wait_for_log(&mut self, text: &str) -> Result<()> {
        let started = Instant::now();
        while !self.stderr.as_ref().is_some_and(|log| log.text().contains(text)) && !self.has_ended()? {
            ensure!(started.elapsed() < STUCK_AFTER, "no '{text}' in the log of heddle {}", self.arguments);
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// What it has logged so far.
    pub fn stdout_so_far(&self) -> String {
        self.stdout.as_ref().map(Collected::text).unwrap_or_default()
    }

    pub fn log(&self) -> String {
        self.stderr.as_ref().map(Collected::text).unwrap_or_default()
    }

    /// The most memory that was resident at once so far, in bytes; none once it has ended.
    pub fn resident_max(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    }

    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits for the end, whatever it is.
    pub fn wait(self) -> Result<Run> {
        self.wait_up_to(STUCK_AFTER)
    }

    /// The same where there is more to do than otherwise.
    pub fn wait_up_to(mut self, limit: Duration) -> Result<Run> {
        let started = Instant::now();
        let (status, stuck) = loop {
            if let Some(status) = self.child.try_wait()? {
                break (status, false);
            }
            if started.elapsed() > limit {
                self.child.kill()?;
                break (self.child.wait()?, true);
            }
            thread::sleep(Duration::from_millis(10));
        };
        let text = |collected: Option<Collected>| collected.map(Collected::whole).unwrap_or_default();
        let run = Run {
            status,
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
            arguments: std::mem::take(&mut self.arguments),
        };
        ensure!(!stuck, "stuck after {} s: {run}", limit.as_secs());
        Ok(run)
    }
}

impl Drop for Heddle {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> Collected {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&bytes);
    let reader = thread::spawn(move || {
        let mut chunk = [0; 8192];
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            sink.lock().unwrap_or_else(PoisonError::into_inner).extend(chunk.iter().take(count));
        }
    });
    Collected { bytes, reader }
}

impl Collected {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// All of it: the pipe's other end is closed.
    fn whole(self) -> String {
        let Self { bytes, reader } = self;
        let _ = reader.join();
        String::from_utf8_lossy(&bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Runs to the end, whatever it is.
pub fn heddle(arguments: &[&str]) -> Result<Run> {
    Heddle::start(arguments)?.wait()
}

/// `heddle replicate --from … --to … --json …`, which must succeed.
pub fn replicate(from: &str, to: &str, more: &[&str]) -> Result<Run> {
    let mut arguments = vec!["replicate", "--from", from, "--to", to, "--json"];
    arguments.extend(more);
    heddle(&arguments)?.successful()
}

impl Run {
    pub fn successful(self) -> Result<Run> {
        ensure!(self.status.success(), "{self}");
        Ok(self)
    }

    /// Must have failed with a message that holds `text`.
    pub fn failed_with(&self, text: &str) -> Result<()> {
        ensure!(!self.status.success(), "expected a failure that says '{text}', but: {self}");
        ensure!(
            self.stderr.to_lowercase().contains(&text.to_lowercase()),
            "expected a message with '{text}', but: {self}"
        );
        Ok(())
    }

    /// The `--json` summary: the last line of standard output, or all of it.
    pub fn summary(&self) -> Result<serde_json::Value> {
        if let Ok(value) = serde_json::from_str(self.stdout.trim()) {
            return Ok(value);
        }
        let Some(line) = self.stdout.lines().rev().find(|line| line.starts_with('{')) else {
            bail!("no summary on stdout: {self}")
        };
        serde_json::from_str(line).with_context(|| format!("reading the summary: {self}"))
    }

    /// Whether a signal ended it, which is a success of its own kind.
    pub fn was_stopped(&self) -> Result<bool> {
        Ok(self.summary()?.get("stopped").and_then(serde_json::Value::as_bool).unwrap_or(false))
    }

    /// A whole number of the summary.
    pub fn number(&self, field: &str) -> Result<u64> {
        let summary = self.summary()?;
        summary
            .get(field)
            .and_then(serde_json::Value::as_u64)
            .with_context(|| format!("no number '{field}' in the summary {summary}"))
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 60;
        let lines: Vec<&str> = self.stderr.lines().collect();
        writeln!(f, "heddle {} ended with {}", self.arguments, self.status)?;
        if lines.len() > SHOWN {
            writeln!(f, "… {} lines", lines.len() - SHOWN)?;
        }
        for line in lines.iter().skip(lines.len().saturating_sub(SHOWN)) {
            writeln!(f, "{line}")?;
        }
        write!(f, "{}", self.stdout)
    }
}
