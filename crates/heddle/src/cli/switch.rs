//! `heddle switch`: applications from a channel's source to its target.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use copy::compare::report::ShowValues;
use copy::compare::{Pace, Request as ComparisonRequest};
use switch::report::{Outcome, Report};
use switch::request::{AfterSteps, ClosingMethod, Comparison, Request, ReturnCommand, Task};
use wire::redacted;

use super::compare::{TableChoice, period};
use super::connect::{self, End};
use super::exit::{EXIT_DIFFERENT, EXIT_FAILED, EXIT_OK, EXIT_UNFINISHED, exit_code};
use super::feed::server_id;
use super::headings::EXPERT;
use super::selection::ComparedArgs;
use super::signals::Ending;
use apply::mysql::progress::SCHEMA;
use output::complain;

/// Move the applications from a channel's source to its target: make the source read-only, wait until the target has everything, name the way back
///
/// The channel (heddle replicate) runs meanwhile in its own process. Before the target has everything, whatever ends the switch sets the source back: an error, a
/// signal, the time limit. After kill -9 the same command goes on, and --undo sets back what was changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle switch --from mysql://heddle@old:3306 --to mysql://heddle@new:3306 --dry-run
  heddle switch --from mysql://heddle@old:3306 --to mysql://heddle@new:3306
  heddle switch --from mysql://heddle@old:3306 --to mysql://heddle@new:3306 --compare --target-writable --enable-events --reverse
  heddle switch --from mysql://heddle@old:3306 --to mysql://heddle@new:3306 --undo

Account on the source: as for the channel, and to make it read-only SYSTEM_VARIABLES_ADMIN and CONNECTION_ADMIN (MariaDB: READ ONLY ADMIN); on the target: as for the
channel. docs/move.md has the whole way. Passwords: HEDDLE_SOURCE_PASSWORD, HEDDLE_TARGET_PASSWORD, option files, or a prompt.

Exit codes: 0 switched, or undone, or nothing stands in the way (--dry-run) · 1 refused or failed: the source is as it was · 5 --compare: rows differ, the source is as it
was · 75 not in time, a server is away, or ended by a signal: the source is as it was · 3 the source is read-only: the same command goes on, --undo sets it back")]
pub struct SwitchArgs {
    /// The source, mysql://user@host:port[?…]
    #[arg(long, value_name = "SOURCE")]
    from: String,
    /// The target, mysql://user@host:port[?…]
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// Look, and say what each step would do; change nothing. Exit code 1 if something is refused
    #[arg(long, conflicts_with = "undo")]
    dry_run: bool,
    /// Set back what an interrupted switch has changed, or one whose target was not written to since
    #[arg(long)]
    undo: bool,
    /// Heddle's channel on the target; default: the only one of this source
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// You make the source read-only: heddle waits for it. Without this it waits where its account may not
    #[arg(long, conflicts_with_all = ["writes_stopped", "undo"])]
    wait_for_read_only: bool,
    /// Nobody writes to the source, and it cannot be made read-only: heddle only looks whether its log stands still
    #[arg(long, conflicts_with = "undo")]
    writes_stopped: bool,
    /// How long to wait, each time: until the target keeps up, until the source is read-only, until the target has everything
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = period)]
    timeout: Duration,
    /// Compare all rows before the target takes writes; a difference sets the source back. The source is read-only meanwhile, without the time limit
    #[arg(long, conflicts_with = "undo")]
    compare: bool,
    #[command(flatten)]
    compared: ComparedArgs,
    /// Make the target writable if it is read_only
    #[arg(long, conflicts_with = "undo")]
    target_writable: bool,
    /// Enable the events that a copy or a channel has disabled on the target. Without this their statements are printed
    #[arg(long, conflicts_with = "undo")]
    enable_events: bool,
    /// Make the source ready for the channel back: super_read_only off, read_only stays. Its command is printed in any case
    #[arg(long, conflicts_with = "undo")]
    reverse: bool,
    /// Print what happened as JSON on standard output at the end
    #[arg(long)]
    json: bool,
    /// Server id under which the source's log is read, and the next one: must differ from every replica's; default: made from both addresses
    #[arg(long, value_name = "N", help_heading = EXPERT, value_parser = clap::value_parser!(u32).range(1..i64::from(u32::MAX)))]
    server_id: Option<u32>,
    /// Option file for the source, groups [client] and [heddle]
    #[arg(long, value_name = "FILE", help_heading = EXPERT)]
    source_defaults_file: Option<PathBuf>,
    /// Option file for the target
    #[arg(long, value_name = "FILE", help_heading = EXPERT)]
    target_defaults_file: Option<PathBuf>,
}

