//! Whether the place where a new channel would begin fits what the target holds. Pure: it asks nobody.
//!
//! A wrong start shows late, as a row that is missing or already there, and repairing that row would spoil good data. So what looks like one is refused, unless
//! the operator insists.

use binlog::gtids::GtidState;
use engine::failure::{Failure, FailureKind};

use super::{Extent, Start, StartRequest, described, split_source};
use apply::checks::{Holdings, OtherChannel};

/// What becomes of a start that looks wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WrongStart {
    Refuse,
    /// The operator insists.
    Accept,
    /// Nobody has typed the start: it is a replica's own state.
    #[default]
    Known,
}

/// Who says where a new channel begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartOrigin {
    /// The operator, or nobody.
    #[default]
    Typed,
    /// The file that the backup tool has left.
    Backup,
}

/// Which log the channel reads.
pub struct Log<'a> {
    /// As channels record it.
    pub identity: &'a str,
    /// The place is the first event that the source has, or the first of the files.
    pub begins_here: bool,
    /// The part of it that the channel takes; `None`: all.
    pub part: Option<&'a str>,
}

const INSIST: &str = "if the start is right all the same, add --start-anyway";

/// `start` is a new channel's.
pub fn refusals(start: &Start, asked: &StartRequest, log: &Log<'_>, holdings: &Holdings) -> Vec<Failure> {
    let mut refusals: Vec<Failure> =
        holdings.channels.iter().filter_map(|other| overlap(start, log, other, !holdings.filled.is_empty())).collect();
    if !refusals.is_empty() {
        return refusals;
    }
    let has_no_start = matches!(asked, StartRequest::Default) && log.begins_here;
    if has_no_start && !holdings.filled.is_empty() {
        let tables: Vec<String> =
            holdings.filled.iter().take(3).map(|(schema, name)| format!("{schema}.{name}")).collect();
        refusals.push(refused(
            format!(
                "a new channel would begin with the first event of the log, and the target has rows already ({}{})",
                tables.join(", "),
                if holdings.filled.len() > tables.len() { " and more" } else { "" }
            ),
            format!(
                "say where the copy in the target was made: --start FILE:POS, --start-gtid, or --start-from with the file that the backup tool left; or begin with an \
                 empty target; {INSIST}"
            ),
        ));
    }
    if !log.begins_here && holdings.has_tables && holdings.filled.is_empty() {
        refusals.push(refused(
            format!("a new channel would begin in the middle of the log ({}), and no table of the target has a row", described(&start.mark)),
            format!("load a copy of the source's rows as of that place first, or begin with the first event of the log; {INSIST}"),
        ));
    }
    refusals
}

fn refused(message: String, remedy: String) -> Failure {
    Failure::new(FailureKind::Refused, message).remedy(remedy)
}

/// Another channel of the same log has applied what this one would apply, or is about to. What it has applied is gone where the target has no rows.
fn overlap(start: &Start, log: &Log<'_>, other: &OtherChannel, has_rows: bool) -> Option<Failure> {
    // Each takes another part: what both took would stop one of them, as a row that is missing or already there.
    if let (Some(part), Some(others)) = (log.part, other.part.as_deref())
        && part != others
    {
        return None;
    }
    let (identity, ..) = split_source(&other.source);
    let same_source = identity == log.identity;
    if same_source && other.is_running && identity != "files" {
        return Some(refused(
            format!(
                "channel '{}' on the target applies the log of the same source now: two channels would apply each transaction twice",
                other.name
            ),
            format!(
                "leave --channel out or name that one, to go on with it; or stop it, and begin where it has stopped; {INSIST}"
            ),
        ));
    }
    if !has_rows || other.mark.seq == 0 || !is_beyond(start, log, other, same_source) {
        return None;
    }
    let place = other.mark.position.as_ref().map_or_else(|| other.mark.gtids.to_string(), ToString::to_string);
    Some(refused(
        format!(
            "channel '{}' has brought the target up to {place} of the same log, and the new channel would begin before that ({}): it would change newer rows",
            other.name,
            described(&start.mark)
        ),
        format!(
            "to go on with what the target holds, use --channel {}; to begin anew, restore the copy first, into an empty target; where the target was restored \
             meanwhile, heddle channel forget {} takes the old channel away; {INSIST}",
            other.name, other.name
        ),
    ))
}

