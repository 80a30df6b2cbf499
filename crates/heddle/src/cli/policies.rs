//! `heddle policies`: what there is to choose from. Every text is made from the list.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use engine::policy::{self, ALWAYS, Policies, PolicyDescription, PolicySpec, WriteSets};

use output::say;

/// For `--policy`: names, each with what it is.
pub fn parser(list: Policies) -> impl TypedValueParser<Value = &'static PolicySpec> {
    let values = list.iter().map(|policy| PossibleValue::new(policy.name).help(policy.about.summary));
    PossibleValuesParser::new(values).try_map(move |name| list.named(&name))
}

/// Names in a sentence.
fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Those with lanes.
pub fn with_lanes(list: Policies) -> String {
    join(list.with_lanes().map(|(policy, _)| policy.name))
}

/// Those that go by MySQL's rules for write sets.
pub fn with_server_sets(list: Policies) -> String {
    join(list.iter().filter(|policy| policy.requires.write_sets == WriteSets::Server).map(|policy| policy.name))
}

/// What a lane is, for each policy that has them.
pub fn lanes(list: Policies) -> String {
    let lanes: Vec<String> = list.with_lanes().map(|(policy, lane)| format!("{}: one {lane}", policy.name)).collect();
    lanes.join("; ")
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
        output::streams::json(&serde_json::to_string_pretty(&json(policy::ALL))?);
    } else {
        say!("{}", text(policy::ALL));
    }
    Ok(ExitCode::from(super::exit::EXIT_OK))
}

fn json(list: Policies) -> Vec<serde_json::Value> {
    list.iter()
        .map(|PolicySpec { name, about: PolicyDescription { summary, needs, guarantees, blocked_by }, .. }| {
            serde_json::json!({"name": name, "summary": summary, "needs": needs, "guarantees": guarantees, "blocked_by": blocked_by})
        })
        .collect()
}

fn text(list: Policies) -> String {
    let mut text = String::new();
    for PolicySpec { name, about: PolicyDescription { summary, needs, guarantees, blocked_by }, .. } in list.iter() {
        let _ = writeln!(
            text,
            "{name}: {summary}\n  needs       {needs}\n  guarantees  {guarantees}\n  blocked by  {blocked_by}"
        );
    }
    let _ = write!(text, "\nAll are blocked by {ALWAYS}.");
    text
}

#[cfg(test)]
#[path = "../../../engine/src/policy/throwaway.rs"]
mod throwaway;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// The part of docs/policies.md that this list makes.
    fn table(list: Policies) -> String {
        let mut table = "| Policy | Is | Needs | Commit orders |\n|---|---|---|---|\n".to_owned();
        for PolicySpec { name, about, requires, .. } in list.iter() {
            let orders: Vec<String> = requires.orders.iter().map(|order| format!("`{}`", order.as_str())).collect();
            let _ = writeln!(table, "| `{name}` | {} | {} | {} |", about.summary, about.needs, orders.join(", "));
        }
        table
    }

    /// `HEDDLE_WRITE_DOCS=1` writes the table in place of comparing it.
    #[test]
    fn the_table_in_the_docs_is_the_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policies.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (begin, end) = ("<!-- policies: from the list -->\n", "<!-- end of policies -->");
        let (before, rest) = page.split_once(begin).unwrap();
        let (known, after) = rest.split_once(end).unwrap();
        let table = table(policy::ALL);
        if std::env::var_os("HEDDLE_WRITE_DOCS").is_some() {
            std::fs::write(path, format!("{before}{begin}{table}{end}{after}")).unwrap();
            return;
        }
        assert_eq!(known, table, "HEDDLE_WRITE_DOCS=1 cargo test -p heddle the_table_in_the_docs writes it");
    }

    #[derive(Debug, Parser)]
    struct Line {
        #[arg(long, value_parser = parser(throwaway::list()))]
        policy: &'static PolicySpec,
    }

    /// A file and a line in the list are all that a policy takes: see `crates/engine/src/policy/throwaway.rs`.
    #[test]
    fn one_more_policy_is_offered_everywhere() {
        let list = throwaway::list();
        assert_eq!(Line::try_parse_from(["", "--policy", "pairs"]).unwrap().policy, &throwaway::SPEC);
        let error = Line::try_parse_from(["", "--policy", "nonsense"]).unwrap_err().to_string();
        for text in [error, text(list), table(list), serde_json::to_string(&json(list)).unwrap()] {
            assert!(list.iter().all(|policy| text.contains(policy.name)), "{text}");
        }
        assert!(!text(policy::ALL).contains("pairs"));
    }
}
