//! `heddle policies`: what there is to choose from.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use engine::policy::named::{ABOUT, ALWAYS, About, PolicyName};

use crate::report::out::say;

/// For `--policy`: names, each with what it is.
pub fn parser() -> impl TypedValueParser<Value = PolicyName> {
    let values = ABOUT.iter().map(|about| PossibleValue::new(about.name.as_str()).help(about.summary));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}

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
                serde_json::json!({"name": about.name.as_str(), "summary": about.summary, "needs": about.needs, "guarantees": about.guarantees,
                    "blocked_by": about.blocked_by})
            })
            .collect();
        say!("{}", serde_json::to_string_pretty(&list)?);
    } else {
        for About { name, summary, needs, guarantees, blocked_by } in ABOUT {
            say!(
                "{}: {summary}\n  needs       {needs}\n  guarantees  {guarantees}\n  blocked by  {blocked_by}",
                name.as_str()
            );
        }
        say!("\nAll are blocked by {ALWAYS}.");
    }
    Ok(ExitCode::from(super::EXIT_OK))
}
