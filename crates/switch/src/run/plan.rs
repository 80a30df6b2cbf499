//! `--dry-run`: what each step would do, and what there is. Changes nothing.

use anyhow::{Context, Result};
use channel::source::backlog::Backlog;
use channel::start::source_state::SourceState;

use super::Switch;
use crate::record::Record;
use crate::report::Outcome;
use crate::request::ClosingMethod;
use crate::servers::coordinates::return_channel;
use crate::servers::events;
use crate::servers::target::TargetFacts;

impl Switch<'_, '_> {
    pub(super) fn dry_run(&mut self, found: Option<&Record>) -> Result<()> {
        let (source, target) = self.look(found)?;
        let state = SourceState::read(&mut self.source).context("the source's log")?;
        let applied =
            target.channel.source_position.as_deref().map(str::parse).transpose().context("the channel's position")?;
        let gtids = target.channel.gtid_set.parse().context("the channel's GTIDs")?;
        let behind = Backlog::read(&mut self.source, &state, applied.as_ref(), &gtids)?;
        let behind = match (behind.transactions, behind.bytes) {
            (Some(transactions), _) => format!("{transactions} transactions behind now"),
            (None, Some(bytes)) => format!("{bytes} bytes of the log behind now"),
            (None, None) => "how far behind is not known".to_owned(),
        };
        let closing = match self.request.closing {
            ClosingMethod::ReadOnly if source.cannot_close.is_none() => {
                format!("executes {}", source.read_only.closing())
            }
            ClosingMethod::ReadOnly | ClosingMethod::Waiting => {
                format!("waits until you have executed {}", source.read_only.closing())
            }
            ClosingMethod::Stopped => "takes it that nobody writes".to_owned(),
        };
        let seconds = self.request.timeout.as_secs();
        let events = events::to_enable(&target.events, &source.events);
        let mut steps = vec![
            format!("wait until channel {} keeps up ({behind}), for {seconds} s at the most", self.channel),
            format!("source: heddle {closing}. Undo: {}", source.read_only.undoing()),
            format!(
                "wait until the source's log stands still and the target has all of it, for {seconds} s at the most; else set the source back"
            ),
        ];
        if self.request.comparison.is_some() {
            steps.push("compare the rows; where they differ, set the source back".to_owned());
        }
        steps.push(format!("end the channel's process ({}); note where the target's log is", target.channel.owner));
        steps.push(format!("target: {}", self.after_text(&target, events.len())));
        steps.push(format!(
            "print the command of channel {}, from the target back to the source",
            return_channel(&self.channel)
        ));
        self.say("");
        for (number, step) in steps.iter().enumerate() {
            self.say(&format!("step {}    {step}", number.saturating_add(1)));
        }
        for event in &events {
            self.say(&format!("event     {};", event.enabling()));
        }
        if found.is_some() {
            self.say("          (an earlier switch was begun: the same command without --dry-run goes on, --undo sets it back)");
        }
        self.say("nothing was changed");
        if !self.report.findings.refused.is_empty() {
            self.report.outcome = Outcome::Refused;
        }
        Ok(())
    }

    fn after_text(&self, target: &TargetFacts, events: usize) -> String {
        let after = &self.request.after;
        let writable = match (target.read_only.is_read_only(), after.makes_writable) {
            (false, _) => "takes writes already",
            (true, true) => "SET GLOBAL read_only=OFF",
            (true, false) => "stays read-only (--target-writable changes that)",
        };
        let how = if after.enables_events { "enables" } else { "names the statements that enable" };
        format!("{writable}; heddle {how} {events} events that are disabled as on a replica")
    }
}
