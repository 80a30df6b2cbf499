//! Where a channel starts or goes on, from what the target knows, what the source has and what the user said.

mod files;
pub mod wrong;

use anyhow::{Result, bail};
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::{GtidSet, GtidState};
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;

use crate::source::state::SourceState;
use apply::Opened;

pub use self::files::{files, names};

/// `--start`, `--start-gtid`
#[derive(Clone, Debug, Default)]
pub enum StartAt {
    /// Where the target says it is; a new channel: with the oldest log.
    #[default]
    Default,
    Position(LogPosition),
    Gtids(GtidState),
    /// At a position; transactions with these GTIDs are on the target whatever their position.
    PositionAndGtids(LogPosition, GtidState),
}

impl StartAt {
    /// What the target has already, as far as GTIDs say it.
    fn gtids(&self) -> GtidState {
        match self {
            Self::Default | Self::Position(_) => GtidState::None,
            Self::Gtids(gtids) | Self::PositionAndGtids(_, gtids) => gtids.clone(),
        }
    }
}

/// Where the stream starts when the relay log is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// The first event of the oldest log that the source has.
    Oldest,
    Position(LogPosition),
    Gtids(GtidState),
}

/// What is in a relay log before a channel's first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayContents {
    /// Nothing of use: a new channel begins it anew.
    Nothing,
    /// What comes next, which the source may have no more.
    Copied,
}

/// What a channel reads from its begin on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All that the source ever logged: no copy was needed.
    WholeLog,
    /// What comes after a copy was made, or is not known.
    Rest,
}

/// The decision.
#[derive(Clone, Debug)]
pub struct Start {
    pub mark: Mark,
    pub extent: Extent,
    /// A new channel: the target has to be told.
    pub is_new: bool,
    /// Streams go on by GTID: the set in the mark is complete.
    pub by_gtid: bool,
    /// For a relay log that holds nothing yet.
    pub stream: StreamStart,
    /// The source that the channel had before, if it has another one now. The target has to be told, and what was received from the old one is of no
    /// use.
    pub instead_of: Option<String>,
}

impl Start {
    /// What the source does not have of what the channel asks for; `None`: nothing is known to be missing.
    pub fn lacks(&self, source: &SourceState) -> Option<String> {
        let file_is_gone = |position: &LogPosition| !source.logs.iter().any(|log| **log == *position.file);
        let oldest = source.logs.first().map_or("none", String::as_str);
        match (&self.stream, &source.purged_gtids) {
            (StreamStart::Oldest, _) => None,
            (StreamStart::Position(position), _) => file_is_gone(position)
                .then(|| format!("the channel goes on at {position}, and the oldest log is {oldest}")),
            (StreamStart::Gtids(GtidState::MySql(has)), GtidState::MySql(purged)) => {
                let mut lacking = purged.clone();
                lacking.subtract(has);
                (!lacking.is_empty()).then(|| format!("the GTIDs {lacking}"))
            }
            (StreamStart::Gtids(GtidState::MariaDb(has)), GtidState::MariaDb(purged)) => {
                // Numbers can go back in a log: the position says more, as long as the source is the same.
                if self.instead_of.is_none()
                    && self.mark.position.as_ref().is_some_and(|position| !file_is_gone(position))
                {
                    return None;
                }
                let lacking = purged.iter().find(|gtid| has.get(gtid.domain).is_none_or(|has| has.seq < gtid.seq))?;
                Some(format!("the channel has {has}, and the oldest log, {oldest}, begins after {lacking}"))
            }
            (StreamStart::Gtids(_), _) => None,
        }
    }

    /// What the progress keeps of the source: who it is, whether the recorded GTIDs are complete, and whether the channel has read all of its log.
    pub fn source_text(&self, identity: &str) -> String {
        let how = if self.by_gtid { "gtid" } else { "position" };
        let extent = match self.extent {
            Extent::WholeLog => FROM_FIRST,
            Extent::Rest => "",
        };
        format!("{identity} by {how}{extent}")
    }
}