pub fn run(args: &SwitchArgs) -> Result<ExitCode> {
    let ending = Ending::default();
    let mut source = connect::options(End::Source, &args.from, args.source_defaults_file.as_deref())?;
    let mut target = connect::options(End::Target, &args.to, args.target_defaults_file.as_deref())?;
    source.limits.interrupt = ending.interrupt();
    target.limits.interrupt = ending.interrupt();
    let number =
        args.server_id.unwrap_or_else(|| server_id("switch", &format!("{} {}", source.address(), target.address())));
    let choice = TableChoice::new(args.compared.filter(), &[]);
    let comparison = args.compare.then(|| Comparison {
        request: ComparisonRequest {
            source: source.clone(),
            target: target.clone(),
            channel: args.channel.clone(),
            server_id: number,
            pace: Pace { chunk_time: CHUNK_TIME, threads_running_max: None },
            differences_max: DIFFERENCES_MAX,
            show_values: ShowValues::Masked,
            repair: None,
            state: None,
        },
        choice: &choice,
    });
    let request = Request {
        source,
        target,
        channel: args.channel.clone(),
        task: match (args.dry_run, args.undo) {
            (true, _) => Task::DryRun,
            (false, true) => Task::Undo,
            (false, false) => Task::Switch,
        },
        closing: match (args.wait_for_read_only, args.writes_stopped) {
            (true, _) => ClosingMethod::Waiting,
            (false, true) => ClosingMethod::Stopped,
            (false, false) => ClosingMethod::ReadOnly,
        },
        timeout: args.timeout,
        server_id: number,
        comparison,
        after: AfterSteps {
            makes_writable: args.target_writable,
            enables_events: args.enable_events,
            prepares_return: args.reverse,
            return_command: return_command(args),
        },
        talk: !args.json,
    };
    ending.watch_to_the_end()?;
    let (report, error) = switch::run::run(&request, &ending.stop);
    finish(&report, error.as_ref(), args.json)
}

/// As `compare` has them by default.
const CHUNK_TIME: Duration = Duration::from_millis(500);
const DIFFERENCES_MAX: usize = 100;

/// The ends have changed places, and so have their option files. Passwords are not repeated.
fn return_command(args: &SwitchArgs) -> ReturnCommand {
    let mut program = vec!["heddle".to_owned()];
    if SCHEMA.name() != engine::intake::BOOKKEEPING_SCHEMA {
        program.extend(["--bookkeeping-schema".to_owned(), SCHEMA.name().to_owned()]);
    }
    let mut options = Vec::new();
    let files = [
        ("--source-defaults-file", &args.target_defaults_file),
        ("--target-defaults-file", &args.source_defaults_file),
    ];
    for (flag, file) in files {
        if let Some(file) = file {
            options.extend([flag.to_owned(), file.display().to_string()]);
        }
    }
    ReturnCommand { program, from: redacted(&args.to), to: redacted(&args.from), options }
}

fn finish(report: &Report, error: Option<&anyhow::Error>, is_json: bool) -> Result<ExitCode> {
    if is_json {
        output::streams::json(&serde_json::to_string(report).context("the report as JSON")?);
    }
    if let Some(error) = &report.error {
        complain!("heddle: {error}");
    }
    Ok(ExitCode::from(code(report.outcome, error)))
}

fn code(outcome: Outcome, error: Option<&anyhow::Error>) -> u8 {
    match outcome {
        Outcome::Looked | Outcome::Switched | Outcome::Undone => EXIT_OK,
        Outcome::Refused => EXIT_FAILED,
        Outcome::Failed => error.map_or(EXIT_FAILED, exit_code),
        Outcome::Different => EXIT_DIFFERENT,
        Outcome::Unfinished => EXIT_UNFINISHED,
    }
}

#[cfg(test)]
mod tests {
    use engine::failure::{Failure, FailureKind};

    use super::super::exit::EXIT_TRY_AGAIN;
    use super::*;

    #[test]
    fn scripts_know_whether_the_source_is_as_it_was() {
        let error = |kind| anyhow::Error::new(Failure::new(kind, "x"));
        let check = |outcome, error: Option<anyhow::Error>, expected| {
            assert_eq!(code(outcome, error.as_ref()), expected, "{outcome:?} {error:?}");
        };
        check(Outcome::Switched, None, EXIT_OK);
        check(Outcome::Looked, None, EXIT_OK);
        check(Outcome::Refused, None, EXIT_FAILED);
        check(Outcome::Failed, Some(error(FailureKind::Refused)), EXIT_FAILED);
        check(Outcome::Failed, Some(error(FailureKind::Maintenance)), EXIT_TRY_AGAIN);
        check(Outcome::Failed, Some(error(FailureKind::Stopped)), EXIT_TRY_AGAIN);
        check(Outcome::Different, Some(error(FailureKind::Divergence)), EXIT_DIFFERENT);
        check(Outcome::Unfinished, Some(error(FailureKind::Maintenance)), EXIT_UNFINISHED);
    }
}
