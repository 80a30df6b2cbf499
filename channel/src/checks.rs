//! What keeps a run from its start, found out without changing anything. A run asks these lists, and `--dry-run` asks the same ones.
//!
//! What only shows once the channel is taken over or the source sends its log (another Heddle, a full disk, a damaged log) is not here.

use anyhow::Result;
use apply::checks::Holdings;
use apply::mysql::server::sql::quote;
use apply::{Opened, Target};
use engine::failure::{Failure, FailureKind};
use engine::policy;

use crate::errors::failure;
use crate::source::Source;
use crate::source::look_ahead::LookAhead;
use crate::source::open;
use crate::source::remedies;
use crate::source::state::SourceState;
use crate::spec::Spec;
use crate::start::wrong::{self, Log, WrongStart};
use crate::start::{self, RelayContents, Start, StartAt, StreamStart};

/// Before the channel is taken over. `source`: as a live one is.
pub fn before_opening(spec: &Spec, source: Option<&SourceState>) -> Vec<Failure> {
    let target = &*spec.target;
    let mut refusals = Vec::new();
    let mut check = |checked: Result<()>| refusals.extend(checked.err().map(failure));
    if let Some(source) = source {
        check(two_servers(source, target));
    }
    check(policy::ALL.check(spec.applying.policy, &spec.setting()).map_err(anyhow::Error::new));
    check(target.takes_order(spec.applying.order).map_err(anyhow::Error::new));
    refusals.extend(target.refusals());
    refusals
}

fn two_servers(source: &SourceState, target: &dyn Target) -> Result<()> {
    start::two_servers(source, target.machine().map_err(anyhow::Error::new)?.as_deref())
}

/// Of where the channel begins, or goes on: `opened` is what the target knows of it. The start is there if it could be found out.
pub fn of_start(spec: &Spec, source: Option<&SourceState>, opened: &Opened) -> (Option<Start>, Vec<Failure>) {
    let planned = match (&spec.source, source) {
        (Source::Live(_), Some(source)) => open::plan(spec, source, opened).map(|(start, _)| start),
        (Source::Live(_), None) => return (None, Vec::new()),
        (Source::Files(files), _) => open::plan_files(spec, files, opened).map(|planned| planned.start),
    };
    let start = match planned {
        Ok(start) => start,
        Err(error) => return (None, vec![failure(error)]),
    };
    let mut refusals: Vec<Failure> = source.and_then(|source| purged(spec, source, &start)).into_iter().collect();
    if start.is_new && spec.span.wrong_start == WrongStart::Refuse {
        match fits(spec, source, &start) {
            Ok(found) => refusals.extend(found),
            Err(error) => refusals.push(error),
        }
    }
    (Some(start), refusals)
}

/// What a run would come upon soon: it stops then, with nothing lost. Only `--dry-run` looks.
pub fn ahead(spec: &Spec, source: Option<&SourceState>, start: &Start) -> Option<Failure> {
    let look = LookAhead::new(&*spec.target, start, &spec.span.until, spec.event_memory());
    match (&spec.source, source) {
        (Source::Live(options), Some(source)) => {
            // What is purged is in the relay log.
            let is_gone = |at: &binlog::LogPosition| !source.logs.iter().any(|log| **log == *at.file);
            if start.mark.position.as_ref().is_some_and(is_gone) {
                return None;
            }
            look.on_server(options, source, start, spec.replica.server_id).err()
        }
        (Source::Live(_), None) => None,
        (Source::Files(files), _) => {
            let at = start
                .mark
                .position
                .as_ref()
                .filter(|at| start::names(files).is_ok_and(|names| names.iter().any(|name| **name == *at.file)));
            let fs = std::sync::Arc::clone(&spec.log_fs);
            look.in_files(fs, files.clone(), at.map_or(relay::Start::Beginning, |at| relay::Start::At(at.clone())))
                .err()
        }
    }
}

/// The first of them ends a run.
pub fn first(refusals: Vec<Failure>) -> Result<()> {
    refusals.into_iter().next().map_or(Ok(()), |first| Err(anyhow::Error::new(first)))
}

/// The source does not have what comes next, and neither has the relay log.
fn purged(spec: &Spec, source: &SourceState, start: &Start) -> Option<Failure> {
    if spec.relay.contents == RelayContents::Copied {
        return None;
    }
    let lacking = start.lacks(source)?;
    if open::relay_goes_on(spec, source, start) {
        return None;
    }
    let message = format!("the source has purged what comes next: {lacking} (error 1236 of a replica)");
    Some(Failure::new(FailureKind::Refused, message).remedy(remedies::GONE))
}

/// Whether the start of a new channel fits what the target holds.
fn fits(spec: &Spec, source: Option<&SourceState>, start: &Start) -> Result<Vec<Failure>, Failure> {
    let mut holdings = spec.target.holdings()?;
    if let Source::Live(options) = &spec.source {
        of_source(options, &mut holdings);
    }
    let log = Log {
        identity: source.map_or("files", |source| &source.identity),
        begins_here: begins_here(spec, source, start),
    };
    Ok(wrong::refusals(start, &spec.span.start, &log, &holdings))
}

/// Whether nothing of the log comes before the start.
fn begins_here(spec: &Spec, source: Option<&SourceState>, start: &Start) -> bool {
    const FIRST_EVENT: u64 = 4;
    let first = match (&spec.source, source) {
        (Source::Files(files), _) => start::names(files).ok().and_then(|names| names.first().cloned()),
        (Source::Live(_), source) => {
            source.filter(|source| !source.purged).and_then(|source| source.logs.first().cloned())
        }
    };
    match (&start.stream, &spec.span.start) {
        (StreamStart::Gtids(gtids), _) => gtids.is_empty(),
        (_, StartAt::Gtids(gtids)) => gtids.is_empty(),
        _ => start
            .mark
            .position
            .as_ref()
            .is_none_or(|at| first.as_deref() == Some(&*at.file) && at.offset <= FIRST_EVENT),
    }
}

/// Leaves out the tables that the source does not have. A source that shows none of its tables may have all of them.
fn of_source(options: &wire::ConnectOptions, holdings: &mut Holdings) {
    let (Ok(mut connection), false) = (wire::Connection::connect(options), holdings.filled.is_empty()) else { return };
    let shown = connection.scalar(
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ('mysql','sys','information_schema','performance_schema','heddle')",
    );
    if !shown.is_ok_and(|count| count.is_some_and(|count| count != "0")) {
        return;
    }
    holdings.filled.retain(|(schema, name)| {
        let there = connection.scalar(format!(
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA={} AND TABLE_NAME={}",
            quote(schema),
            quote(name)
        ));
        !there.is_ok_and(|count| count.as_deref() == Some("0"))
    });
}
