//! The end of a copy: foreign keys, accounts, views, triggers, routines and events are made, as the source has them at the place where the channel goes on.

use apply::mysql::server::errors::failed;
use apply::mysql::server::sql::{identifier, quote};
use apply::mysql::{BinlogChoice, copy_gtids};
use engine::failure::{Failure, FailureKind};
use engine::windows::{Reading, Window};

use super::channel::CopyChannel;
use super::ends::{Ends, execute_there};
use crate::bookkeeping::{CopyState, tables_of};
use crate::chunk::TableName;
use crate::definitions::{
    GeneratedColumns, Relations, TargetStatement, constraint_name, create_programs, in_one_character_set,
    read_programs, show_create, split,
};
use crate::scan::{LateTables, Scan};
use crate::source::source_failure;

/// Whether the copy is done. If a definition has changed behind the round's end, there is another round: its log would meet the newer one.
pub(super) fn finish(
    ends: &mut Ends<'_>,
    state: &mut CopyState,
    channel: &mut CopyChannel<'_, '_>,
) -> Result<bool, Failure> {
    let high = state
        .high
        .clone()
        .ok_or_else(|| Failure::new(FailureKind::Refused, "the copy's record has no end of its log"))?;
    channel.apply_up_to(&high)?;
    ends.reconnect()?;
    ends.request.measures.begin("foreign keys, accounts, views, triggers, routines and events");
    let tables: Vec<TableName> =
        tables_of(&mut ends.control, &state.channel)?.into_iter().map(|table| table.name).collect();
    let foreign_keys = foreign_keys(ends, &tables)?;
    let programs = in_one_character_set(&mut ends.source, |source| read_programs(source, ends.request.part));
    let programs = programs.map_err(source_failure)?;
    let accounts = ends.accounts()?;
    let end = ends.windows.high(&mut ends.source).map_err(source_failure)?;
    let low = ends.windows.low(&mut ends.source).map_err(source_failure)?;
    let names: Vec<(TableName, Reading)> = tables.iter().map(|name| (name.clone(), Reading::Chunks)).collect();
    let findings = Scan {
        source: ends.request.source.log,
        server_id: ends.request.server_id,
        memory_bytes: ends.request.memory_bytes,
        from: &high,
        window: &Window { low, high: end },
        late: &LateTables::default(),
        tables: &names,
        relations: &Relations::default(),
        generated: &GeneratedColumns::default(),
        accounts: accounts.is_some(),
    }
    .run()?;
    if findings.definitions_changed {
        tracing::info!("copy: definitions or accounts have changed since the round's end");
        drop_triggers(ends, &tables)?;
        ends.next_round(state)?;
        return Ok(false);
    }
    make_foreign_keys(ends, &foreign_keys)?;
    let mut accounts = accounts;
    // Programs have definers, and accounts have privileges on programs.
    if let Some(accounts) = &mut accounts {
        accounts.make(&mut ends.control, &state.channel)?;
    }
    create_programs(&mut ends.control, &ends.names, &programs)?;
    if let Some(accounts) = accounts {
        accounts.finish(&mut ends.control)?;
    }
    if ends.request.part.already.is_some() {
        // The channel has its GTIDs. What is recorded of the copy goes as its tables become the channel's.
        return Ok(true);
    }
    if state.logged == BinlogChoice::No {
        copy_gtids::take(&mut ends.control, &state.channel, &high.gtids)?;
    }
    state.forget(&mut ends.control)?;
    Ok(true)
}

/// The channel has gone on since then: another round comes.
pub(super) fn undo(ends: &mut Ends<'_>, state: &mut CopyState) -> Result<(), Failure> {
    let tables = tables_of(&mut ends.control, &state.channel)?;
    let tables: Vec<TableName> = tables.into_iter().map(|table| table.name).collect();
    drop_triggers(ends, &tables)?;
    ends.next_round(state)
}

/// With the statement that makes it.
type ForeignKeys = Vec<(TableName, TargetStatement)>;

fn foreign_keys(ends: &mut Ends<'_>, tables: &[TableName]) -> Result<ForeignKeys, Failure> {
    let mut found = Vec::new();
    for name in tables {
        let text = show_create(&mut ends.source, name).map_err(source_failure)?.unwrap_or_default();
        let of_source = split(&text).foreign_keys;
        if of_source.is_empty() {
            continue;
        }
        let there = show_create(&mut ends.control, &ends.names.table(name)).map_err(failed)?.unwrap_or_default();
        // An earlier attempt may have made some.
        let there = split(&there).foreign_keys;
        let is_there = |key: &&String| there.iter().any(|other| constraint_name(other) == constraint_name(key));
        let missing: Vec<String> =
            of_source.iter().filter(|key| !is_there(key)).map(|key| format!("ADD {key}")).collect();
        if missing.is_empty() {
            continue;
        }
        let statement = format!("ALTER TABLE {} {}", name.quoted(), missing.join(", "));
        found.extend(ends.names.statement(&statement, &name.schema, "")?.map(|statement| (name.clone(), statement)));
    }
    Ok(found)
}

/// Without looking at the rows: they are the source's.
fn make_foreign_keys(ends: &mut Ends<'_>, foreign_keys: &ForeignKeys) -> Result<(), Failure> {
    for (name, statement) in foreign_keys {
        execute_there(&mut ends.control, statement).map_err(|failure| Failure {
            message: format!("the target does not take the foreign keys of {name}: {}", failure.message),
            ..failure
        })?;
    }
    Ok(())
}

/// Those that an earlier attempt has made: rows that are copied fire none.
fn drop_triggers(ends: &mut Ends<'_>, tables: &[TableName]) -> Result<(), Failure> {
    for name in tables {
        let name = ends.names.table(name);
        let sql = format!(
            "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA={} AND EVENT_OBJECT_TABLE={}",
            quote(&name.schema),
            quote(&name.table)
        );
        for row in ends.control.rows(sql).map_err(failed)? {
            let trigger = row.required_text(0).map_err(failed)?;
            let drop = format!("DROP TRIGGER {}.{}", identifier(&name.schema), identifier(trigger));
            ends.control.execute(drop).map_err(failed)?;
        }
    }
    Ok(())
}
