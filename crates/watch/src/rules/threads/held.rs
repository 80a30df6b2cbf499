//! A rescue by Heddle has the replica: its applier is held, and applies nothing until the hand-back.

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::text;
use crate::questions::RESCUER;
use crate::rules::finding::{ActionTarget, Finding, Limits, Severity};
use crate::rules::rule::{Rule, rescue_command};
use replica::statements::HOLD_S;

pub const RULE: Rule = Rule {
    name: "rescue_unfinished",
    looks_at: "`SQL_Delay`, which is 68 years while `heddle rescue` holds the applier; whether a Heddle has the rescue's lock",
    advice: "nothing while it runs; after an interruption the same command again, or `--abort`",
    check,
};

fn check(seen: &ChannelFacts<'_>, _: Limits) -> Option<Finding> {
    if seen.status.delay_s != HOLD_S {
        return None;
    }
    let rows = seen.period.after.rows(RESCUER).iter();
    let mut own = rows.filter(|row| text(row, "channel") == seen.status.channel);
    let rescuer = own.next().map(|row| text(row, "session")).filter(|session| !session.is_empty());
    let held = format!("SQL_Delay={HOLD_S}: the applier is held");
    let finding = match rescuer {
        Some(session) => Finding {
            severity: Severity::Warning,
            cause: "heddle rescue applies in its applier's place".to_owned(),
            evidence: vec![held, format!("session {session} holds the rescue's lock")],
            server: ActionTarget::Nowhere,
            effect: "it hands back when the lag is small enough".to_owned(),
            ..Finding::default()
        },
        None => Finding {
            severity: Severity::Critical,
            cause: "a rescue is unfinished, and nothing is applied: run it again, or with --abort".to_owned(),
            evidence: vec![held, "no session holds the rescue's lock: no heddle is at work".to_owned()],
            server: ActionTarget::Heddle,
            statement: rescue_command(seen),
            risk: "none; START REPLICA would apply nothing. admin: the account of the rescue".to_owned(),
            effect: "it goes on where it was, then hands back; --abort hands back where it is".to_owned(),
            ..Finding::default()
        },
    };
    Some(Finding { share: 1.0, ..finding })
}
