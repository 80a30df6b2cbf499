//! `heddle status`: where a channel is.

use crate::report::out::say;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::connect::{self, End};

/// Show the progress and the lag of the channels of a target
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// mysql://user@host:port[?…], or store:PATH
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// Only this channel
    #[arg(long)]
    channel: Option<String>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
    /// Option file for the target
    #[arg(long, value_name = "FILE")]
    target_defaults_file: Option<PathBuf>,
}

pub fn run(args: &StatusArgs) -> Result<ExitCode> {
    let mut channels = match args.to.strip_prefix("store:") {
        Some(path) => apply::store::status(std::path::Path::new(path)).map_err(anyhow::Error::new)?,
        None => {
            let options = connect::options(End::Target, &args.to, args.target_defaults_file.as_deref())?;
            apply::mysql::progress::status::read(&options).map_err(anyhow::Error::new)?
        }
    };
    if let Some(name) = &args.channel {
        channels.retain(|channel| channel.channel == *name);
        if channels.is_empty() {
            anyhow::bail!("there is no channel {name} on this target");
        }
    }
    if args.json {
        crate::report::out::json(&serde_json::to_string_pretty(&channels)?);
    } else if channels.is_empty() {
        say!("no channel has ever run into this target");
    } else {
        for channel in &channels {
            say!("{}", crate::report::status::text(channel));
        }
    }
    Ok(ExitCode::from(super::exit::EXIT_OK))
}
