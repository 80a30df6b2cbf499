//! What people type. One file a subcommand: parse → validate → act.

mod archive;
mod bar;
mod channel;
mod config;
mod connect;
mod demo;
mod derived;
mod exit;
mod feed;
mod headings;
mod inspect;
mod policies;
#[cfg(test)]
mod reference;
mod replicate;
mod repoint;
mod rescue;
mod retag;
mod run;
mod serve;
mod settle;
mod signals;
mod simulate;
mod status;
mod store;
mod time;
mod top;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use self::config::Expanded;
use self::exit::{EXIT_FAILED, EXIT_USAGE, exit_code};
use crate::observe::log::{self, LogFormat};
use crate::report::out::{chain, complain, is_whole};

#[derive(Debug, Parser)]
#[command(
    name = "heddle",
    version,
    about = "Parallel replication for MySQL and MariaDB",
    long_about = "Heddle takes binary logs, live or from files, finds out which transactions can run in parallel, groups them, and \
                  applies them with many workers, exactly once through any crash.",
    after_help = "Exit codes: 0 done · 1 failed and needs a person, the message says why and what to do · 2 the command line was not understood · 3 a rescue is not finished · 4 inspect, simulate: a part could not be read · 75 a server or the network is away: try again",
    propagate_version = true
)]
struct Cli {
    /// Log level: error, warn, info, debug, trace; or a filter as in RUST_LOG [default: info; of demo: warn]
    #[arg(long, global = true, value_parser = log_filter)]
    log: Option<String>,
    /// What is written to standard error: text for people, or one JSON object a line
    #[arg(long, global = true, value_enum, default_value = "text", value_name = "FORMAT")]
    log_format: LogFormat,
    /// Flags from a TOML file, by their names without the dashes: workers = 8. What is typed wins
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Inspect(inspect::InspectArgs),
    Simulate(Box<simulate::SimulateArgs>),
    Replicate(Box<replicate::ReplicateArgs>),
    Run(run::RunArgs),
    Rescue(Box<rescue::RescueArgs>),
    Watch(watch::WatchArgs),
    Serve(Box<serve::ServeArgs>),
    Repoint(repoint::RepointArgs),
    Retag(retag::RetagArgs),
    Archive(archive::ArchiveArgs),
    Status(status::StatusArgs),
    Top(top::TopArgs),
    Channel(channel::ChannelArgs),
    Settle(settle::SettleArgs),
    Policies(policies::PoliciesArgs),
    Store(store::StoreArgs),
    Completions(derived::CompletionsArgs),
    #[command(hide = true)]
    Man(derived::ManArgs),
}

pub fn run() -> ExitCode {
    signals::end_with_parent();
    let expanded = match config::expand(&Cli::command(), std::env::args_os().collect()) {
        Ok(expanded) => expanded,
        Err(error) => {
            complain!("heddle: {error}");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let cli = match Cli::try_parse_from(&expanded.arguments) {
        Ok(cli) => cli,
        Err(error) => return misunderstood(&error, &expanded),
    };
    // The demo's channels have nothing to say that its table does not.
    // A request to a store that is made again is no news: who asked says what came of it.
    let usual = if matches!(cli.command, Command::Demo(_)) { "warn" } else { "info,object_store=warn" };
    log::start(cli.log.as_deref().unwrap_or(usual), cli.log_format);
    let done = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Replicate(args) => replicate::run(&args),
        Command::Run(args) => run::run(&args, &run::Log { filter: cli.log, format: cli.log_format }),
        Command::Rescue(args) => rescue::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Repoint(args) => repoint::run(&args),
        Command::Retag(args) => retag::run(&args),
        Command::Archive(args) => archive::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Channel(args) => channel::run(&args),
        Command::Settle(args) => settle::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Completions(args) => derived::completions(&args, &mut Cli::command()),
        Command::Man(args) => derived::man(&args, Cli::command()),
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

/// Says what was not understood, as clap does, or shows what was asked for (help, the version). Passwords in URLs are not repeated.
fn misunderstood(error: &clap::Error, expanded: &Expanded) -> ExitCode {
    let shown = error.to_string();
    let typed = expanded.arguments.iter().map(|argument: &OsString| argument.to_string_lossy().into_owned());
    let values = typed.flat_map(|argument| {
        let value = argument.split_once('=').map(|(_, value)| value.to_owned());
        [Some(argument), value].into_iter().flatten()
    });
    let secret =
        |value: &String| wire::redacted(value) != binlog::text::escape(value) && shown.contains(value.as_str());
    let safe = values.filter(secret).fold(shown.clone(), |text, value| text.replace(&value, &wire::redacted(&value)));
    let file = expanded.file.as_ref().filter(|_| error.use_stderr());
    if safe == shown && file.is_none() {
        error.exit();
    }
    complain!("{}", safe.trim_end());
    if let Some(file) = file {
        complain!("\nA part of the flags is from the configuration file {}", file.display());
    }
    ExitCode::from(EXIT_USAGE)
}

fn log_filter(text: &str) -> Result<String, ParseError> {
    EnvFilter::try_new(text).map(|_| text.to_owned())
}
