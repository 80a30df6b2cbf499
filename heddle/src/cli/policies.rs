//! `heddle policies`: what there is to choose from.

use crate::report::out::say;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::runtime::policies::{ABOUT, ALWAYS, About};

/// List the parallelism policies
#[derive(Debug, Args)]
pub struct PoliciesArgs {
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

pub fn run(args: &PoliciesArgs) -> Result<ExitCode> {
    if args.json {
        let list: Vec<_> = ABOUT
            .iter()
            .map(|about| {
                serde_json::json!({"name": about.name.as_str(), "needs": about.needs, "guarantees": about.guarantees,
                    "blocked_by": about.blocked_by})
            })
            .collect();
        say!("{}", serde_json::to_string_pretty(&list)?);
    } else {
        for About { name, needs, guarantees, blocked_by } in ABOUT {
            say!("{}\n  needs       {needs}\n  guarantees  {guarantees}\n  blocked by  {blocked_by}", name.as_str());
        }
        say!("\nAll are blocked by {ALWAYS}.");
    }
    Ok(ExitCode::from(super::EXIT_OK))
}
