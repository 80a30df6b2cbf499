//! What stands in the way of a switch, or should be known before it. Pure: it asks nobody.

use apply::status::State;
use channel::start::split_source;
use copy::compare::log::place::SourceLog;
use output::numbers::counted;
use serde::Serialize;

use crate::record::Phase;
use crate::request::{AfterSteps, ClosingMethod};
use crate::servers::events::{self, Event};
use crate::servers::source::SourceFacts;
use crate::servers::target::TargetFacts;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Each with what to do. Nothing is done while there is one.
    pub refused: Vec<String>,
    pub warnings: Vec<String>,
    /// What will happen that somebody might not expect.
    pub notes: Vec<String>,
}

/// All that is judged.
pub struct Facts<'a> {
    pub source: &'a SourceFacts,
    pub target: &'a TargetFacts,
    pub closing: ClosingMethod,
    pub after: &'a AfterSteps,
    /// How far an earlier switch has come, that was interrupted.
    pub earlier: Option<Phase>,
}

pub fn judge(facts: &Facts<'_>) -> Findings {
    let mut findings = Findings::default();
    both_servers(facts, &mut findings);
    channel(facts, &mut findings);
    source_writes(facts, &mut findings);
    target(facts, &mut findings);
    findings
}

fn both_servers(facts: &Facts<'_>, findings: &mut Findings) {
    let Facts { source, target, .. } = facts;
    if source.machine == target.machine {
        findings.refused.push("--from and --to are the same server".to_owned());
    }
    if source.log == SourceLog::Absent {
        findings
            .refused
            .push("the source has no binary log (log_bin): nothing says what the target has of it".to_owned());
    }
}

fn channel(facts: &Facts<'_>, findings: &mut Findings) {
    let (status, source) = (&facts.target.channel, facts.source);
    let name = &status.channel;
    let (fed_from, ..) = split_source(&status.source);
    if fed_from != source.identity {
        findings.refused.push(format!(
            "channel {name} is fed from {fed_from}, and this source is {}: give the channel's own source as --from, or another --channel",
            source.identity
        ));
    }
    if facts.target.is_copying {
        findings.refused.push(format!(
            "channel {name} is still copying the source's tables: wait for the copy's end (heddle replicate --copy)"
        ));
    }
    if !status.running {
        let why = status.last_error.as_ref().filter(|error| !error.passed);
        let why = why.map_or_else(String::new, |error| format!(" It stopped with: {}", error.message));
        findings.refused.push(format!(
            "channel {name} does not run: start it (heddle replicate), it has to apply the source's last writes.{why}"
        ));
    } else if status.state == State::Paused {
        findings.refused.push(format!("channel {name} is paused: heddle channel resume {name}"));
    }
    if status.source_reached == Some(false) {
        findings.warnings.push(format!("channel {name} does not reach its source now"));
    }
    if let Some(selection) = &status.selection {
        findings.notes.push(format!(
            "channel {name} takes a part of the source ({selection}): what it leaves out is not on the target"
        ));
    }
}

fn source_writes(facts: &Facts<'_>, findings: &mut Findings) {
    let source = facts.source;
    match source.prepared {
        Some(0) => {}
        Some(count) => findings.refused.push(format!(
            "{} on the source (XA RECOVER): end them first. Read-only, the source would not let them end, and the target would keep their locks",
            counted(count as u64, "prepared XA transaction")
        )),
        None => findings.warnings.push(
            "the account on the source may not see prepared XA transactions (MySQL: XA_RECOVER_ADMIN): if applications use XA, look for them (XA RECOVER)".to_owned(),
        ),
    }
    let is_denied = facts.closing == ClosingMethod::ReadOnly && !source.read_only.is_read_only();
    if let Some(why) = source.cannot_close.as_ref().filter(|_| is_denied) {
        findings.warnings.push(format!(
            "the account may not make the source read-only ({why}): heddle waits until you execute there: {}",
            source.read_only.closing()
        ));
    }
    if source.read_only.is_read_only() && facts.earlier.is_none() {
        findings
            .notes
            .push(format!("the source is {} already: heddle does not set that back", source.read_only.describe()));
    }
    let closes_for_all = source.read_only.is_closed()
        || facts.closing == ClosingMethod::ReadOnly
            && source.cannot_close.is_none()
            && source.read_only.super_read_only.is_some();
    let writers = source.writers.as_deref().unwrap_or_default();
    if !closes_for_all && !writers.is_empty() {
        let what = if facts.closing == ClosingMethod::Stopped {
            "what they write now"
        } else {
            "what they write although it is read_only"
        };
        findings.warnings.push(format!(
            "accounts on the source with a privilege to do so ({}): {what} moves the end of the log, and the switch waits for it to stand still",
            shortened(writers)
        ));
    }
    if let Some((count @ 1.., oldest)) = source.transactions {
        findings.notes.push(format!(
            "{} under way on the source, the oldest for {oldest} s: read-only, the source refuses their COMMIT (1290) if they have written",
            counted(count, "transaction")
        ));
    }
    let enabled = source.events.iter().filter(|event| event.is_enabled()).count() as u64;
    if enabled > 0 {
        findings.notes.push(format!(
            "{} enabled on the source: read-only, it refuses what they write, unless their definer may",
            counted(enabled, "event")
        ));
    }
}

