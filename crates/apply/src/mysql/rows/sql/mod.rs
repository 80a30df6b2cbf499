//! Rows as `INSERT`, `UPDATE` and `DELETE`, which need no other privileges than these: for servers on which nobody may execute `BINLOG`.
//!
//! As strict as row events: each statement has to meet the rows that the source changed, and a check behind it is an error where it did not. What a
//! statement would do otherwise than a row event is refused by name: triggers would fire again, history would be made anew. Values are literals
//! ([`literal`]); which statements, says [`statements`].

mod bytes;
mod cells;
mod compare;
mod json_tree;
mod leftovers;
mod literal;
pub(in crate::mysql) mod over_leftovers;
mod replacement;
pub(in crate::mysql) mod session;
mod statements;
pub(in crate::mysql) mod table;

use std::sync::Arc;

use base64_simd::STANDARD;
use binlog::{RowsEvent, TableMap};
use engine::compact::Batch;
use engine::failure::{Failure, FailureKind};
use wire::Connection;

use self::statements::{RowLists, Statements};
use self::table::SqlTable;
use super::quirks::TableQuirks;
use super::sequences::CompletedRow;
use super::writer::{CompareBefore, RowWriter};
use crate::mysql::script::Script;
use crate::mysql::server::errors::code;
use crate::mysql::server::info::{Engine, TargetInfo};
use crate::mysql::server::privilege_probe::Lack;
use crate::mysql::server::row_check::RowChecks;
use crate::mysql::server::sql::identifier;

/// A packet is sent once it has so many bytes.
const PACKET_BYTES: usize = 1 << 20;
/// Kept free below the server's limit for a packet.
const SPARE_BYTES: usize = 1024;
/// Flags of a rows event for which the target checks no foreign key: what cascades is in the log.
const NO_FOREIGN_KEY_CHECKS: u16 = RowsEvent::NO_FOREIGN_KEY_CHECKS | RowsEvent::SQL_FOREIGN_KEYS;
/// Before stored rows that are statements.
const STORED: &str = "sql ";

/// What becomes of rows that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// They have to be those that the source changed.
    Exactly(CompareBefore),
    /// Whatever they are ([`replacement`]).
    Overwriting,
}

pub struct SqlStatements {
    quirks: Arc<TableQuirks>,
    writes: Writes,
    lists: RowLists,
    checks: RowChecks,
    packet_bytes_max: usize,
    /// The table map whose types were compared with the target's last.
    checked: Option<Arc<TableMap>>,
}

impl SqlStatements {
    pub fn new(info: &TargetInfo, quirks: Arc<TableQuirks>, writes: Writes) -> Self {
        let checks = match info.engine {
            Engine::Server => RowChecks::OutOfRange,
            Engine::Other => RowChecks::Uuid,
        };
        Self { quirks, writes, lists: RowLists::of(info), checks, packet_bytes_max: 0, checked: None }
    }

    /// What is known of the table, or what the target says of it.
    fn table(
        &self,
        map: &TableMap,
        script: &mut Script,
        connection: &mut Connection,
    ) -> Result<Option<Arc<SqlTable>>, Failure> {
        if let Some(known) = self.quirks.sql_table(map) {
            return Ok(Some(known));
        }
        script.send(connection)?;
        self.quirks.load_sql_table(map, connection)
    }

