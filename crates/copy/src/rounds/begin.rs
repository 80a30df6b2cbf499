//! The begin of a copy: what is copied, and whether both ends allow it.

use std::collections::BTreeMap;

use apply::mysql::progress::SCHEMA;
use apply::mysql::server::errors::{failed, if_there};
use apply::mysql::server::sql::quote;
use apply::mysql::{BinlogChoice, copy_gtids};
use binlog::gtids::GtidState;
use channel::errors::failure;
use channel::start::source_state::SourceState;
use engine::failure::{Failure, FailureKind};
use engine::windows::{Low, Reading};
use serde::Serialize;
use wire::{Connection, Error};

use super::branches;
use super::ends::{AccountChoice, CopyRequest};
use crate::accounts::{AccountTransfer, Preparation};
use crate::bookkeeping::{COPY_TABLES, CopyPlace, CopyState, Phase, TableRecord, TableStatus, create, set_table};
use crate::chunk::{ChunkKey, TableDefinition, TableName};
use crate::definitions::{
    CopyPart, Relations, SourceTable, TargetSequences, in_one_character_set, is_read_in_chunks, list, not_known,
    read_programs, renamed_program,
};
use crate::place;
use crate::source::{self, LowSource, Windows};
use crate::source::{gtids_before, source_failure};

/// What a copy would do, for a dry run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plan {
    /// The channel has not begun, or its copy is not finished.
    pub is_needed: bool,
    /// To a channel that has begun.
    pub adds_tables: bool,
    pub tables: usize,
    /// As the source guesses them.
    pub rows: u64,
    /// That the target gets.
    pub accounts: usize,
    /// Read in one consistent read, with the reason.
    pub whole: Vec<String>,
    pub warnings: Vec<String>,
    /// What keeps it from beginning.
    pub problems: Vec<String>,
}

/// Changes nothing.
///
/// # Errors
/// An end can not be asked.
pub fn plan(request: &CopyRequest<'_>) -> Result<Plan, Failure> {
    let mut source = source::connect(request.source.rows()).map_err(source_failure)?;
    let mut control = place::connect(request.target)?;
    let windows = Windows::new(&mut source, request.source.log_elsewhere()).map_err(source_failure)?;
    let (problems, warnings) = source_problems(&mut source, request)?;
    let adds_tables = request.part.already.is_some();
    let mut plan = Plan { is_needed: true, adds_tables, problems, warnings, ..Plan::default() };
    let tables = list(&mut source, request.part).map_err(source_failure)?;
    let relations = Relations::read(&mut source).map_err(source_failure)?;
    let by_deletes = relations.changed_by_deletes();
    for listed in &tables {
        plan.problems.extend(listed.obstacle(TargetSequences::of(&control)));
        let Some(definition) = TableDefinition::read(&mut source, &listed.name).map_err(source_failure)? else {
            continue;
        };
        plan.tables += 1;
        plan.rows += definition.rows;
        if definition.is_sequence {
            continue;
        }
        if definition.key == ChunkKey::Whole {
            plan.whole.push(format!("{}: it has no unique key of columns without NULL", listed.name));
        } else if !is_read_in_chunks(&listed.engine) {
            plan.whole.push(format!(
                "{}: of the engine {}, in one statement, in which nothing may change it",
                listed.name, listed.engine
            ));
        } else if by_deletes.contains(&listed.name) {
            plan.whole.push(format!(
                "{}: a foreign key changes its rows (ON DELETE), which the source does not log",
                listed.name
            ));
        }
    }
    let names: Vec<TableName> = tables.into_iter().map(|listed| listed.name).collect();
    plan.problems.extend(changed_problems(&mut source, request)?);
    if CopyState::read(&mut control, request.channel)?.is_some() {
        plan.warnings.push("a copy is under way: it would go on".to_owned());
    } else if channel_has_begun(&mut control, request.channel)? {
        return Ok(Plan::default());
    } else {
        plan.problems.extend(already_there(&mut control, request, &names)?);
        plan.problems.extend(not_known(&mut source, &mut control, request.part)?);
        plan.problems.extend(gtid_problem(&source, &mut control, request)?);
        plan.warnings.extend(branches::warning(&mut source)?);
    }
    if request.accounts() == AccountChoice::Copied {
        match AccountTransfer::prepare(&mut source, &mut control, request.channel)? {
            Preparation::Ready(accounts) => {
                plan.accounts = accounts.len();
                plan.warnings.extend(accounts.warnings());
            }
            Preparation::Impossible(why) => plan.warnings.push(why),
        }
    }
    if windows.low_source() == LowSource::EarlierEnd {
        plan.warnings.push(
            "source: without GTIDs, without BACKUP_ADMIN, or with binlog_order_commits=OFF: what was logged 20 s ago is taken as visible".to_owned(),
        );
    }
    Ok(plan)
}

