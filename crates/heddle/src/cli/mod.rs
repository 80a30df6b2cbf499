//! What people type. One file a subcommand: parse → validate → act.

mod archive;
mod bar;
mod byte_size;
mod channel;
mod compare;
mod completions;
mod config;
mod connect;
mod copy;
mod demo;
mod exit;
mod feed;
mod headings;
mod http;
mod inspect;
mod log;
mod log_files;
mod policies;
#[cfg(test)]
mod reference;
mod replicate;
mod repoint;
mod rescue;
mod retag;
mod rows;
mod run;
mod search;
mod selection;
mod serve;
mod settle;
mod signals;
mod simulate;
mod state_dir;
mod status;
mod store;
mod switch;
mod time;
#[cfg(feature = "top")]
mod top;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use apply::mysql::progress::BookkeepingSchema;
use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use self::config::ExpandedArguments;
use self::exit::{EXIT_FAILED, EXIT_TRY_AGAIN, EXIT_USAGE, exit_code};
use self::log::LogFormat;
use ::channel::errors::chain;
use output::complain;
use output::streams::{Loss, loss};

#[derive(Debug, Parser)]
#[command(
    name = "heddle",
    version,
    about = "Parallel replication for MySQL and MariaDB",
    long_about = "Heddle takes binary logs, live or from files, finds out which transactions can run in parallel, groups them, and \
                  applies them with many workers, exactly once through any crash.",
    after_help = "Exit codes: 0 done · 1 failed and needs a person, the message says why and what to do · 2 the command line was not understood · 3 a rescue or a switch is not finished · 4 inspect, simulate: a part could not be read · 5 compare, switch: rows differ · 75 a server or the network is away: try again",
    propagate_version = true
)]
struct Cli {
    /// Log level: error, warn, info, debug, trace; or a filter as in RUST_LOG [default: info; of demo: warn]
    #[arg(long, global = true, value_parser = log_filter)]
    log: Option<String>,
    /// Format of standard error
    #[arg(long, global = true, value_enum, default_value = "text", value_name = "FORMAT")]
    log_format: LogFormat,
    /// Flags from a TOML file, by their names without the dashes: workers = 8. The command line wins
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Schema of heddle's own tables on the target, for sources with a schema heddle [default: heddle]
    #[arg(long, global = true, value_name = "NAME", value_parser = bookkeeping_schema)]
    bookkeeping_schema: Option<String>,
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
    Compare(Box<compare::CompareArgs>),
    Switch(Box<switch::SwitchArgs>),
    Serve(Box<serve::ServeArgs>),
    Repoint(repoint::RepointArgs),
    Retag(retag::RetagArgs),
    Archive(archive::ArchiveArgs),
    Status(status::StatusArgs),
    #[cfg(feature = "top")]
    Top(top::TopArgs),
    Channel(channel::ChannelArgs),
    Settle(settle::SettleArgs),
    Policies(policies::PoliciesArgs),
    Store(store::StoreArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Man(completions::ManArgs),
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
    // clap has checked it.
    cli.bookkeeping_schema.as_deref().map(BookkeepingSchema::set).transpose().unwrap_or_default();
    let done = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Replicate(args) => replicate::run(&args),
        Command::Run(args) => {
            let shared = run::SharedFlags {
                filter: cli.log,
                format: cli.log_format,
                bookkeeping_schema: cli.bookkeeping_schema,
            };
            run::run(&args, &shared)
        }
        Command::Rescue(args) => rescue::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Switch(args) => switch::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Repoint(args) => repoint::run(&args),
        Command::Retag(args) => retag::run(&args),
        Command::Archive(args) => archive::run(&args),
        Command::Status(args) => status::run(&args),
        #[cfg(feature = "top")]
        Command::Top(args) => top::run(&args),
        Command::Channel(args) => channel::run(&args),
        Command::Settle(args) => settle::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Completions(args) => completions::completions(&args, &mut Cli::command()),
        Command::Man(args) => completions::man(&args, Cli::command()),
    };
    match done {
        // What was done is done; whoever reads the report must not take it for one.
        Ok(code) if code == ExitCode::SUCCESS => match loss() {
            None => code,
            Some(Loss::Passing) => ExitCode::from(EXIT_TRY_AGAIN),
            Some(Loss::Other) => ExitCode::from(EXIT_FAILED),
        },
        Ok(code) => code,
        Err(error) => {
            complain!("heddle: {}", chain(&error));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Says what was not understood, as clap does, or shows what was asked for (help, the version). Passwords in URLs are not repeated.
fn misunderstood(error: &clap::Error, expanded: &ExpandedArguments) -> ExitCode {
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

fn bookkeeping_schema(text: &str) -> Result<String, &'static str> {
    BookkeepingSchema::check(text).map(|()| text.to_owned())
}

fn log_filter(text: &str) -> Result<String, ParseError> {
    EnvFilter::try_new(text).map(|_| text.to_owned())
}
