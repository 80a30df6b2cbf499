//! Heddle's policies: when a transaction may begin, from when those before it have executed and committed.
//!
//! The same rules as the engine's (`heddle policies`), told in times instead of watermarks.

use std::collections::HashMap;

use engine::policy::SourceTags;

use super::{Applied, Policy, Trace};

/// What a policy needs in the log: MySQL's tags, or MariaDB's group commits.
pub fn fits(policy: Policy, trace: &Trace) -> bool {
    match policy.requires.source {
        SourceTags::LogicalClock => trace.has_tags,
        SourceTags::GroupCommits => trace.has_groups,
        SourceTags::Any => true,
    }
}

/// One group commit of the source, as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    number: u32,
    /// When all of the groups before have executed; the same with the group itself.
    before: f64,
    executed: f64,
}

impl Group {
    fn begins(&mut self, number: u32) -> f64 {
        if number != self.number {
            self.number = number;
            self.before = self.executed;
        }
        self.before
    }
}

/// What has been placed so far, by number from 1.
#[derive(Debug)]
pub(super) struct Past<'a> {
    trace: &'a Trace,
    policy: Policy,
    done_at: Vec<f64>,
    /// When all up to each number have committed.
    low_water: Vec<f64>,
    executed: f64,
    schemas: [f64; 64],
    group: Group,
    domains: HashMap<u32, Group>,
}

impl<'a> Past<'a> {
    pub fn new(trace: &'a Trace, policy: Policy) -> Self {
        let room = trace.transactions.len() + 1;
        let (mut done_at, mut low_water) = (Vec::with_capacity(room), Vec::with_capacity(room));
        done_at.push(0.0);
        low_water.push(0.0);
        Self {
            trace,
            policy,
            done_at,
            low_water,
            executed: 0.0,
            schemas: [0.0; 64],
            group: Group::default(),
            domains: HashMap::new(),
        }
    }

    /// When all so far have committed.
    pub fn all(&self) -> f64 {
        self.low_water.last().copied().unwrap_or(0.0)
    }

    /// When all up to a number have committed, as far as they are known.
    fn up_to(&self, number: u32) -> f64 {
        self.low_water.get(number as usize).copied().unwrap_or_else(|| self.all())
    }

    pub fn done_at(&self, number: usize) -> f64 {
        self.done_at.get(number).copied().unwrap_or(0.0)
    }

    /// When the last exact predecessor has committed; those that are in the same group do not count.
    pub fn followed(&self, applied: &Applied) -> f64 {
        let known = self.trace.follows(applied).iter().filter_map(|&number| self.done_at.get(number as usize));
        known.copied().fold(0.0, f64::max)
    }

    /// Whether one that waits keeps those behind it waiting.
    pub fn blocks(&self) -> bool {
        self.policy.name == "logical-clock"
    }

    /// When the next one may begin.
    pub fn after(&mut self, applied: &Applied) -> f64 {
        if applied.barrier {
            return self.all();
        }
        match self.policy.name {
            "serial" => self.all(),
            "database" => {
                let bits = if applied.schemas == 0 { 1 } else { applied.schemas };
                let lanes = self.schemas.iter().enumerate().filter(|(schema, _)| bits >> schema & 1 != 0);
                lanes.map(|(_, done)| *done).fold(0.0, f64::max)
            }
            "logical-clock" | "logical-clock-unblocked" | "commit-order" => self.up_to(applied.source_parent),
            "writeset-tags" => self.up_to(applied.writeset_parent),
            "writeset-session" => self.up_to(applied.session_parent),
            "writeset" => self.followed(applied),
            "domain" => {
                let begins = self.domains.entry(applied.domain).or_default().begins(applied.group);
                begins.max(self.followed(applied))
            }
            "minimal" => self.executed.max(self.followed(applied)),
            "conservative" => self.group.begins(applied.group).max(self.followed(applied)),
            "optimistic" if applied.held => self.all(),
            _ => 0.0,
        }
    }

    pub fn note(&mut self, applied: &Applied, executed: f64, done: f64) {
        self.executed = self.executed.max(executed);
        match self.policy.name {
            "database" => {
                let bits = if applied.schemas == 0 { 1 } else { applied.schemas };
                for (_, lane) in self.schemas.iter_mut().enumerate().filter(|(schema, _)| bits >> schema & 1 != 0) {
                    *lane = lane.max(done);
                }
            }
            "domain" => {
                let group = self.domains.entry(applied.domain).or_default();
                group.executed = group.executed.max(executed);
            }
            "conservative" => self.group.executed = self.group.executed.max(executed),
            _ => {}
        }
        self.done_at.push(done);
        self.low_water.push(self.all().max(done));
    }
}