/// Whether the target knows the channel.
pub(super) fn channel_has_begun(control: &mut Connection, channel: &str) -> Result<bool, Failure> {
    let sql = format!("SELECT COUNT(*) FROM {SCHEMA}.progress WHERE channel={} AND started=1", quote(channel));
    Ok(if_there(control.scalar(sql))?.flatten().is_some_and(|count| count != "0"))
}

pub(super) fn begin(
    request: &CopyRequest<'_>,
    source: &mut Connection,
    control: &mut Connection,
    windows: &mut Windows,
    identity: String,
) -> Result<CopyState, Failure> {
    if windows.low_source() == LowSource::EarlierEnd {
        tracing::warn!(
            "copy: the source does not say what is visible: what was logged 20 s ago is taken as that, so this takes 20 s"
        );
    }
    // Before the tables are listed: what is defined from here on is in the log.
    let low = windows.low(source).and_then(|low| place_of(source, low)).map_err(source_failure)?;
    let tables = list(source, request.part).map_err(source_failure)?;
    let (mut problems, _) = source_problems(source, request)?;
    let sequences = TargetSequences::of(control);
    problems.extend(tables.iter().filter_map(|listed| listed.obstacle(sequences)));
    let names: Vec<TableName> = tables.into_iter().map(|listed| listed.name).collect();
    problems.extend(changed_problems(source, request)?);
    problems.extend(already_there(control, request, &names)?);
    problems.extend(not_known(source, control, request.part)?);
    problems.extend(gtid_problem(source, control, request)?);
    refuse(problems)?;
    place::execute_all(control, &create())?;
    // What an earlier copy has left that has not begun.
    let of = quote(request.channel);
    let clear: Vec<String> =
        COPY_TABLES.iter().map(|table| format!("DELETE FROM {SCHEMA}.{table} WHERE channel={of}")).collect();
    place::execute_all(control, &clear)?;
    for name in names {
        let record = TableRecord { name, status: TableStatus::Pending, reading: Reading::Chunks };
        set_table(control, request.channel, &record)?;
    }
    let state = CopyState {
        channel: request.channel.to_owned(),
        epoch: 1,
        phase: Phase::Reading,
        round: 1,
        source: identity,
        selection: request.part.text(),
        logged: request.target.logged,
        low,
        high: None,
    };
    state.begin(control)?;
    Ok(state)
}

/// With the GTIDs before it, where the source has any.
pub(super) fn place_of(source: &mut Connection, low: Low) -> Result<CopyPlace, Error> {
    match low {
        Low::Gtids(gtids) => Ok(CopyPlace { position: None, gtids }),
        Low::Position(position) => {
            let gtids = if source.server().is_mariadb() { gtids_before(source, &position)? } else { GtidState::None };
            Ok(CopyPlace { position: Some(position), gtids })
        }
    }
}

/// Of the server that has the log.
fn log_state(source: &mut Connection, request: &CopyRequest<'_>) -> Result<SourceState, Failure> {
    match request.source.log_elsewhere() {
        None => SourceState::read(source),
        Some(log) => {
            Connection::connect(log).map_err(anyhow::Error::from).and_then(|mut log| SourceState::read(&mut log))
        }
    }
    .map_err(failure)
}

