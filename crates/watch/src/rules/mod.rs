//! The rules: each looks at a period and says whether its cause is there, with the numbers that say so. Pure: no rule asks a server.
//!
//! One file a rule, which exports its [`Rule`]; [`ALL`] is the only list. A rule that concerns speed is silent while the applier has time left
//! ([`ChannelFacts::has_backlog`]): a replica that keeps up needs no advice.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::Period;
use crate::rules::finding::{Finding, Limits};

pub mod finding;
mod machine;
mod order;
mod rule;
#[cfg(test)]
mod tests;
mod threads;
mod transactions;
mod workers;

use rule::Rule;
pub use rule::by_lag;

pub const ALL: &[Rule] = &[
    threads::held::RULE,
    threads::stopped::RULE,
    transactions::blocked::RULE,
    transactions::ddl::RULE,
    transactions::large::RULE,
    transactions::no_key::RULE,
    order::dependency::RULE,
    order::source_tags::RULE,
    workers::more_workers::RULE,
    workers::fewer_workers::RULE,
    order::commit_order::RULE,
    order::hot_rows::RULE,
    workers::queue::RULE,
    workers::coordinator::RULE,
    machine::durability::RULE,
    machine::redo_log::RULE,
    machine::buffer_pool::RULE,
    threads::receiver::RULE,
    order::intermediate::RULE,
    threads::delayed::RULE,
    threads::rescue::RULE,
];

/// What all rules say, the worst first; among equals in the order of [`ALL`], but by what they give where that is known.
pub fn findings(seen: &ChannelFacts<'_>, limits: Limits) -> Vec<Finding> {
    let mut found: Vec<Finding> = ALL
        .iter()
        .filter_map(|rule| (rule.check)(seen, limits).map(|finding| Finding { rule: rule.name, ..finding }))
        .collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found.chunk_by_mut(|one, next| one.severity == next.severity).for_each(rank);
    found
}

/// Of equals those whose gain is known: what gives more comes first, in the places that they have.
fn rank(equals: &mut [Finding]) {
    let places: Vec<usize> =
        equals.iter().enumerate().filter(|(_, one)| one.change.times.is_some()).map(|(at, _)| at).collect();
    let mut ranked: Vec<Finding> = places.iter().filter_map(|&at| equals.get(at).cloned()).collect();
    ranked.sort_by(|one, other| other.change.times.unwrap_or(0.0).total_cmp(&one.change.times.unwrap_or(0.0)));
    for (at, finding) in places.into_iter().zip(ranked) {
        if let Some(place) = equals.get_mut(at) {
            *place = finding;
        }
    }
}

/// Whether it is worth while to ask which tables the applier has open.
pub fn wants_open_tables(period: &Period) -> bool {
    let mut threads = period.samples.iter().flat_map(|sample| &sample.threads);
    wants_keyless_tables(period) || threads.any(|thread| transactions::ddl::is_state_of_ddl(&thread.state))
}

/// What each rule looks at and advises, a line each.
pub fn table() -> String {
    ALL.iter().map(|rule| format!("| `{}` | {} | {} |\n", rule.name, rule.looks_at, rule.advice)).collect()
}

/// Whether it is worth while to ask which tables have no key.
pub fn wants_keyless_tables(period: &Period) -> bool {
    transactions::no_key::is_suspected(period)
}