fn is_beyond(start: &Start, log: &Log<'_>, other: &OtherChannel, same_source: bool) -> bool {
    let (new, old) = (&start.mark, &other.mark);
    // What both say by GTID is the same on every server.
    match (&new.gtids, &old.gtids) {
        (GtidState::MySql(new), GtidState::MySql(old)) if !new.is_empty() && !old.is_empty() => {
            return !new.contains_set(old)
                && new.iter().any(|(uuid, tag, _)| old.intervals(uuid, tag.as_str()).is_some());
        }
        (GtidState::MariaDb(new), GtidState::MariaDb(old)) if !new.is_empty() && !old.is_empty() && same_source => {
            return old.iter().any(|old| new.get(old.domain).is_some_and(|new| new.seq < old.seq));
        }
        _ => {}
    }
    if !same_source {
        return false;
    }
    match (&new.position, &old.position) {
        (Some(new), Some(old)) => new.base_name() == old.base_name() && new < old,
        // The same server's log from its begin, or files, which may be another server's.
        (None, _) => new.gtids.is_empty() && log.identity != "files",
        (Some(_), None) => false,
    }
}

/// A divergence so early may come from a wrong start.
const EARLY: u64 = 10_000;
/// So early it is more likely than a changed row: transactions before a right place find rows that are there already, mostly at once.
const LIKELY: u64 = 100;