    /// The table, if its rows can be written.
    fn checked(&mut self, table: Option<Arc<SqlTable>>, batch: &Batch<'_>) -> Result<Arc<SqlTable>, Failure> {
        let map = batch.map;
        let table = table.ok_or_else(|| not_there(map))?;
        let name = format!("{}.{}", map.schema, map.table);
        let triggers = table.fired_by(batch.kind);
        if !triggers.is_empty() {
            let message = format!(
                "{name} has triggers on the target ({}), which statements would fire although their changes are in the source's log already",
                triggers.join(", ")
            );
            return Err(Failure::new(FailureKind::Refused, message).remedy(
                "drop the triggers on the target until clients write there (SHOW CREATE TRIGGER keeps their text); or use --rows binlog, whose rows fire none",
            ));
        }
        if table.traits.is_versioned {
            let message =
                format!("{name} keeps its history (WITH SYSTEM VERSIONING), which statements would make a second time");
            return Err(Failure::new(FailureKind::Refused, message).remedy(
                "use --rows binlog; or ALTER TABLE … DROP SYSTEM VERSIONING on the target, and on the source",
            ));
        }
        if batch.partial_json {
            let message =
                format!("a partial JSON update of {name} (binlog_row_value_options=PARTIAL_JSON) is no statement yet");
            return Err(Failure::new(FailureKind::Refused, message)
                .remedy("set binlog_row_value_options='' on the source; or use --rows binlog"));
        }
        if !self.checked.as_ref().is_some_and(|checked| Arc::ptr_eq(checked, map)) {
            if self.quirks.hides_triggers(map) {
                let message = format!(
                    "the account is not shown triggers of {name} on the target, and rows as SQL (--rows sql) would fire them"
                );
                return Err(Failure::new(FailureKind::Refused, message).remedy(format!(
                    "GRANT TRIGGER ON {} TO heddle's account; or look with another account whether the table has triggers, and if it has none add --no-triggers-on {name}",
                    qualified(map)
                )));
            }
            if let Some((column, kind)) = table.loses(map) {
                let message = format!(
                    "{name} column {column} is {kind} on the target, which would cut or round the source's values without an error"
                );
                return Err(Failure::new(FailureKind::Refused, message)
                    .remedy("make the target's column as wide as the source's, and run the same command again"));
            }
            self.checked = Some(Arc::clone(map));
        }
        Ok(table)
    }

    /// Hands each statement to `sink`, with what the session needs for it.
    fn encode(
        &mut self,
        table: Option<Arc<SqlTable>>,
        batch: &Batch<'_>,
        sink: &mut dyn FnMut(Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let table = self.checked(table, batch)?;
        let checks_foreign_keys = self.writes != Writes::Overwriting && batch.flags & NO_FOREIGN_KEY_CHECKS == 0;
        let takes_time = batch.takes_time();
        if !checks_foreign_keys {
            sink(b"SET SESSION foreign_key_checks=0".to_vec())?;
        }
        if takes_time {
            sink(format!("SET SESSION timestamp={}", batch.timestamp).into_bytes())?;
        }
        let leftovers = self.quirks.leftovers_of(batch.map);
        let (lists, checks) = (self.lists, self.checks);
        let statements = |compare| Statements { table: &table, batch, compare, lists, checks, leftovers };
        match self.writes {
            Writes::Exactly(compare) => statements(compare).write(sink)?,
            Writes::Overwriting => statements(CompareBefore::Key).overwrite(sink)?,
        }
        if takes_time {
            sink(b"SET SESSION timestamp=DEFAULT".to_vec())?;
        }
        if !checks_foreign_keys {
            sink(b"SET SESSION foreign_key_checks=1".to_vec())?;
        }
        Ok(())
    }
}

fn qualified(map: &TableMap) -> String {
    format!("{}.{}", identifier(&map.schema), identifier(&map.table))
}

fn not_there(map: &TableMap) -> Failure {
    Failure::new(FailureKind::Refused, format!("the target has no table {}.{}", map.schema, map.table))
        .code(code::NO_SUCH_TABLE)
        .remedy("load the source's schema and data as of the start position first; or grant heddle's account SELECT on the table, without which it is not shown")
}

fn too_large(bytes: usize, bytes_max: usize) -> Failure {
    let message =
        format!("a row of {bytes} bytes of text does not fit into the target's max_allowed_packet ({bytes_max} bytes)");
    Failure::new(FailureKind::Refused, message)
        .code(code::PACKET_TOO_LARGE)
        .remedy("raise max_allowed_packet on the target: to three times the largest row")
}

/// Appends a statement to the script, which is sent before when it would get too long.
fn append(
    statement: Vec<u8>,
    packet_bytes_max: usize,
    script: &mut Script,
    connection: &mut Connection,
) -> Result<(), Failure> {
    if statement.len() > packet_bytes_max {
        return Err(too_large(statement.len(), packet_bytes_max));
    }
    if script.packet_bytes() + statement.len() > PACKET_BYTES.min(packet_bytes_max) {
        script.send(connection)?;
    }
    script.owned_statement(statement);
    Ok(())
}

impl RowWriter for SqlStatements {
    fn set_up(&mut self, _: &mut Connection, packet_bytes_max: usize) -> Result<(), Failure> {
        self.packet_bytes_max = packet_bytes_max.saturating_sub(SPARE_BYTES);
        Ok(())
    }

