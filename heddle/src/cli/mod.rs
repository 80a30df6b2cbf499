//! What people type. One file a subcommand: parse → validate → act.

mod connect;
mod demo;
mod feed;
mod inspect;
mod policies;
mod replicate;
mod rescue;
mod signals;
mod simulate;
mod status;
mod store;
mod time;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::report::out::{chain, complain, is_whole};

/// The channel went on to where it was told to.
pub const EXIT_OK: u8 = 0;
/// A failure: the message says what happened, where, and what to do.
pub const EXIT_FAILED: u8 = 1;
/// `rescue`: stopped before the hand-back; the replica does not replicate by itself.
pub const EXIT_UNFINISHED: u8 = 3;
/// The command line was not understood (clap's own code).
pub const EXIT_USAGE: u8 = 2;
/// A part of the input could not be read; the output says which.
pub const EXIT_PARTIAL: u8 = 4;

/// What clap lets pass and is wrong all the same, whatever the servers and files are.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn exit_code(error: &anyhow::Error) -> u8 {
    let is_usage = error.chain().any(|cause| cause.is::<Usage>() || cause.is::<wire::UrlError>());
    if is_usage { EXIT_USAGE } else { EXIT_FAILED }
}

#[derive(Debug, Parser)]
#[command(
    name = "heddle",
    version,
    about = "Parallel replication for MySQL and MariaDB",
    long_about = "Heddle takes binary logs, live or from files, finds out which transactions can run in parallel, groups them, and \
                  applies them with many workers, exactly once through any crash.",
    after_help = "Exit codes: 0 done · 1 failed, the message says why and what to do · 2 the command line was not understood · 3 a rescue is not finished · 4 inspect, simulate: a part could not be read",
    propagate_version = true
)]
struct Cli {
    /// Log level: error, warn, info, debug, trace; or a filter as in RUST_LOG [default: info; of demo: warn]
    #[arg(long, global = true, value_parser = log_filter)]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Inspect(inspect::InspectArgs),
    Simulate(Box<simulate::SimulateArgs>),
    Replicate(Box<replicate::ReplicateArgs>),
    Rescue(Box<rescue::RescueArgs>),
    Status(status::StatusArgs),
    Policies(policies::PoliciesArgs),
    Store(store::StoreArgs),
}

pub fn run() -> ExitCode {
    let cli = Cli::parse();
    // The demo's channels have nothing to say that its table does not.
    let usual = if matches!(cli.command, Command::Demo(_)) { "warn" } else { "info" };
    start_log(cli.log.as_deref().unwrap_or(usual));
    let done = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Replicate(args) => replicate::run(&args),
        Command::Rescue(args) => rescue::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Store(args) => store::run(&args),
    };
    match done {
        // What was done is done; whoever reads the report must not take it for one.
        Ok(code) if code == ExitCode::SUCCESS && !is_whole() => ExitCode::from(EXIT_FAILED),
        Ok(code) => code,
        Err(error) => {
            complain!("heddle: {}", chain(&error));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn log_filter(text: &str) -> Result<String, ParseError> {
    EnvFilter::try_new(text).map(|_| text.to_owned())
}

/// Log lines go to standard error: standard output is for results.
fn start_log(filter: &str) {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(crate::observe::progress::writer)
        .with_ansi(crate::report::out::may_colour(&std::io::stderr()))
        .with_target(false)
        .init();
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_command_line_that_was_not_understood_has_its_own_exit_code() {
        let url = || wire::ConnectOptions::from_url("mysql://host:notaport").context("the target's URL");
        assert_eq!(exit_code(&url().unwrap_err()), EXIT_USAGE);
        assert_eq!(exit_code(&anyhow::Error::new(Usage("--channel".to_owned()))), EXIT_USAGE);
        assert_eq!(exit_code(&anyhow::anyhow!("no answer").context("target")), EXIT_FAILED);
    }
}
