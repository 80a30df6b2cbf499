//! What a transaction must wait for. One policy a file, each opening with the hazard that it prevents.
//!
//! A policy sees transactions in `seq` order and hears of commits only through the low water. It knows no
//! workers, no targets and no time.
//!
//! A new policy is a file here, its `mod` and its line in [`ALL`]. Nothing else names a policy: who has to treat one
//! differently asks for its [`Requirements`].

mod commit_order;
#[cfg(test)]
mod conformance;
mod conservative;
mod database;
mod domain;
mod list;
mod logical_clock;
mod minimal;
mod optimistic;
mod placement;
mod serial;
mod server_tags;
mod spec;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod throwaway;
mod writeset;

pub use commit_order::CommitOrder;
pub use conservative::ConservativePolicy;
pub use database::Database;
pub use domain::Domain;
pub use list::{Policies, PolicyError};
pub use logical_clock::LogicalClock;
pub use minimal::MinimalPolicy;
pub use optimistic::OptimisticPolicy;
pub use placement::{Lane, Placement, Policy, Watermark};
pub use serial::SerialPolicy;
pub use server_tags::ServerTags;
pub use spec::{
    Conflicts, Packets, PolicyDescription, PolicyOptions, PolicySpec, Requirements, Setting, SourceTags, TargetLocks,
    WaitUnit, WriteSets, XaBranches,
};
pub use writeset::WriteSetPolicy;

/// All policies; the one to choose first comes first.
pub static ALL: Policies = Policies::new(&[
    &writeset::SPEC,
    &serial::SPEC,
    &database::SPEC,
    &logical_clock::BLOCKING,
    &logical_clock::UNBLOCKED,
    &server_tags::COMMIT_ORDER,
    &server_tags::WRITESET,
    &server_tags::WRITESET_SESSION,
    &domain::SPEC,
    &minimal::SPEC,
    &conservative::SPEC,
    &optimistic::OPTIMISTIC,
    &optimistic::AGGRESSIVE,
]);

/// Without `--policy`.
pub static DEFAULT: &PolicySpec = &writeset::SPEC;

/// What the others are measured against: one after the other.
pub static BASELINE: &PolicySpec = &serial::SPEC;

/// What holds up every policy.
pub const ALWAYS: &str = "DDL, statements, XA and huge transactions (each runs alone)";
