//! What tests and benchmarks ask of the engine's list of policies.

use engine::policy::{PolicySpec, SourceTags};

use crate::server::Kind;

/// Whether a source of this kind writes what the policy goes by.
pub fn suits(policy: &PolicySpec, kind: Kind) -> bool {
    match policy.requires.source {
        SourceTags::Any => true,
        SourceTags::LogicalClock => !kind.is_mariadb(),
        SourceTags::GroupCommits => kind.is_mariadb(),
    }
}
