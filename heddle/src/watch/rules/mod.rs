//! The rules: each looks at a period and says whether its cause is there, with the numbers that say so. Pure: no rule asks a server.
//!
//! One file a rule, which exports its [`Rule`]; [`ALL`] is the only list. A rule that concerns speed is silent while the applier has time left
//! ([`Seen::has_backlog`]): a replica that keeps up needs no advice.

use crate::watch::facts::period::Period;
use crate::watch::facts::seen::Seen;
use crate::watch::said::finding::{Finding, Limits};

mod machine;
mod order;
mod rule;
#[cfg(test)]
mod tests;
mod threads;
mod transactions;
mod workers;

use rule::Rule;

pub const ALL: &[Rule] = &[
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

/// What all rules say, the worst first; among equals in the order of [`ALL`].
pub fn findings(seen: &Seen<'_>, limits: Limits) -> Vec<Finding> {
    let mut found: Vec<Finding> = ALL
        .iter()
        .filter_map(|rule| (rule.check)(seen, limits).map(|finding| Finding { rule: rule.name, ..finding }))
        .collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
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
