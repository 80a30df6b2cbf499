//! `heddle serve`: so far the mirror that a binlog server stands on.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serve::mirror::{self, Keep, Plan, Until, Upstream};

use super::connect::{self, End};
use super::exit::EXIT_OK;
use super::feed::parse_bytes;
use super::signals::Ending;
use crate::report::out::say;

const DAY: Duration = Duration::from_secs(86_400);

/// Keep an exact copy of a source's binary logs: its files, under their names, byte for byte
///
/// Replicas can not attach to it yet. The folder can be read by `heddle replicate`, `heddle inspect`, mysqlbinlog and by a server. Only what is
/// durable counts as there: the same command again goes on behind it, whatever has ended it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --until-end
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --keep-days 30 --keep-free 50G
  heddle replicate --from /srv/mirror --to mysql://heddle@restore:3306 --until-time '2026-11-20 03:14:00'

Password: HEDDLE_SOURCE_PASSWORD, an option file, or a prompt.")]
pub struct ServeArgs {
    /// mysql://user@host:port[?…]
    #[arg(long, value_name = "SOURCE")]
    from: String,
    /// Where the files are kept: a folder of its own for each source
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Stop at the end that the source has now
    #[arg(long)]
    until_end: bool,
    /// Remove files in which everything is older, by the source's clock
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u32>,
    /// Remove the oldest files when all of them are larger than this, such as 500G
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    keep_bytes: Option<u64>,
    /// Remove the oldest files when less than this is free on the disk
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    keep_free: Option<u64>,
    /// This replica's number towards the source: must differ from every other replica's
    #[arg(long)]
    server_id: Option<u32>,
    /// How long to try to reach a source that is away, at the start and later, in seconds; 0: once
    #[arg(long, value_name = "S", default_value_t = 3600)]
    connect_retry_seconds: u64,
    /// Option file ([client], [heddle]) for the source
    #[arg(long, value_name = "FILE")]
    source_defaults_file: Option<PathBuf>,
}

pub fn run(args: &ServeArgs) -> Result<ExitCode> {
    let ending = Ending::default();
    let mut options = connect::options(End::Source, &args.from, args.source_defaults_file.as_deref())?;
    options.limits.interrupt = ending.interrupt();
    let upstream = Upstream {
        options,
        server_id: args.server_id.unwrap_or_else(|| super::feed::server_id("mirror", &args.dir.to_string_lossy())),
        retry_for: Duration::from_secs(args.connect_retry_seconds),
    };
    let keep = Keep { age: args.keep_days.map(|days| DAY * days), bytes: args.keep_bytes, free: args.keep_free };
    let plan = Plan { until: if args.until_end { Until::SourceEnd } else { Until::Stopped }, keep };
    ending.watch()?;
    let done = mirror::run(&upstream, &args.dir, plan, &ending.stop).map_err(anyhow::Error::new)?;
    let position = done.position.map_or_else(|| "nothing".to_owned(), |at| at.to_string());
    say!("{} files in {}, durable up to {position}; {} bytes came", done.files, args.dir.display(), done.bytes);
    Ok(ExitCode::from(EXIT_OK))
}