/// Where a new channel begins, for people.
pub fn described(mark: &Mark) -> String {
    match &mark.position {
        Some(position) => format!("at {position}"),
        None if mark.gtids.is_empty() => "with the oldest log".to_owned(),
        None => format!("after the GTIDs {}", mark.gtids),
    }
}

const FROM_FIRST: &str = " from the first event";

/// Who the source is, whether by GTID, and what was read: the parts of [`Start::source_text`].
pub fn split_source(text: &str) -> (&str, bool, Extent) {
    match text.rsplit_once(" by ") {
        Some((identity, how)) => {
            let extent = if how.ends_with(FROM_FIRST) { Extent::WholeLog } else { Extent::Rest };
            (identity, how.starts_with("gtid"), extent)
        }
        None => (text, false, Extent::Rest),
    }
}

/// Refuses one server as both ends: it would log its own log again, without an end.
pub fn two_servers(source: &SourceState, target: Option<&str>) -> Result<()> {
    if target == Some(source.machine.as_str()) {
        bail!("--from and --to are the same server ({}): its own log cannot be applied to it", source.describe());
    }
    Ok(())
}

/// `relay`: if what comes next was copied to the relay log, it does not matter what the source still has.
pub fn live(
    opened: &Opened,
    source: &SourceState,
    asked: &StartAt,
    on_target: &GtidState,
    relay: RelayContents,
) -> Result<Start> {
    let received = relay == RelayContents::Copied;
    if let Some(mark) = begun(opened, asked) {
        return go_on(opened, mark, source, asked);
    }
    let mut extent = Extent::Rest;
    let (mark, by_gtid, stream) = match asked {
        StartAt::Position(position) | StartAt::PositionAndGtids(position, _) => {
            if !received && !source.logs.iter().any(|log| **log == *position.file) {
                bail!(
                    "--start {position}: the source has no log of that name; it has {} to {}",
                    source.logs.first().map_or("none", String::as_str),
                    source.logs.last().map_or("none", String::as_str)
                );
            }
            if !received && position.file == source.end.file && position.offset > source.end.offset {
                bail!("--start {position}: the source's log ends at {}", source.end);
            }
            let mark = Mark { position: Some(position.clone()), gtids: asked.gtids(), ..Mark::default() };
            (mark, false, StreamStart::Position(position.clone()))
        }
        StartAt::Gtids(gtids) => {
            same_kind(gtids, source)?;
            // A rescue takes what the replica has: nobody has typed it.
            if gtids != on_target {
                warn_of_strangers(gtids, &source.executed);
            }
            // The target's own transactions say nothing about the source, and later runs compare the two.
            let gtids = common(gtids, &source.executed);
            (Mark { gtids: gtids.clone(), ..Mark::default() }, true, StreamStart::Gtids(gtids))
        }
        StartAt::Default => {
            let known = common(on_target, &source.executed);
            if known.is_empty() {
                source.nothing_purged()?;
                extent = Extent::WholeLog;
            }
            let stream = if known.is_empty() { StreamStart::Oldest } else { StreamStart::Gtids(known.clone()) };
            let gtids = if known.is_empty() { GtidState::None } else { known };
            (Mark { gtids, ..Mark::default() }, source.gtids, stream)
        }
    };
    Ok(Start { mark, extent, is_new: true, by_gtid, stream, instead_of: None })
}

/// Where the channel is. If it has applied nothing yet, the user may ask for another start.
fn begun<'a>(opened: &'a Opened, asked: &StartAt) -> Option<&'a Mark> {
    let is_asked = !matches!(asked, StartAt::Default);
    let has_nothing = |mark: &Mark| mark.seq == 0 && opened.committed_ranges.is_empty() && opened.intent.is_none();
    opened.mark.as_ref().filter(|mark| !(is_asked && has_nothing(mark)))
}