    /// Which privileges rows need is said by their tables.
    fn lacks(&mut self, _: &mut Connection, _: usize) -> Result<Vec<Lack>, Failure> {
        Ok(Vec::new())
    }

    /// Statements are the session's own.
    fn set_server_id(&mut self, _: u32) {}

    fn write(&mut self, batch: &Batch<'_>, script: &mut Script, connection: &mut Connection) -> Result<(), Failure> {
        if self.quirks.skips(batch) {
            return Ok(());
        }
        if self.quirks.is_incomplete(batch) {
            script.send(connection)?;
        }
        if let Some(completed) = self.quirks.complete(batch, connection)? {
            return self.write(&completed.batch(batch), script, connection);
        }
        let packet_bytes_max = self.packet_bytes_max;
        let table = self.table(batch.map, script, connection)?;
        self.encode(table, batch, &mut |statement| append(statement, packet_bytes_max, script, connection))
    }

    /// A statement changes one table.
    fn is_one_statement(&self, _: &[Batch<'_>], _: usize) -> bool {
        false
    }

    fn encode_statement(&mut self, _: &[Batch<'_>]) -> Result<usize, Failure> {
        Err(Failure::new(FailureKind::Refused, "rows are never one statement here: this is a bug in heddle"))
    }

    fn append_statement(&self, _: &str, _: &mut Script) {}

    fn complete(&self, batch: &Batch<'_>, connection: &mut Connection) -> Result<Option<CompletedRow>, Failure> {
        self.quirks.complete(batch, connection)
    }

    /// Any DML looks for the partition.
    fn choose_history_partition(&self, _: &Batch<'_>) -> Option<String> {
        None
    }

    fn needs_own_state(&self) -> bool {
        true
    }

    fn to_stored(
        &mut self,
        _: u32,
        batches: &[Batch<'_>],
        script: &mut Script,
        connection: &mut Connection,
    ) -> Result<String, Failure> {
        let mut stored = StoredStatements::default();
        for batch in batches {
            let table = self.table(batch.map, script, connection)?;
            self.encode(table, batch, &mut |statement| {
                stored.add(&statement);
                Ok(())
            })?;
        }
        Ok(stored.text())
    }

    fn write_stored(&self, stored: &str, script: &mut Script) -> Result<(), Failure> {
        let encoded = stored.strip_prefix(STORED).ok_or_else(|| {
            Failure::new(FailureKind::Refused, "the rows of an open XA branch were kept by a run with --rows binlog")
                .remedy("use --rows binlog until the branch has ended, with an account that may (heddle settle: with such an account)")
        })?;
        write_statements(encoded, script)
    }
}

/// Statements as text that can be stored on the target.
#[derive(Default)]
pub(in crate::mysql) struct StoredStatements(Vec<u8>);

impl StoredStatements {
    pub fn add(&mut self, statement: &[u8]) {
        self.0.extend_from_slice(&(statement.len() as u64).to_le_bytes());
        self.0.extend_from_slice(statement);
    }

    pub fn text(&self) -> String {
        format!("{STORED}{}", STANDARD.encode_to_string(&self.0))
    }
}

/// Appends statements that [`RowWriter::to_stored`] has made text of. `None`: they are not of this writer.
pub fn write_stored_statements(stored: &str, script: &mut Script) -> Option<Result<(), Failure>> {
    stored.strip_prefix(STORED).map(|encoded| write_statements(encoded, script))
}

fn write_statements(encoded: &str, script: &mut Script) -> Result<(), Failure> {
    let damaged = || Failure::new(FailureKind::Refused, "the kept rows of an XA branch are damaged");
    let bytes = STANDARD.decode_to_vec(encoded).map_err(|_| damaged())?;
    script.statement(session::BE_UTC);
    let mut rest = bytes.as_slice();
    while let Some((length, behind)) = rest.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
        let (statement, behind) = behind.split_at_checked(length).ok_or_else(damaged)?;
        script.statement(statement);
        rest = behind;
    }
    script.statement(session::BE_LOCAL);
    if rest.is_empty() { Ok(()) } else { Err(damaged()) }
}
