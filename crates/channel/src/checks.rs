//! What keeps a run from its start, found out without changing anything. A run asks these lists, and `--dry-run` asks the same ones.
//!
//! What only shows once the channel is taken over or the source sends its log (another Heddle, a full disk, a damaged log) is not here.

use anyhow::Result;
use apply::checks::{Cascade, Holdings};
use apply::mysql::progress::SCHEMA;
use apply::mysql::server::sql::{identifier as quote_identifier, quote};
use apply::{ChannelRecord, Target};
use engine::failure::{Failure, FailureKind};
use engine::intake::is_own_table;
use engine::policy;

use crate::errors::failure;
use crate::source::Source;
use crate::source::lookahead::LogLookahead;
use crate::source::open;
use crate::source::remedies;
use crate::spec::Spec;
use crate::start::source_state::SourceState;
use crate::start::wrong_start::{self, Log, WrongStart};
use crate::start::{self, RelayContents, Start, StartRequest, StreamStart};

/// Before the channel is taken over. `source`: as a live one is.
pub fn before_opening(spec: &Spec, source: Option<&SourceState>) -> Vec<Failure> {
    let target = &*spec.target;
    let mut refusals = Vec::new();
    let mut check = |checked: Result<()>| refusals.extend(checked.err().map(failure));
    if let Some(source) = source {
        check(two_servers(source, target));
        check(may_read_log(spec, source));
        check(foreign_tables(spec));
    }
    check(crossing_cascades(spec));
    check(policy::ALL.check(spec.applying.policy, &spec.setting()).map_err(anyhow::Error::new));
    check(target.takes_order(spec.applying.order).map_err(anyhow::Error::new));
    refusals.extend(target.refusals());
    refusals
}

/// An application's tables in the source's schema that has the name of Heddle's own on the target. An account that may not see them finds out at their first event.
fn foreign_tables(spec: &Spec) -> Result<()> {
    let selection = spec.selection();
    let (Source::Live(options), Some(schema)) = (&spec.source, selection.bookkeeping_schema()) else {
        return Ok(());
    };
    // What the source cannot answer keeps nobody from reading its log.
    let Ok(mut connection) = wire::Connection::connect(options) else { return Ok(()) };
    let sql = format!("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA={}", quote(schema));
    let Ok(tables) = connection.rows(sql) else { return Ok(()) };
    let names = tables.iter().filter_map(|row| row.text(0).ok().flatten());
    match names.into_iter().find(|name| !is_own_table(name)) {
        None => Ok(()),
        Some(name) => Err(anyhow::Error::new(
            Failure::new(
                FailureKind::Refused,
                format!("the source has {schema}.{name}, and the target keeps heddle's own tables in a schema of that name"),
            )
            .remedy(
                "name another schema for heddle's tables, which the source does not have: --bookkeeping-schema NAME, with every command about this target; its account needs the \
                 same rights there",
            ),
        )),
    }
}

/// What the source's cascades change is in no log: the target's have to do it, and they do nothing where the parent is left out.
fn crossing_cascades(spec: &Spec) -> Result<()> {
    let Some(part) = spec.part.as_deref().filter(|part| !part.rules.is_empty()) else { return Ok(()) };
    let crosses = |cascade: &Cascade| {
        part.may_write(&cascade.child.0, &cascade.child.1) && !part.may_write(&cascade.parent.0, &cascade.parent.1)
    };
    let Some(found) = spec.target.cascades()?.into_iter().find(crosses) else { return Ok(()) };
    let (key, name) = (quote_identifier(&found.name), found.name);
    let table = quote_identifier(&found.child.0) + "." + &quote_identifier(&found.child.1);
    let (child, parent) = (found.child.0 + "." + &found.child.1, found.parent.0 + "." + &found.parent.1);
    let message = format!(
        "{child} has a foreign key on the target ({name}) that cascades from {parent}, which the selection leaves out: what the source's cascades change in {child} is in no log"
    );
    Err(Failure::new(FailureKind::Refused, message)
        .remedy(format!(
            "take {parent}, too, with its rows (--only); or, where the source deletes no row of it and changes no key, drop the foreign key on the target (ALTER TABLE {table} DROP FOREIGN KEY {key})"
        ))
        .into())
}

fn two_servers(source: &SourceState, target: &dyn Target) -> Result<()> {
    start::two_servers(source, target.machine().map_err(anyhow::Error::new)?.as_deref())
}

fn may_read_log(spec: &Spec, source: &SourceState) -> Result<()> {
    let Source::Live(options) = &spec.source else { return Ok(()) };
    if source.may_read_log {
        return Ok(());
    }
    let message =
        format!("source: GRANT REPLICATION SLAVE ON *.* TO {} is missing: the binary log cannot be read", options.user);
    Err(Failure::new(FailureKind::Refused, message)
        .remedy("execute that on the source, and run the same command again; all that is needed: docs/privileges.md")
        .into())
}

/// Of where the channel begins, or goes on: `opened` is what the target knows of it. The start is there if it could be found out.
pub fn of_start(spec: &Spec, source: Option<&SourceState>, opened: &ChannelRecord) -> (Option<Start>, Vec<Failure>) {
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
    refusals.extend(another_part(spec, opened));
    refusals.extend(unfinished_copy(spec, opened));
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
    let look = LogLookahead::new(&*spec.target, spec.selection(), start, &spec.span.until, spec.event_memory());
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

/// A channel goes on with the part of the source that it has begun with: rows that were left out before are not on the target.
fn another_part(spec: &Spec, opened: &ChannelRecord) -> Option<Failure> {
    let asked = spec.part_text();
    if spec.part_changed || opened.mark.is_none() || opened.part == asked {
        return None;
    }
    let shown = |part: &Option<String>| part.clone().unwrap_or_else(|| "all of the source".to_owned());
    let message = format!("the channel has taken {} so far, and is to take {} now", shown(&opened.part), shown(&asked));
    Some(Failure::new(FailureKind::Refused, message).remedy(
        "give the same options as before; or, where it is to take more tables, --copy copies them; or, where the target's rows were made to fit the new ones up to where the channel is (heddle status), run it once with --selection-changed",
    ))
}

/// A channel whose rows are not all there would stop at the first that is missing. Only [`Target::peek`] says it.
pub fn unfinished_copy(spec: &Spec, opened: &ChannelRecord) -> Option<Failure> {
    if !opened.is_copying || spec.span.of_copy {
        return None;
    }
    Some(
        Failure::new(FailureKind::Refused, "the copy of the channel's rows is not finished")
            .remedy("give --copy again: it goes on where it was"),
    )
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
    if let Some(part) = &spec.part {
        holdings.filled.retain(|(schema, table)| part.may_write(schema, table));
    }
    // Under new names the source would have to be asked for the old ones.
    let is_renamed = spec.part.as_ref().is_some_and(|part| !part.renames.is_empty());
    if let Source::Live(options) = &spec.source
        && !is_renamed
    {
        of_source(options, &mut holdings);
    }
    let part = spec.part_text();
    let log = Log {
        identity: source.map_or("files", |source| &source.identity),
        begins_here: begins_here(spec, source, start),
        part: part.as_deref(),
    };
    Ok(wrong_start::refusals(start, &spec.span.start, &log, &holdings))
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
        (_, StartRequest::Gtids(gtids)) => gtids.is_empty(),
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
        format!("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ('mysql','sys','information_schema','performance_schema','{SCHEMA}')"),
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
