//! The first half of a round: tables are made and read; the log of that time is looked through.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use apply::mysql::server::errors::failed;
use apply::mysql::server::sql::identifier;
use engine::failure::{Failure, FailureKind};
use engine::windows::Reading;
use wire::Connection;

use super::branches;
use super::ends::{Ends, execute_there};
use crate::bookkeeping::{
    CopyPlace, CopyState, Phase, TableRecord, TableStatus, forget_table, ranges_of, set_ranges, set_table, tables_of,
};
use crate::chunk::{TableDefinition, TableName};
use crate::definitions::{
    GeneratedColumns, Relations, TargetNames, TargetSequences, create_schema, is_read_in_chunks, list, schemas,
    show_create, split,
};
use crate::reading::{RangeWork, ReadContext, WholeRead, copy_ranges, is_redefined, plan, read_whole};
use crate::scan::{Findings, Scan};
use crate::source::source_failure;

pub(super) fn read(ends: &mut Ends<'_>, state: &mut CopyState) -> Result<(), Failure> {
    let request = ends.request;
    let from = state.high.clone().unwrap_or_else(|| state.low.clone());
    let branches = branches::wait_for_ends(&mut ends.source, request)?;
    // What lies before the round's log is not applied again: reads have to see it.
    ends.wait_until_visible(&from)?;
    let relations = Relations::read(&mut ends.source).map_err(source_failure)?;
    let (definitions, made) = make_tables(ends, state, &relations)?;
    let packet_bytes_max = ends.control.scalar("SELECT @@global.max_allowed_packet").map_err(failed)?;
    let names = ends.names.clone();
    let context = ReadContext {
        names: &names,
        source: request.source.rows(),
        target: request.target,
        state,
        measures: request.measures,
        stop: request.stop,
        workers: request.workers.max(1),
        limits: request.limits,
        packet_bytes_max: packet_bytes_max.and_then(|bytes| bytes.parse().ok()).unwrap_or(1 << 20),
    };
    let (work, rows_there) = ranges(&mut ends.control, state, &definitions)?;
    let rows = definitions.values().map(|(table, _)| table.rows).sum();
    context.measures.expect(definitions.len() as u64, rows);
    context.measures.placed(rows_there, 0);
    context.measures.begin(format!("round {}: copying {} tables, about {rows} rows", state.round, definitions.len()));
    let mut redefined: BTreeSet<TableName> = made;
    for (table, why) in copy_ranges(&context, work)? {
        tracing::info!("copy: {} is read again: {why}", table.name);
        redefined.insert(table.name.clone());
    }
    let whole = whole_tables(&definitions);
    if !whole.is_empty() {
        context.measures.begin(format!("round {}: {} tables in one consistent read", state.round, whole.len()));
    }
    let read = read_whole(&context, &mut ends.windows, &whole, &mut |target, table, definition| {
        make_table(target, &names, &table.name, &split(definition).table)
    })?;
    redefined.extend(read.redefined.iter().map(|(table, _)| table.name.clone()));
    ends.reconnect()?;
    let generated = GeneratedColumns::read(&mut ends.source).map_err(source_failure)?;
    let findings = look_through(ends, state, &from, &read, &relations, &generated)?;
    if findings.has_branches_of_others {
        branches.require()?;
    }
    settle(ends, state, &findings, &redefined)?;
    state.high = Some(CopyPlace { position: Some(read.window.high), gtids: findings.gtids });
    state.phase = Phase::Following;
    state.record(&mut ends.control)
}

/// MariaDB: a sequence that is not there yet, in a default.
const NO_SUCH_SEQUENCE: [u16; 2] = [1146, 4091];

type Definitions = BTreeMap<TableName, (Arc<TableDefinition>, Reading)>;