/// What keeps a copy from beginning; what it leaves out.
fn source_problems(source: &mut Connection, request: &CopyRequest<'_>) -> Result<(Vec<String>, Vec<String>), Failure> {
    let state = log_state(source, request)?;
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    if state.binlog_format != "ROW" {
        problems.push(format!("source: binlog_format={}: a copy needs ROW", state.binlog_format));
    }
    if !state.row_image.eq_ignore_ascii_case("FULL") {
        problems.push(format!("source: binlog_row_image={}: a copy needs FULL", state.row_image));
    }
    if request.target.logged == BinlogChoice::No && !state.gtids {
        problems.push("source: gtid_mode is not ON: there are no GTIDs to keep".to_owned());
    }
    problems.extend(request.source.problem(source, &state)?);
    let names_tables = request.part.taken.is_some_and(|part| !part.rules.only.is_empty());
    if !names_tables && !wire::source::sees_every_table(source).map_err(source_failure)? {
        problems.push(
            "source: this account is not shown every table, and what it does not see would be missing: GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* to it \
             on the source, or name the tables (--only)"
                .to_owned(),
        );
    }
    // At the end they are read again: whether they can be read is better said before.
    match in_one_character_set(source, |source| read_programs(source, request.part)) {
        Err(error) if error.is_connection_lost() => return Err(source_failure(error)),
        Err(error) => problems.push(format!("source: {error}")),
        Ok(programs) => {
            let names = request.part.names();
            warnings.extend(programs.iter().filter_map(|program| renamed_program(program, &names).err()));
        }
    }
    Ok((problems, warnings))
}

/// Tables that the channel takes already, and that would not be as they are.
fn changed_problems(source: &mut Connection, request: &CopyRequest<'_>) -> Result<Vec<String>, Failure> {
    if request.part.already.is_none() {
        return Ok(Vec::new());
    }
    let all = list(source, CopyPart::default()).map_err(source_failure)?;
    let problem = |listed: &SourceTable| request.part.obstacle(&listed.name.schema, &listed.name.table);
    Ok(all.iter().filter_map(problem).collect())
}

/// What keeps the target from having the source's GTIDs.
fn gtid_problem(
    source: &Connection,
    control: &mut Connection,
    request: &CopyRequest<'_>,
) -> Result<Option<String>, Failure> {
    // A channel that has begun has them.
    if request.target.logged == BinlogChoice::Yes || request.part.already.is_some() {
        return Ok(None);
    }
    if source.server().is_mariadb() != control.server().is_mariadb() {
        return Ok(Some("--gtids preserve: MySQL and MariaDB do not take each other's GTIDs".to_owned()));
    }
    Ok(copy_gtids::why_not(control)?.map(|why| format!("--gtids preserve: {why}")))
}

/// A table of the target is never replaced that the copy has not made.
fn already_there(
    control: &mut Connection,
    request: &CopyRequest<'_>,
    names: &[TableName],
) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    let target_names = request.part.names();
    let mut of_source: BTreeMap<TableName, &TableName> = BTreeMap::new();
    for name in names {
        let there = target_names.table(name);
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA={} AND TABLE_NAME={}",
            quote(&there.schema),
            quote(&there.table)
        );
        if control.scalar(sql).map_err(failed)?.is_some_and(|count| count != "0") {
            problems.push(format!("target: {there} is there already: a copy makes its tables itself"));
        }
        if let Some(other) = of_source.insert(there.clone(), name) {
            problems
                .push(format!("{other} and {name} of the source would both be {there}: a copy does not merge tables"));
        }
    }
    Ok(problems)
}

fn refuse(problems: Vec<String>) -> Result<(), Failure> {
    const NAMED_MAX: usize = 10;
    if problems.is_empty() {
        return Ok(());
    }
    let named = problems.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
    let more = problems.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    Err(Failure::new(FailureKind::Refused, format!("the copy can not begin: {named}{more}"))
        .remedy("change that, or leave the tables out with --ignore; nothing was changed"))
}