fn target(facts: &Facts<'_>, findings: &mut Findings) {
    let Facts { source, target, after, .. } = facts;
    if target.read_only.is_read_only() && !after.makes_writable {
        findings.warnings.push(format!(
            "the target is {} and stays it: applications cannot write there. With --target-writable heddle executes SET GLOBAL read_only=OFF",
            target.read_only.describe()
        ));
    }
    let events: Vec<Event> = events::to_enable(&target.events, &source.events);
    if !events.is_empty() && !after.enables_events {
        findings.notes.push(format!(
            "{} on the target, disabled as on a replica: enable them with --enable-events, or by hand",
            counted(events.len() as u64, "event")
        ));
    }
    if !events.is_empty() && !target.scheduler_runs {
        findings.warnings.push("the target's events do not run: SET GLOBAL event_scheduler=ON".to_owned());
    }
    if !target.has_log {
        let text = "the target has no binary log (log_bin): there is no channel back from it".to_owned();
        if after.prepares_return { findings.refused.push(text) } else { findings.warnings.push(text) }
    }
}

/// The first of them.
fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let first: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", first.join(", ")) } else { first.join(", ") }
}

#[cfg(test)]
mod tests {
    use apply::status::ChannelStatus;

    use super::*;
    use crate::servers::read_only_state::ReadOnlyState;

    fn state(read_only: &str, super_read_only: Option<&str>) -> ReadOnlyState {
        ReadOnlyState { read_only: read_only.to_owned(), super_read_only: super_read_only.map(str::to_owned) }
    }

    fn facts() -> (SourceFacts, TargetFacts) {
        let source = SourceFacts {
            describe: "MySQL 9.7.0".to_owned(),
            identity: "3e11fa47".to_owned(),
            machine: "3e11fa47".to_owned(),
            log: SourceLog::MySqlGtids,
            read_only: state("OFF", Some("OFF")),
            cannot_close: None,
            prepared: Some(0),
            writers: Some(vec!["'root'@'%'".to_owned()]),
            transactions: Some((0, 0)),
            events: Vec::new(),
        };
        let channel = ChannelStatus {
            source: "3e11fa47 by gtid".to_owned(),
            running: true,
            source_reached: Some(true),
            state: State::Idle,
            ..ChannelStatus::new("default".to_owned(), 7, Vec::new())
        };
        let target = TargetFacts {
            describe: "MySQL 9.7.0".to_owned(),
            machine: "4e11fa47".to_owned(),
            read_only: state("OFF", Some("OFF")),
            has_log: true,
            scheduler_runs: true,
            events: Vec::new(),
            channel,
            is_copying: false,
        };
        (source, target)
    }

    /// What is found where one thing is different.
    fn found(
        closing: ClosingMethod,
        after: &AfterSteps,
        change: impl FnOnce(&mut SourceFacts, &mut TargetFacts),
    ) -> Findings {
        let (mut source, mut target) = facts();
        change(&mut source, &mut target);
        judge(&Facts { source: &source, target: &target, closing, after, earlier: None })
    }

    #[test]
    fn nothing_stands_in_the_way() {
        assert_eq!(found(ClosingMethod::ReadOnly, &AfterSteps::default(), |_, _| ()), Findings::default());
    }

    #[test]
    fn what_refuses_a_switch() {
        let check = |text: &str, change: fn(&mut SourceFacts, &mut TargetFacts)| {
            let refused = found(ClosingMethod::ReadOnly, &AfterSteps::default(), change).refused;
            assert!(matches!(refused.as_slice(), [one] if one.contains(text)), "{text}: {refused:?}");
        };
        check("same server", |source, target| target.machine.clone_from(&source.machine));
        check("no binary log", |source, _| source.log = SourceLog::Absent);
        check("is fed from other", |_, target| target.channel.source = "other by gtid".to_owned());
        check("is fed from files", |_, target| target.channel.source = "files".to_owned());
        check("still copying", |_, target| target.is_copying = true);
        check("does not run", |_, target| target.channel.running = false);
        check("is paused", |_, target| target.channel.state = State::Paused);
        check("2 prepared XA", |source, _| source.prepared = Some(2));
        let asks = AfterSteps { prepares_return: true, ..AfterSteps::default() };
        assert_eq!(found(ClosingMethod::ReadOnly, &asks, |_, target| target.has_log = false).refused.len(), 1);
    }

    #[test]
    fn what_is_warned_of() {
        let check = |closing, text: &str, change: fn(&mut SourceFacts, &mut TargetFacts)| {
            let findings = found(closing, &AfterSteps::default(), change);
            assert!(findings.refused.is_empty(), "{findings:?}");
            assert!(matches!(findings.warnings.as_slice(), [one] if one.contains(text)), "{text}: {findings:?}");
        };
        let nobody = |source: &mut SourceFacts| source.writers = Some(Vec::new());
        check(ClosingMethod::ReadOnly, "SET GLOBAL super_read_only=ON", |source, _| {
            source.writers = None;
            source.cannot_close = Some("denied".to_owned());
        });
        check(ClosingMethod::ReadOnly, "'root'@'%'", |source, _| source.read_only = state("OFF", None));
        check(ClosingMethod::Waiting, "'root'@'%'", |_, _| ());
        check(ClosingMethod::Stopped, "what they write now", |_, _| ());
        check(ClosingMethod::ReadOnly, "XA_RECOVER_ADMIN", |source, _| source.prepared = None);
        check(ClosingMethod::ReadOnly, "--target-writable", |_, target| target.read_only = state("ON", Some("OFF")));
        check(ClosingMethod::ReadOnly, "no channel back", |_, target| target.has_log = false);
        let closed = found(ClosingMethod::Waiting, &AfterSteps::default(), |source, _| {
            nobody(source);
            source.read_only = state("ON", Some("ON"));
        });
        assert_eq!((closed.warnings.len(), closed.notes.len()), (0, 1), "{closed:?}");
    }

    #[test]
    fn long_lists_are_shortened() {
        let names = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(shortened(&names(2)), "0, 1");
        assert_eq!(shortened(&names(7)), "0, 1, 2, 3, 4 and 2 more");
    }
}