/// Makes the tables that have to be read and have no rows yet. Returns the definitions of those, of tables that are partly read, and of those that are read as a
/// whole; and the tables that are gone.
fn make_tables(
    ends: &mut Ends<'_>,
    state: &CopyState,
    relations: &Relations,
) -> Result<(Definitions, BTreeSet<TableName>), Failure> {
    let by_deletes = relations.changed_by_deletes();
    let mut definitions = Definitions::new();
    let mut gone = BTreeSet::new();
    let mut refused = Vec::new();
    let tables = tables_of(&mut ends.control, &state.channel)?;
    if tables.iter().any(|table| table.status == TableStatus::Pending) {
        make_schemas(ends)?;
    }
    let mut waiting = VecDeque::from(tables);
    // A default of one may be the next value of another, a sequence.
    let mut later = waiting.len();
    while let Some(table) = waiting.pop_front() {
        if table.status == TableStatus::Placed && table.reading == Reading::Chunks {
            continue;
        }
        let has_rows = !ranges_of(&mut ends.control, &state.channel, &table.name)?.is_empty();
        let definition = TableDefinition::read(&mut ends.source, &table.name).map_err(source_failure)?;
        let text = show_create(&mut ends.source, &table.name).map_err(source_failure)?;
        let (Some(definition), Some(text)) = (definition, text) else {
            gone.insert(table.name);
            continue;
        };
        let is_by_key =
            definition.has_key() && is_read_in_chunks(&definition.engine) && !by_deletes.contains(&table.name);
        let reading = if is_by_key { Reading::Chunks } else { Reading::Whole };
        if !has_rows {
            set_table(
                &mut ends.control,
                &state.channel,
                &TableRecord { reading, status: TableStatus::Pending, ..table.clone() },
            )?;
            if let Err(failure) = make_table(&mut ends.control, &ends.names, &table.name, &split(&text).table) {
                if failure.kind != FailureKind::Refused {
                    return Err(failure);
                }
                if failure.code.is_some_and(|code| NO_SUCH_SEQUENCE.contains(&code)) && later > 0 {
                    later -= 1;
                    waiting.push_back(table);
                } else {
                    refused.push(format!("{}: {}", table.name, failure.message));
                }
                continue;
            }
            if reading == Reading::Chunks {
                let ranges = match plan(&mut ends.source, &definition, ends.request.workers) {
                    Err(error) if is_redefined(&error) => {
                        gone.insert(table.name);
                        continue;
                    }
                    ranges => ranges.map_err(source_failure)?,
                };
                set_ranges(&mut ends.control, &state.channel, &table.name, &ranges)?;
            }
        }
        definitions.insert(table.name, (Arc::new(definition), reading));
    }
    if !refused.is_empty() {
        let message = format!("the target does not take {} of the tables: {}", refused.len(), refused.join("; "));
        return Err(Failure::new(FailureKind::Refused, message).remedy(
            "change the definitions on the source, or leave the tables out with --ignore; no rows were copied of them",
        ));
    }
    Ok((definitions, gone))
}

fn make_schemas(ends: &mut Ends<'_>) -> Result<(), Failure> {
    for (schema, _) in schemas(&mut ends.source, ends.request.part).map_err(source_failure)? {
        let Some(statement) = create_schema(&mut ends.source, &schema).map_err(source_failure)? else { continue };
        if let Some(statement) = ends.names.statement(&statement, "", "")? {
            execute_there(&mut ends.control, &statement)?;
        }
    }
    // Tables that are given a name in a schema of their own.
    for schema in ends.request.part.taken.iter().flat_map(|part| part.new_schemas()) {
        let create = format!("CREATE DATABASE IF NOT EXISTS {}", identifier(schema));
        ends.control.execute(create).map_err(failed)?;
    }
    Ok(())
}

/// In place of what an earlier attempt has left.
fn make_table(target: &mut Connection, names: &TargetNames, name: &TableName, definition: &str) -> Result<(), Failure> {
    let Some(statement) = names.statement(definition, &name.schema, "")? else {
        return Err(Failure::new(FailureKind::Refused, format!("{name}: the renames leave it out")));
    };
    target.execute(format!("DROP TABLE IF EXISTS {}", names.table(name).quoted())).map_err(failed)?;
    execute_there(target, &statement)
}

