//! `heddle store`: look into an embedded store that no channel has open.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use apply::store;
use output::say;
use output::streams::{Pipe, Screen};

/// Look into an embedded store
#[derive(Debug, Args)]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Rows and checksum of each table: equal contents give equal checksums, however they came about
    Checksum {
        /// The store's folder
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Machine-readable output
        #[arg(long)]
        json: bool,
    },
    /// The rows of a table as tab-separated text
    Dump {
        /// The store's folder
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// The table
        #[arg(value_name = "SCHEMA.TABLE")]
        table: String,
    },
}

pub fn run(args: &StoreArgs) -> Result<ExitCode> {
    match &args.command {
        StoreCommand::Checksum { path, json } => {
            let sums = store::checksum(path).map_err(anyhow::Error::new)?;
            if *json {
                let list: Vec<_> = sums
                    .iter()
                    .map(|sum| {
                        serde_json::json!({"table": sum.table, "rows": sum.rows, "checksum": format!("{:032x}", sum.checksum)})
                    })
                    .collect();
                output::streams::json(&serde_json::to_string_pretty(&list)?);
            } else {
                for sum in sums {
                    say!("{:032x}  {:>10}  {}", sum.checksum, sum.rows, sum.table);
                }
            }
        }
        StoreCommand::Dump { path, table } => {
            let stdout = std::io::stdout().lock();
            let to_people = stdout.is_terminal();
            let mut out = std::io::BufWriter::new(Pipe::new(stdout));
            let dumped = if to_people {
                store::dump(path, table, &mut Screen(&mut out))
            } else {
                store::dump(path, table, &mut out)
            };
            let done = dumped.map_err(anyhow::Error::new);
            let done = done.and_then(|()| out.flush().context("writing the rows"));
            if !out.get_ref().gone {
                done?;
            }
        }
    }
    Ok(ExitCode::from(super::exit::EXIT_OK))
}