fn go_on(opened: &Opened, mark: &Mark, source: &SourceState, asked: &StartAt) -> Result<Start> {
    if !matches!(asked, StartAt::Default) {
        bail!(
            "the channel has been started already and goes on by itself after {}; leave --start out, or use another --channel",
            mark.position.as_ref().map_or_else(|| mark.gtids.to_string(), ToString::to_string)
        );
    }
    let (identity, by_gtid, extent) = split_source(opened.source.as_deref().unwrap_or_default());
    let mut mark = mark.clone();
    let mut instead_of = None;
    if identity != source.identity && !identity.starts_with("files") {
        let may_change = by_gtid && source.gtids && opened.committed_ranges.is_empty();
        if !may_change {
            bail!(
                "the channel was fed from {identity}, and this source is {}: file positions of one server mean nothing on \
                 another. Go on with the old source, or use another --channel with --start",
                source.identity
            );
        }
        tracing::info!("the source was {identity} and is {} now: going on by GTID", source.identity);
        mark.position = None;
        instead_of = Some(identity.to_owned());
    }
    if let Some(what) = lacks(source, &mark, identity == source.identity, by_gtid) {
        return Err(Failure::new(FailureKind::Refused, format!("the source does not have what the channel has applied: {what}"))
            .remedy(
                "the source was reset, or brought back to an earlier state, or has lost the end of its log in a crash: load the target anew \
                 from a copy of it, and start there with a new --channel and --start or --start-gtid",
            )
            .into());
    }
    let stream = match (&mark.position, by_gtid) {
        (_, true) if !mark.gtids.is_empty() => StreamStart::Gtids(mark.gtids.clone()),
        (Some(position), _) => StreamStart::Position(position.clone()),
        (None, _) => StreamStart::Oldest,
    };
    Ok(Start { mark, extent, is_new: false, by_gtid: by_gtid && source.gtids, stream, instead_of })
}

/// What the source lacks although the channel has applied it: everything applied came from the source.
fn lacks(source: &SourceState, mark: &Mark, same_server: bool, by_gtid: bool) -> Option<String> {
    if same_server
        && let Some(position) = &mark.position
        && *position > source.end
    {
        return Some(format!("its log ends at {}, the channel goes on at {position}", source.end));
    }
    let lacking = match (&mark.gtids, &source.executed) {
        (GtidState::MySql(applied), GtidState::MySql(executed)) if by_gtid => !executed.contains_set(applied),
        // A domain that was deleted on purpose (FLUSH BINARY LOGS DELETE_DOMAIN_ID) is not lacking.
        (GtidState::MariaDb(applied), GtidState::MariaDb(executed)) => {
            let mut has = executed.clone();
            // A promoted replica need not have logged what it has, and nothing was read from it yet.
            if mark.position.is_none() {
                has.merge(&source.replicated);
            }
            let is_behind =
                |gtid: binlog::gtids::mariadb::Gtid| has.get(gtid.domain).is_some_and(|last| last.seq < gtid.seq);
            !applied.is_empty() && (has.is_empty() || applied.iter().any(is_behind))
        }
        _ => false,
    };
    lacking
        .then(|| format!("it has executed {:?}, the channel {:?}", source.executed.to_string(), mark.gtids.to_string()))
}

/// Transactions that both have: those that a copy of the source brought to the target.
fn common(target: &GtidState, source: &GtidState) -> GtidState {
    match (target, source) {
        (GtidState::MySql(target), GtidState::MySql(source)) => {
            let mut only_target = target.clone();
            only_target.subtract(source);
            let mut common = target.clone();
            common.subtract(&only_target);
            GtidState::MySql(common)
        }
        (GtidState::MariaDb(target), GtidState::MariaDb(_)) => GtidState::MariaDb(target.clone()),
        _ => GtidState::None,
    }
}

