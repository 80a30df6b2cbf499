//! Ends of a channel from what people type: URLs, option files, passwords from the environment or a prompt.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use wire::{ConnectOptions, Nodes, Secret};

/// The environment variable with the password of accounts that replicas attach with.
pub const REPLICA_PASSWORD: &str = "HEDDLE_REPLICA_PASSWORD";

/// Which end, for messages and environment variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Target,
    /// The other one of two binlog servers, as its replicas connect to it.
    Peer,
}

impl End {
    fn variable(self) -> &'static str {
        match self {
            Self::Source => "HEDDLE_SOURCE_PASSWORD",
            Self::Target => "HEDDLE_TARGET_PASSWORD",
            Self::Peer => REPLICA_PASSWORD,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Target => "target",
            Self::Peer => "other heddle",
        }
    }
}

/// URL over option file; then the password: URL (with a warning), environment, option file, prompt.
pub fn options(end: End, url: &str, defaults_file: Option<&Path>) -> Result<ConnectOptions> {
    let mut options = options_unasked(end, url, defaults_file)?;
    if options.password.is_none() && is_interactive() {
        options.password = Some(ask(end, &options.address())?);
    }
    Ok(options)
}

/// The same for an end that may have several nodes. They have one account, which is asked for once.
pub fn nodes(end: End, url: &str, defaults_file: Option<&Path>) -> Result<Nodes> {
    let (base, from_file) = before_url(defaults_file)?;
    let (nodes, warnings) = Nodes::from_url(&base, url).with_context(|| format!("the {}'s URL", end.name()))?;
    tell(end, &warnings);
    if nodes.current().password.is_some() {
        return Ok(nodes);
    }
    let password = match password(end, from_file) {
        None if is_interactive() => Some(ask(end, &nodes.address())?),
        known => known,
    };
    Ok(nodes.with(|node| node.password.clone_from(&password)))
}

/// Once for each server: a process that waits for a channel again connects again.
fn ask(end: End, address: &str) -> Result<Secret> {
    static ANSWERS: Mutex<Vec<(End, String, Secret)>> = Mutex::new(Vec::new());
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., known)) = answers.iter().find(|(of, at, _)| *of == end && at == address) {
        return Ok(known.clone());
    }
    let text = format!("Password for {} {address}: ", end.name());
    let password = Secret::new(rpassword::prompt_password(text).context("reading the password")?);
    answers.push((end, address.to_owned(), password.clone()));
    Ok(password)
}

/// The same without a prompt: nobody is there to answer.
pub fn options_unasked(end: End, url: &str, defaults_file: Option<&Path>) -> Result<ConnectOptions> {
    let (mut options, from_file) = before_url(defaults_file)?;
    let warnings = options.apply_url(url).with_context(|| format!("the {}'s URL", end.name()))?;
    tell(end, &warnings);
    if options.password.is_none() {
        options.password = password(end, from_file);
    }
    Ok(options)
}

/// What holds where the URL says nothing, and the password of the option file.
fn before_url(defaults_file: Option<&Path>) -> Result<(ConnectOptions, Option<Secret>)> {
    let mut options = ConnectOptions { user: user_name(), ..ConnectOptions::default() };
    if let Some(file) = defaults_file {
        options
            .load_option_file(file, &["client", "heddle"])
            .with_context(|| format!("option file {}", file.display()))?;
    }
    let from_file = options.password.take();
    Ok((options, from_file))
}

fn tell(end: End, warnings: &wire::UrlWarnings) {
    for warning in warnings.messages() {
        tracing::warn!("{}: {warning}", end.name());
    }
}

fn password(end: End, from_file: Option<Secret>) -> Option<Secret> {
    std::env::var(end.variable()).ok().map(Secret::new).or(from_file)
}

fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn user_name() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".to_owned())
}
