//! The values that options of `heddle replicate` take, and help that is made from them.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use engine::policy::{self, CommitOrder};
use engine::schedule::Grouping;
use engine::tags::Generation;

use crate::cli::policies;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Gtids {
    Preserve,
    Local,
}

/// What becomes of a table that a `CREATE` finds, or a `DROP` does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DdlMode {
    Strict,
    Idempotent,
    Skip,
}

/// What becomes of the source's statements about accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccountMode {
    Apply,
    Skip,
}

/// What becomes of the source's statements that are not deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnsafeMode {
    Warn,
    Stop,
}

pub fn commit_order_parser() -> impl TypedValueParser<Value = CommitOrder> {
    PossibleValuesParser::new(CommitOrder::ALL.map(CommitOrder::as_str))
        .map(|name| CommitOrder::ALL.into_iter().find(|order| order.as_str() == name).unwrap_or(CommitOrder::Preserve))
}

pub fn commit_order_help() -> String {
    format!(
        "preserve: readers see only states that the source had · per-lane: as the source in each lane (policies {}) · relaxed: commit as soon as possible",
        policies::with_lanes(policy::ALL)
    )
}

pub fn lane_workers_help() -> String {
    format!("The most workers that one lane may have, with a policy that has lanes ({})", policies::lanes(policy::ALL))
}

pub fn history_help() -> String {
    format!(
        "Policies {}: hashes to remember, binlog_transaction_dependency_history_size",
        policies::with_server_sets(policy::ALL)
    )
}

pub fn rules_parser() -> impl TypedValueParser<Value = Generation> {
    let values = Generation::ALL.map(|rules| match rules.about() {
        "" => PossibleValue::new(rules.as_str()),
        about => PossibleValue::new(rules.as_str()).help(about),
    });
    PossibleValuesParser::new(values)
        .map(|name| Generation::ALL.into_iter().find(|rules| rules.as_str() == name).unwrap_or(Generation::Mysql84))
}

pub fn parse_grouping(text: &str) -> Result<Grouping, String> {
    match text {
        "auto" => Ok(Grouping::Auto),
        "off" => Ok(Grouping::Off),
        text => match text.parse() {
            Ok(0) | Err(_) => Err("auto, off, or the most transactions in a group".to_owned()),
            Ok(1) => Ok(Grouping::Off),
            Ok(most) => Ok(Grouping::UpTo(most)),
        },
    }
}