/// MySQL GTIDs of the source's transactions beyond the channel's mark that the target has: left by a run with relaxed order, for which
/// they are the progress, or executed by somebody else. `executed`: what the target has; `source`: what a live one has.
///
/// A channel that did not begin by GTID knows nothing of what lies before it: of each server only what comes after the first that was
/// applied counts, or all if nothing was.
pub fn ahead(executed: &GtidState, start: &Start, source: &GtidState) -> GtidSet {
    let GtidState::MySql(executed) = executed else { return GtidSet::default() };
    let mut ahead = GtidState::MySql(executed.clone());
    if !source.is_empty() {
        ahead = common(&ahead, source);
    }
    let GtidState::MySql(mut ahead) = ahead else { return GtidSet::default() };
    let GtidState::MySql(applied) = &start.mark.gtids else { return ahead };
    ahead.subtract(applied);
    if start.by_gtid || applied.is_empty() {
        return ahead;
    }
    let mut known = GtidSet::default();
    for (uuid, tag, intervals) in ahead.iter() {
        let began = applied.intervals(uuid, tag.as_str()).and_then(|applied| applied.ranges().first());
        let Some(&(began, _)) = began else { continue };
        for &(first, last) in intervals.ranges().iter().filter(|&&(_, last)| last >= began) {
            known.add_range(uuid, tag.as_str(), first.max(began), last);
        }
    }
    known
}

/// Warns of sources of which `--start-gtid` names nothing: all their transactions are applied. That is wrong if the set was cut off, because dumps
/// write it on several lines.
fn warn_of_strangers(asked: &GtidState, executed: &GtidState) {
    let (GtidState::MySql(asked), GtidState::MySql(executed)) = (asked, executed) else { return };
    for (uuid, tag, intervals) in executed.iter() {
        if asked.intervals(uuid, tag.as_str()).is_none() {
            let mut all = GtidSet::default();
            intervals.ranges().iter().for_each(|&(first, last)| all.add_range(uuid, tag.as_str(), first, last));
            tracing::warn!(
                "--start-gtid has nothing of {all}, which the source has: it will be applied, though a copy of the source may have it (GTID_PURGED of a \
                 dump may have several lines)"
            );
        }
    }
}

