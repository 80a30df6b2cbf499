//! Ends of a channel from what people type: URLs, option files, passwords from the environment or a prompt.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use wire::{ConnectOptions, Secret};

/// Which end, for messages and environment variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Target,
}

impl End {
    fn variable(self) -> &'static str {
        match self {
            Self::Source => "HEDDLE_SOURCE_PASSWORD",
            Self::Target => "HEDDLE_TARGET_PASSWORD",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Target => "target",
        }
    }
}

/// URL over option file; then the password: URL (with a warning), environment, option file, prompt.
pub fn options(end: End, url: &str, defaults_file: Option<&Path>) -> Result<ConnectOptions> {
    let mut options = ConnectOptions { user: user_name(), ..ConnectOptions::default() };
    if let Some(file) = defaults_file {
        options
            .load_option_file(file, &["client", "heddle"])
            .with_context(|| format!("option file {}", file.display()))?;
    }
    let from_file = options.password.take();
    let warnings = options.apply_url(url).with_context(|| format!("the {}'s URL", end.name()))?;
    for warning in warnings.messages() {
        tracing::warn!("{}: {warning}", end.name());
    }
    if options.password.is_none() {
        options.password = std::env::var(end.variable()).ok().map(Secret::new).or(from_file);
    }
    if options.password.is_none() && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        options.password = Some(Secret::new(prompt(&format!("Password for {} {}: ", end.name(), options.address()))?));
    }
    Ok(options)
}

fn user_name() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".to_owned())
}

/// Reads a line without showing it.
fn prompt(text: &str) -> Result<String> {
    let mut stderr = std::io::stderr();
    write!(stderr, "{text}")?;
    stderr.flush()?;
    let line = {
        let _hidden = Hidden::new();
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).context("reading the password")?;
        line
    };
    writeln!(stderr)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Switches the terminal's echo off, and back when it goes.
struct Hidden(Option<libc::termios>);

#[expect(unsafe_code, reason = "termios(3)")]
impl Hidden {
    fn new() -> Self {
        // SAFETY: `tcgetattr` fills the zeroed struct or says so; both calls take a descriptor that is always open.
        unsafe {
            let mut now: libc::termios = std::mem::zeroed();
            if libc::tcgetattr(libc::STDIN_FILENO, &raw mut now) != 0 {
                return Self(None);
            }
            let mut hidden = now;
            hidden.c_lflag &= !libc::ECHO;
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw const hidden);
            Self(Some(now))
        }
    }
}

#[expect(unsafe_code, reason = "termios(3)")]
impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: as above; the settings are those that `tcgetattr` gave.
            unsafe {
                libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, before);
            }
        }
    }
}