/// The failure, with the more likely cause first. `start`: of this run.
pub fn suspected(failure: Failure, applied: u64, start: &Start, origin: StartOrigin) -> Failure {
    let seq = failure.culprit.as_ref().map_or(applied + 1, |culprit| culprit.seq);
    if failure.kind != FailureKind::Divergence || seq > EARLY || start.extent == Extent::WholeLog {
        return failure;
    }
    if seq > LIKELY || origin == StartOrigin::Backup {
        let remedy = format!(
            "{}. Where more rows differ, look at the start: this is transaction {seq} of the channel, and the copy in the target may be of another place in the log",
            failure.remedy
        );
        return failure.remedy(remedy);
    }
    let place = if start.is_new { format!(" ({})", described(&start.mark)) } else { String::new() };
    let remedy = format!(
        "probably a wrong start: this is only transaction {seq} of the channel, so the place where it began{place} is probably not the one where the target's copy \
         was made. Do not change rows yet: compare that place with what the backup says (--start-from FILE reads it); if it differs, restore the copy and begin with a new \
         --channel at the right place. Only if the start is right: {}",
        failure.remedy
    );
    failure.remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::StreamStart;
    use engine::progress::Mark;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "8a258768-e5b8-11f1-9e33-02fc00000001";

    fn mark(position: &str, gtids: &str, seq: u64) -> Mark {
        Mark {
            seq,
            position: (!position.is_empty()).then(|| position.parse().unwrap()),
            gtids: gtids.parse().unwrap_or(GtidState::None),
            ..Mark::default()
        }
    }

    fn start(mark: Mark) -> Start {
        Start {
            mark,
            extent: Extent::Rest,
            is_new: true,
            by_gtid: false,
            stream: StreamStart::Oldest,
            instead_of: None,
            passed: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn channels_that_overlap() {
        let check =
            |new: (&str, &str), identity: &str, old: (&str, &str), source: &str, is_running: bool, word: &str| {
                let other = OtherChannel {
                    name: "old".to_owned(),
                    mark: mark(old.0, old.1, 7),
                    source: source.to_owned(),
                    is_running,
                    part: None,
                };
                let log = Log { identity, begins_here: new == ("", ""), part: None };
                let found = overlap(&start(mark(new.0, new.1, 0)), &log, &other, true);
                let message = found.map(|failure| failure.message).unwrap_or_default();
                assert!(
                    if word.is_empty() { message.is_empty() } else { message.contains(word) },
                    "{new:?} {old:?}: {message}"
                );
            };
        // By position, on one server.
        check(("b.000001:100", ""), "one", ("b.000001:900", ""), "one by position", false, "before that");
        check(("b.000001:900", ""), "one", ("b.000001:900", ""), "one by position", false, "");
        check(
            ("b.000002:4", ""),
            "one",
            ("b.000001:900", ""),
            "one by position",
            true,
            "applies the log of the same source now",
        );
        check(("b.000001:100", ""), "one", ("b.000001:900", ""), "two by position", true, "");
        check(("", ""), "one", ("b.000001:900", ""), "one by position", false, "before that");
        // By GTID, on any server.
        check(
            ("", &format!("{A}:1-5")),
            "one",
            ("b.000001:900", &format!("{A}:1-9")),
            "files by position",
            false,
            "before that",
        );
        check(("", &format!("{A}:1-9")), "one", ("b.000001:900", &format!("{A}:1-9")), "one by gtid", false, "");
        check(("", &format!("{A}:1-5")), "one", ("b.000001:900", &format!("{B}:1-9")), "two by gtid", false, "");
        check(("", "0-1-5"), "one", ("b.000001:900", "0-1-9"), "one by gtid", false, "before that");
        check(("", "0-1-9"), "one", ("b.000001:900", "0-1-9"), "one by gtid", false, "");
        // The target was emptied meanwhile.
        let old = OtherChannel {
            name: "old".to_owned(),
            mark: mark("b.000001:900", "", 7),
            source: "one by position".to_owned(),
            is_running: false,
            part: None,
        };
        let parts = [("--only a", false), ("--only b", true)].map(|(part, refused)| {
            let other = OtherChannel { part: Some("--only b".to_owned()), is_running: true, ..old.clone() };
            let log = Log { identity: "one", begins_here: true, part: Some(part) };
            overlap(&start(mark("", "", 0)), &log, &other, true).is_some() == refused
        });
        assert_eq!(parts, [true, true], "channels of other parts are no hindrance");
        assert!(
            overlap(&start(mark("", "", 0)), &Log { identity: "one", begins_here: true, part: None }, &old, false)
                .is_none()
        );
        // A second point-in-time try.
        check(("b.000001:100", ""), "files", ("b.000003:50", ""), "files by position", false, "before that");
        check(("", ""), "files", ("b.000003:50", ""), "files by position", false, "");
        check(("c.000001:100", ""), "files", ("b.000003:50", ""), "files by position", false, "");
    }

    #[test]
    fn what_the_target_holds() {
        let check = |asked: &StartRequest, begins_here, filled: usize, has_tables, word: &str| {
            let filled = (0..filled).map(|n| ("d".to_owned(), format!("t{n}"))).collect();
            let holdings = Holdings { filled, has_tables, channels: Vec::new() };
            let found =
                refusals(&start(Mark::default()), asked, &Log { identity: "one", begins_here, part: None }, &holdings);
            let messages: Vec<&str> = found.iter().map(|failure| failure.message.as_str()).collect();
            assert!(
                if word.is_empty() { messages.is_empty() } else { messages.join(" ").contains(word) },
                "{messages:?}"
            );
        };
        let middle = StartRequest::Position("b.000001:500".parse().unwrap());
        check(&StartRequest::Default, true, 0, false, "");
        check(&StartRequest::Default, true, 0, true, "");
        check(&StartRequest::Default, true, 5, true, "d.t0, d.t1, d.t2 and more");
        // The target's own GTIDs say where it is.
        check(&StartRequest::Default, false, 5, true, "");
        check(&middle, false, 5, true, "");
        check(&middle, false, 0, true, "no table of the target has a row");
        check(&middle, false, 0, false, "");
    }

    #[test]
    fn an_early_divergence_is_suspected() {
        let diverged = |seq| {
            let culprit = engine::failure::Culprit { seq, gtid: String::new(), position: String::new() };
            Failure::new(FailureKind::Divergence, "row").remedy("remove it").of(culprit)
        };
        let middle = start(mark("b.000001:500", "", 0));
        let typed = StartOrigin::Typed;
        let said = suspected(diverged(17), 16, &middle, typed).remedy;
        assert!(said.starts_with("probably a wrong start: this is only transaction 17"), "{said}");
        assert!(said.contains("(at b.000001:500)") && said.ends_with("remove it"), "{said}");
        // A changed row is as likely, or more.
        for (seq, origin) in [(LIKELY + 1, typed), (EARLY, typed), (1, StartOrigin::Backup)] {
            let said = suspected(diverged(seq), seq - 1, &middle, origin).remedy;
            assert!(said.starts_with("remove it. Where more rows differ"), "{said}");
        }
        assert_eq!(suspected(diverged(EARLY + 1), EARLY, &middle, typed).remedy, "remove it");
        assert_eq!(suspected(Failure::new(FailureKind::Refused, "x").remedy("y"), 0, &middle, typed).remedy, "y");
        // A later run knows by what the progress keeps that no copy was needed.
        let whole = Start { extent: Extent::WholeLog, ..middle };
        let (.., extent) = split_source(&whole.source_text("one"));
        assert_eq!(extent, Extent::WholeLog);
        assert_eq!(suspected(diverged(17), 16, &whole, typed).remedy, "remove it");
    }
}