fn same_kind(gtids: &GtidState, source: &SourceState) -> Result<()> {
    match (gtids, source.flavour) {
        (GtidState::MySql(_), Flavour::MySql) if !source.gtids => {
            bail!("--start-gtid: gtid_mode is not ON on the source; use --start FILE:POSITION")
        }
        (GtidState::MySql(_), Flavour::MySql) | (GtidState::MariaDb(_), Flavour::MariaDb) | (GtidState::None, _) => {
            Ok(())
        }
        _ => bail!("--start-gtid {gtids} is not of the kind that {} has", source.describe()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(flavour: Flavour, end: &str, executed: &str) -> SourceState {
        SourceState {
            flavour,
            version_text: String::new(),
            machine: "here".to_owned(),
            version: (10, 11, 0),
            identity: "one".to_owned(),
            binlog_format: "ROW".to_owned(),
            row_image: "FULL".to_owned(),
            gtids: true,
            end: end.parse().unwrap(),
            executed: state(flavour, executed),
            now_us: 0,
            replicated: binlog::gtids::GtidPos::default(),
            logs: Vec::new(),
            purged: false,
            purged_gtids: GtidState::None,
        }
    }

    fn state(flavour: Flavour, gtids: &str) -> GtidState {
        match flavour {
            Flavour::MySql => GtidState::MySql(gtids.parse().unwrap()),
            Flavour::MariaDb => GtidState::MariaDb(gtids.parse().unwrap()),
        }
    }

    #[test]
    fn what_only_the_target_has_is_no_part_of_the_start() {
        const SOURCE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        const OWN: &str = "8a258768-e5b8-11f1-9e33-02fc00000001";
        let source = source(Flavour::MySql, "b.000002:100", &format!("{SOURCE}:1-9"));
        let asked = StartAt::Gtids(state(Flavour::MySql, &format!("{SOURCE}:1-7,{OWN}:1-3")));
        let start = live(&Opened::default(), &source, &asked, &GtidState::None, RelayContents::Nothing).unwrap();
        assert_eq!(start.mark.gtids.to_string(), format!("{SOURCE}:1-7"));
        assert!(start.by_gtid);
        let source_text = start.source_text("one");
        let opened = Opened { mark: Some(start.mark), source: Some(source_text), ..Opened::default() };
        assert!(live(&opened, &source, &StartAt::Default, &GtidState::None, RelayContents::Nothing).is_ok());
    }

    #[test]
    fn what_the_target_has_beyond_the_mark() {
        const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        const B: &str = "8a258768-e5b8-11f1-9e33-02fc00000001";
        let check = |executed: &str, applied: &str, source: &str, by_gtid: bool, expected: &str| {
            let states = [executed, applied, source].map(|text| text.parse::<GtidState>().unwrap());
            let [executed, applied, source] = &states;
            let mark = Mark { gtids: applied.clone(), ..Mark::default() };
            let start = Start {
                mark,
                extent: Extent::Rest,
                is_new: false,
                by_gtid,
                stream: StreamStart::Oldest,
                instead_of: None,
            };
            assert_eq!(ahead(executed, &start, source).to_string(), expected, "{states:?}");
        };
        check(&format!("{A}:1-5:8:10"), &format!("{A}:1-6"), "", false, &format!("{A}:8:10"));
        check(&format!("{A}:1-5:8:10"), &format!("{A}:1-6"), &format!("{A}:1-9"), true, &format!("{A}:8"));
        // Of a server that the channel does not know.
        check(&format!("{A}:1-5:8,{B}:1-9"), &format!("{A}:1-6"), "", false, &format!("{A}:8"));
        check(&format!("{A}:1-5,{B}:1-9"), "", &format!("{A}:1-9"), true, &format!("{A}:1-5"));
        check(&format!("{A}:1-5"), "", "", false, &format!("{A}:1-5"));
        // From before a channel that began at a position.
        check(&format!("{A}:1-7:9"), &format!("{A}:5-6"), "", false, &format!("{A}:7:9"));
        check(&format!("{A}:1-7:9"), &format!("{A}:5-6"), &format!("{A}:1-9"), false, &format!("{A}:7:9"));
        check(&format!("{A}:1-7:9"), &format!("{A}:5-6"), &format!("{A}:1-9"), true, &format!("{A}:1-4:7:9"));
        check("0-1-7", "0-1-5", "0-1-9", true, "");
        check("", &format!("{A}:1-6"), &format!("{A}:1-9"), true, "");
    }

    #[test]
    fn a_source_that_went_back() {
        let check = |flavour, end, executed, position: &str, gtids, same, expected: bool| {
            let mark =
                Mark { position: Some(position.parse().unwrap()), gtids: state(flavour, gtids), ..Mark::default() };
            let lacking = lacks(&source(flavour, end, executed), &mark, same, true);
            assert_eq!(lacking.is_some(), expected, "{end} {executed} {position} {gtids}: {lacking:?}");
        };
        use Flavour::{MariaDb, MySql};
        const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9";
        const B: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-8";
        check(MySql, "b.000002:100", A, "b.000002:100", A, true, false);
        check(MySql, "b.000002:100", A, "b.000001:900", B, true, false);
        check(MySql, "b.000002:100", B, "b.000002:100", A, true, true);
        check(MySql, "b.000002:100", A, "b.000002:101", A, true, true);
        // Another server's position says nothing.
        check(MySql, "b.000001:100", A, "b.000002:101", A, false, false);
        check(MariaDb, "b.000002:100", "0-1-7,3-1-5", "b.000002:100", "0-2-7", true, false);
        check(MariaDb, "b.000002:100", "0-1-6,3-1-5", "b.000002:100", "0-2-7", true, true);
        check(MariaDb, "b.000002:100", "", "b.000001:100", "0-2-7", true, true);
        check(MariaDb, "b.000002:100", "0-1-7", "b.000001:100", "0-1-7,5-1-1", true, false);
        // A promoted replica that has logged nothing yet, read from or not.
        let promoted = SourceState { replicated: "0-2-7".parse().unwrap(), ..source(MariaDb, "b.000001:300", "") };
        let mark = |position: Option<&str>| Mark {
            position: position.map(|position| position.parse().unwrap()),
            gtids: state(MariaDb, "0-2-7"),
            ..Mark::default()
        };
        assert_eq!(lacks(&promoted, &mark(None), false, true), None);
        assert!(lacks(&promoted, &mark(Some("b.000001:100")), true, true).is_some());
    }
}
