//! What became of advice: whether its settings were changed afterwards, and whether the effect came. Pure: looks in, outcomes out.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::facts::channel_facts::ChannelFacts;
use crate::rules::finding::Finding;

/// Periods after a change before it is judged: the first of them has both.
const WAIT_LOOKS: u32 = 2;
/// As fast as before: no effect.
const FASTER_MIN: f64 = 1.1;
/// Advice that nobody follows and whose cause is gone for so many looks is forgotten.
const FORGET_LOOKS: u32 = 12;

/// Advice that was followed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    pub rule: &'static str,
    /// `replica_parallel_workers: 1 → 16`.
    pub change: String,
    pub expected: String,
    /// Null: it is too early to say.
    pub came_true: Option<bool>,
    /// The numbers.
    pub evidence: String,
}

#[derive(Clone, Debug)]
struct Advice {
    effect: String,
    settings: Vec<(&'static str, String)>,
    rate: Option<f64>,
    share: f64,
    change: Option<String>,
    looks_since: u32,
    looks_unseen: u32,
}

/// Of one channel.
#[derive(Clone, Debug, Default)]
pub struct FollowUps {
    open: BTreeMap<&'static str, Advice>,
}

impl FollowUps {
    /// Takes what a look found; says what became of earlier advice.
    pub fn look(&mut self, seen: &ChannelFacts<'_>, findings: &[Finding]) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        self.open.retain(|rule, advice| {
            let now = findings.iter().find(|finding| finding.rule == *rule);
            advice.looks_unseen = if now.is_some() { 0 } else { advice.looks_unseen + 1 };
            if advice.change.is_none() {
                advice.change = changed(seen, &advice.settings);
                if advice.change.is_none() {
                    return advice.looks_unseen < FORGET_LOOKS;
                }
            }
            advice.looks_since += 1;
            let outcome = advice.judge(rule, seen, now);
            let is_open = outcome.came_true.is_none();
            outcomes.push(outcome);
            is_open
        });
        for finding in findings.iter().filter(|finding| !finding.change.settings.is_empty()) {
            let settings =
                finding.change.settings.iter().filter_map(|name| Some((*name, seen.variable(&[name])?.to_owned())));
            self.open.entry(finding.rule).or_insert_with(|| Advice {
                effect: finding.effect.clone(),
                settings: settings.collect(),
                rate: seen.applied_per_second(),
                share: finding.share,
                change: None,
                looks_since: 0,
                looks_unseen: 0,
            });
        }
        outcomes
    }
}

fn changed(seen: &ChannelFacts<'_>, settings: &[(&'static str, String)]) -> Option<String> {
    settings.iter().find_map(|(name, before)| {
        let now = seen.variable(&[name])?;
        (now != before).then(|| format!("{name}: {before} → {now}"))
    })
}

impl Advice {
    fn judge(&self, rule: &'static str, seen: &ChannelFacts<'_>, now: Option<&Finding>) -> Outcome {
        let rate = seen.applied_per_second();
        let (before, after) = (self.rate.unwrap_or(0.0), rate.unwrap_or(0.0));
        let is_faster = before > 0.0 && after >= before * FASTER_MIN;
        let keeps_up = !seen.has_backlog();
        let came_true = match (self.looks_since >= WAIT_LOOKS, now) {
            (false, _) => None,
            (true, None) => Some(is_faster || keeps_up),
            (true, Some(_)) => Some(is_faster),
        };
        let share = now.map_or(0.0, |finding| finding.share);
        let state = if keeps_up { "the applier keeps up" } else { "there is still a backlog" };
        Outcome {
            rule,
            change: self.change.clone().unwrap_or_default(),
            expected: self.effect.clone(),
            came_true,
            evidence: format!(
                "{before:.0} → {after:.0} transactions/s, the cause's share {:.0} → {:.0} %, {state}",
                self.share * 100.0,
                share * 100.0
            ),
        }
    }
}
