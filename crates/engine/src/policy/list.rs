//! A list of policies: finds one by its name, and says whether commit order and target suit it.
//!
//! It does not know which policies there are.

use super::commit_order::CommitOrder;
use super::spec::{Conflicts, PolicySpec, Setting, TargetLocks};

#[derive(Clone, Copy, Debug)]
pub struct Policies(&'static [&'static PolicySpec]);

/// Why commit order or target do not suit a policy, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

impl Policies {
    pub const fn new(list: &'static [&'static PolicySpec]) -> Self {
        Self(list)
    }

    /// The one to choose first comes first.
    pub fn iter(self) -> impl Iterator<Item = &'static PolicySpec> {
        self.0.iter().copied()
    }

    /// # Errors
    /// No policy has this name.
    pub fn named(self, name: &str) -> Result<&'static PolicySpec, PolicyError> {
        let known = self.iter().find(|policy| policy.name == name);
        known.ok_or_else(|| PolicyError(format!("unknown policy {name}: `heddle policies` lists all")))
    }

    /// Those with lanes.
    pub fn with_lanes(self) -> impl Iterator<Item = (&'static PolicySpec, &'static str)> {
        self.iter().filter_map(|policy| Some((policy, policy.requires.lane?)))
    }

    /// # Errors
    /// `policy` can not work with the commit order, or with the target.
    pub fn check(self, policy: &PolicySpec, setting: &Setting<'_>) -> Result<(), PolicyError> {
        let order = setting.order;
        let (name, requires) = (policy.name, &policy.requires);
        let other = self.iter().find(|other| other.allows(order) && other.requires.target == TargetLocks::Any);
        let other = other.map_or("another", |other| other.name);
        if !policy.allows(order) {
            let speculates = requires.conflicts == Conflicts::RolledBack;
            return Err(PolicyError(if order == CommitOrder::PerLane && !speculates {
                let lanes =
                    self.with_lanes().map(|(policy, lane)| format!("--policy {} (a lane is a {lane})", policy.name));
                format!("--commit-order per-lane needs a policy with lanes: {}", lanes.collect::<Vec<_>>().join(" or "))
            } else {
                let orders: Vec<&str> = requires.orders.iter().map(|order| order.as_str()).collect();
                format!(
                    "--policy {name} {}needs --commit-order {} (or take --policy {other} with --commit-order {})",
                    if speculates {
                        "finds conflicts only while the earlier transaction is not committed: it "
                    } else {
                        ""
                    },
                    orders.join(" or "),
                    order.as_str()
                )
            }));
        }
        if requires.target == TargetLocks::Rows && !setting.locks_rows {
            return Err(PolicyError(format!(
                "--policy {name} needs a target that locks rows, which the embedded store does not: take --policy {other}"
            )));
        }
        Ok(())
    }
}
