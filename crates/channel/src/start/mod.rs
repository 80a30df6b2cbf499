//! Where a channel starts or goes on, from what the target knows, what the source has and what the user said.

mod comparison;
mod files;
mod request;
pub mod source_state;
pub mod wrong_start;

use anyhow::{Result, bail};
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::mysql::parse_uuid;
use binlog::gtids::{GtidSet, GtidState};
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;

use self::comparison::Channel;
use self::source_state::SourceState;
use apply::ChannelRecord;

pub use self::files::{files, names};
pub use self::request::{StartRequest, described};

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
    /// Of a start that was given and that the channel has passed: what to say of it.
    pub passed: Option<String>,
    /// What may be wrong with it, and does not stop the channel.
    pub warnings: Vec<String>,
}

impl Start {
    /// What the source does not have of what the channel asks for; `None`: nothing is known to be missing.
    pub fn lacks(&self, source: &SourceState) -> Option<String> {
        let file_is_gone = |position: &LogPosition| !source.logs.iter().any(|log| **log == *position.file);
        let oldest = source.logs.first().map_or("none", String::as_str);
        match (&self.stream, &source.purged_gtids) {
            (StreamStart::Oldest, _) => {
                source.lacks_begin().then(|| format!("the begin of the log (the oldest is {oldest})"))
            }
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
    opened: &ChannelRecord,
    source: &SourceState,
    asked: &StartRequest,
    on_target: &GtidState,
    relay: RelayContents,
) -> Result<Start> {
    let received = relay == RelayContents::Copied;
    if let Some(mark) = begun(opened, asked) {
        return go_on(opened, mark, source, asked);
    }
    if let StartRequest::Unreadable(reason) = asked {
        bail!("{reason}");
    }
    let mut extent = Extent::Rest;
    let mut warnings = Vec::new();
    let (mark, by_gtid, stream) = match asked {
        StartRequest::Position(position) | StartRequest::PositionAndGtids(position, _) => {
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
        StartRequest::Gtids(gtids) => {
            same_kind(gtids, source)?;
            // A rescue takes what the replica has: nobody has typed it.
            if gtids != on_target {
                warnings = strangers(gtids, &source.executed);
            }
            // The target's own transactions say nothing about the source, and later runs compare the two.
            let gtids = common(gtids, &source.executed);
            (Mark { gtids: gtids.clone(), ..Mark::default() }, true, StreamStart::Gtids(gtids))
        }
        StartRequest::Default | StartRequest::Unreadable(_) => {
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
    Ok(Start { mark, extent, is_new: true, by_gtid, stream, instead_of: None, passed: None, warnings })
}

/// Where the channel is. If it has applied nothing yet, the user may ask for another start.
fn begun<'a>(opened: &'a ChannelRecord, asked: &StartRequest) -> Option<&'a Mark> {
    let is_asked = !matches!(asked, StartRequest::Default | StartRequest::Unreadable(_));
    let has_nothing = |mark: &Mark| mark.seq == 0 && opened.committed_ranges.is_empty() && opened.intent.is_none();
    opened.mark.as_ref().filter(|mark| !(is_asked && has_nothing(mark)))
}

fn go_on(opened: &ChannelRecord, mark: &Mark, source: &SourceState, asked: &StartRequest) -> Result<Start> {
    let (identity, by_gtid, extent) = split_source(opened.source.as_deref().unwrap_or_default());
    let is_of_other_vendor = match mark.gtids {
        GtidState::None => false,
        GtidState::MySql(_) => source.flavour == Flavour::MariaDb,
        GtidState::MariaDb(_) => source.flavour == Flavour::MySql,
    };
    if is_of_other_vendor {
        return Err(Failure::new(
            FailureKind::Refused,
            format!("the channel goes on after the GTIDs {}, and the source is {}", mark.gtids, source.describe()),
        )
        .remedy(
            "a channel stays with one vendor: name its old source with --from. For this source use another --channel, with a copy of it in the target and \
             --start, --start-gtid or --start-from",
        )
        .into());
    }
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
        instead_of = Some(identity.to_owned());
    }
    let channel = Channel { mark, recorded_source: identity, source: &source.identity, source_has: &source.executed };
    let passed = channel.passed(asked).map_err(anyhow::Error::new)?;
    let mut mark = mark.clone();
    if instead_of.is_some() {
        mark.position = None;
    }
    if let Some(what) = lacks(source, &mark, identity == source.identity, by_gtid) {
        return Err(Failure::new(FailureKind::Refused, format!("the source does not have what the channel has applied: {what}"))
            .remedy(
                "the source was reset, or brought back to an earlier state, or has lost the end of its log in a crash; MariaDB: or the server that was the source before had \
                 transactions that this one lacks, for which it refuses a replica, too: load the target anew \
                 from a copy of it, and start there with a new --channel and --start or --start-gtid",
            )
            .into());
    }
    let warnings = errant(source, &mark).into_iter().collect();
    let stream = match (&mark.position, by_gtid) {
        (_, true) if !mark.gtids.is_empty() => StreamStart::Gtids(mark.gtids.clone()),
        (Some(position), _) => StreamStart::Position(position.clone()),
        (None, _) => StreamStart::Oldest,
    };
    Ok(Start { mark, extent, is_new: false, by_gtid: by_gtid && source.gtids, stream, instead_of, passed, warnings })
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
        // As a source judges its replicas: only of its own transactions it knows that it has lost them.
        (GtidState::MySql(applied), GtidState::MySql(_)) if by_gtid => {
            let lacking = not_executed(source, applied);
            parse_uuid(&source.identity).is_none_or(|own| lacking.iter().any(|(uuid, ..)| *uuid == own))
                && !lacking.is_empty()
        }
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

/// What was applied and the source has not executed. Of a MySQL source.
fn not_executed(source: &SourceState, applied: &GtidSet) -> GtidSet {
    let mut lacking = applied.clone();
    if let GtidState::MySql(executed) = &source.executed {
        lacking.subtract(executed);
    }
    lacking
}

/// Transactions of another server's own that were applied while that one was the source, and that this one lacks: a replica goes on, too.
fn errant(source: &SourceState, mark: &Mark) -> Option<String> {
    let GtidState::MySql(applied) = &mark.gtids else { return None };
    let lacking = not_executed(source, applied);
    (!lacking.is_empty()).then(|| {
        format!(
            "the channel has applied {lacking}, which this source does not have: transactions of a server that was the source before (errant, or lost at a fail-over). \
             The target keeps their rows, as a native replica does: compare source and target"
        )
    })
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

/// Sources of which `--start-gtid` names nothing: all their transactions are applied. That is wrong if the set was cut off, because dumps
/// write it on several lines.
fn strangers(asked: &GtidState, executed: &GtidState) -> Vec<String> {
    let (GtidState::MySql(asked), GtidState::MySql(executed)) = (asked, executed) else { return Vec::new() };
    let mut warnings = Vec::new();
    for (uuid, tag, intervals) in executed.iter() {
        if asked.intervals(uuid, tag.as_str()).is_none() {
            let mut all = GtidSet::default();
            intervals.ranges().iter().for_each(|&(first, last)| all.add_range(uuid, tag.as_str(), first, last));
            warnings.push(format!(
                "--start-gtid has nothing of {all}, which the source has: it will be applied, though a copy of the source may have it (GTID_PURGED of a \
                 dump may have several lines)"
            ));
        }
    }
    warnings
}

/// Whose GTIDs they are.
pub fn kind(gtids: &GtidState) -> &'static str {
    match gtids {
        GtidState::MySql(_) => "MySQL",
        GtidState::MariaDb(_) => "MariaDB",
        GtidState::None => "missing",
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
        _ => bail!("--start-gtid {gtids} is a {} GTID, the source is {}", kind(gtids), source.describe()),
    }
}

#[cfg(test)]
mod tests;
