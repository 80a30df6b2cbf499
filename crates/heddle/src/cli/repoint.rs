//! `heddle repoint`: a running server follows another source.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serve::status::control;

use super::exit::EXIT_OK;
use output::say;

/// Point a running `heddle serve` to another source, by GTID
///
/// The new source must have every transaction of the mirror, and what comes next; otherwise nothing changes, and the exit code is 1. Replicas that are attached by GTID go on.
/// It asks the server through its folder: run it as the user that the server runs as.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle repoint --dir /srv/mirror --from mysql://repl@two:3306

Password: as the running server has it, in HEDDLE_SOURCE_PASSWORD or its option file; or in the URL. Change --from where the server is started as well: it counts at the next start.")]
pub struct RepointArgs {
    /// The --dir of the running server
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// mysql://user@host:port[?…], as for heddle serve. Of several, the first that can be followed; later each may become the source
    #[arg(long, value_name = "SOURCE", required = true)]
    from: Vec<String>,
}

pub fn run(args: &RepointArgs) -> Result<ExitCode> {
    match control::repoint(&args.dir, &args.from).map_err(anyhow::Error::new)? {
        Some(source) => say!("{} follows {source}", args.dir.display()),
        None => bail!(
            "no heddle serve runs in {}: start it with the new source as its --from, which does the same",
            args.dir.display()
        ),
    }
    Ok(ExitCode::from(EXIT_OK))
}