/// Those that are not done; and how many rows are there already.
fn ranges(
    control: &mut Connection,
    state: &CopyState,
    definitions: &Definitions,
) -> Result<(Vec<RangeWork>, u64), Failure> {
    let (mut work, mut rows_there) = (Vec::new(), 0);
    for (name, (table, reading)) in definitions {
        if *reading == Reading::Whole {
            continue;
        }
        let ranges = ranges_of(control, &state.channel, name)?;
        rows_there += ranges.iter().map(|range| range.rows).sum::<u64>();
        work.extend(
            ranges
                .into_iter()
                .filter(|range| !range.is_done)
                .map(|range| RangeWork { table: Arc::clone(table), range }),
        );
    }
    // The longest first: at the end all workers have something to do.
    work.sort_by_key(|work| std::cmp::Reverse(work.table.rows));
    Ok((work, rows_there))
}

fn whole_tables(definitions: &Definitions) -> Vec<TableDefinition> {
    let whole = definitions.values().filter(|(_, reading)| *reading == Reading::Whole);
    whole.map(|(table, _)| (**table).clone()).collect()
}

fn look_through(
    ends: &mut Ends<'_>,
    state: &CopyState,
    from: &CopyPlace,
    read: &WholeRead,
    relations: &Relations,
    generated: &GeneratedColumns,
) -> Result<Findings, Failure> {
    let tables = tables_of(&mut ends.control, &state.channel)?;
    let tables: Vec<(TableName, Reading)> = tables.into_iter().map(|table| (table.name, table.reading)).collect();
    ends.request.measures.begin(format!("round {}: looking through its log up to {}", state.round, read.window.high));
    Scan {
        source: ends.request.source.log,
        server_id: ends.request.server_id,
        memory_bytes: ends.request.memory_bytes,
        from,
        window: &read.window,
        late: &read.late,
        tables: &tables,
        relations,
        generated,
        // They are read at the copy's end.
        accounts: false,
    }
    .run()
}

/// Records which tables are as the log says, and which are read again. Before the round's end is recorded: if that does not come, the round is read on.
fn settle(
    ends: &mut Ends<'_>,
    state: &CopyState,
    findings: &Findings,
    redefined: &BTreeSet<TableName>,
) -> Result<(), Failure> {
    let again: BTreeSet<&TableName> = findings.again.iter().map(|(name, _)| name).chain(redefined).collect();
    for (name, why) in &findings.again {
        tracing::info!("copy: {name} is read again: {why}");
    }
    let channel = &state.channel;
    let tables = tables_of(&mut ends.control, channel)?;
    for table in &tables {
        let is_again = again.contains(&table.name);
        let status = if is_again { TableStatus::Pending } else { TableStatus::Placed };
        if status != table.status || is_again {
            set_table(&mut ends.control, channel, &TableRecord { status, ..table.clone() })?;
        }
    }
    if again.is_empty() && !findings.definitions_changed {
        return Ok(());
    }
    // Tables may have come and gone.
    let listed = list(&mut ends.source, ends.request.part).map_err(source_failure)?;
    let sequences = TargetSequences::of(&ends.control);
    let obstacles: Vec<String> = listed.iter().filter_map(|listed| listed.obstacle(sequences)).collect();
    if let Some(first) = obstacles.first() {
        return Err(Failure::new(FailureKind::Refused, format!("the copy can not go on: {first}"))
            .remedy("change that, or begin anew without the table (--ignore)"));
    }
    let names: BTreeSet<TableName> = listed.into_iter().map(|listed| listed.name).collect();
    for table in tables.iter().filter(|table| !names.contains(&table.name)) {
        let there = ends.names.table(&table.name);
        ends.control.execute(format!("DROP TABLE IF EXISTS {}", there.quoted())).map_err(failed)?;
        forget_table(&mut ends.control, channel, &table.name)?;
    }
    for name in names.iter().filter(|name| !tables.iter().any(|table| table.name == **name)) {
        let record = TableRecord { name: name.clone(), status: TableStatus::Pending, reading: Reading::Chunks };
        set_table(&mut ends.control, channel, &record)?;
    }
    Ok(())
}
