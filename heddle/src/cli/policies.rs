//! `heddle policies`: what there is to choose from.

use crate::report::out::say;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

/// List the parallelism policies
#[derive(Debug, Args)]
pub struct PoliciesArgs {
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

/// name, what it needs, what it guarantees, what blocks it
const POLICIES: [(&str, &str, &str, &str); 2] = [
    (
        "writeset",
        "row format; keys of the tables (read from the target)",
        "transactions that touch a common key keep their order",
        "DDL, statements, tables without a unique key, keys of collations not handled yet (ordered by table)",
    ),
    ("serial", "nothing", "one after the other, as a replica without parallel replication", "every transaction"),
];

pub fn run(args: &PoliciesArgs) -> Result<ExitCode> {
    if args.json {
        let list: Vec<_> = POLICIES
            .iter()
            .map(|(name, needs, guarantees, blocked_by)| {
                serde_json::json!({"name": name, "needs": needs, "guarantees": guarantees, "blocked_by": blocked_by})
            })
            .collect();
        say!("{}", serde_json::to_string_pretty(&list)?);
    } else {
        for (name, needs, guarantees, blocked_by) in POLICIES {
            say!("{name}\n  needs       {needs}\n  guarantees  {guarantees}\n  blocked by  {blocked_by}");
        }
    }
    Ok(ExitCode::from(super::EXIT_OK))
}
