//! Rows as `BINLOG` statements: binary log events in base64, which the server's own row applier executes.
//!
//! It checks the rows, types need no conversion to text, and one statement carries thousands of rows. The first statement of a connection
//! is a format description, which says how the events after it are laid out.

mod encoder;
mod layout;
pub(in crate::mysql) mod session;

use std::sync::Arc;

use base64_simd::STANDARD;
use binlog::{Flavour, RowsKind};
use engine::compact::Batch;
use engine::failure::{Failure, FailureKind};
use engine::schema::BarrierReason;
use wire::Connection;

use self::encoder::Encoder;
use self::layout::Dialect;
use super::quirks::TableQuirks;
use super::sequences::CompletedRow;
use super::sql::over_leftovers::OverLeftovers;
use super::sql::{StoredStatements, write_stored_statements};
use super::writer::RowWriter;
use super::{ambiguous_rows, hidden_keys};
use crate::mysql::script::{Base64Frame, Script};
use crate::mysql::server::errors::{failed, is_privilege};
use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::privilege_probe::{Lack, is_denied};
use crate::mysql::server::sql::identifier;

/// Before stored rows of tables as in `rows/hidden_keys.rs`.
const LEAVES_KEY_OUT: &str = "~";

const BINLOG: Base64Frame = Base64Frame { before: "BINLOG '", after: "'" };

pub struct BinlogStatements {
    quirks: Arc<TableQuirks>,
    encoder: Encoder,
    /// The most bytes of events in one statement.
    events_bytes_max: usize,
    /// The events of the one statement that was made last.
    events: Vec<u8>,
    format_description: Vec<u8>,
    /// See `rows/hidden_keys.rs`; `None`: the target knows no such keys.
    own_version: Option<String>,
    /// MySQL leaves `gtid_next` undetermined, or ANONYMOUS, after a format description.
    resets_gtid_next: bool,
    over_leftovers: OverLeftovers,
    /// What lets an account execute `BINLOG` statements, and set `gtid_next`.
    privilege: &'static str,
    session_privilege: &'static str,
}

impl BinlogStatements {
    pub fn new(info: &TargetInfo, quirks: Arc<TableQuirks>) -> Self {
        let is_mysql = info.flavour == Flavour::MySql;
        let dialect = Dialect {
            mariadb: !is_mysql,
            sql_foreign_keys: is_mysql && info.version >= (9, 6, 0),
            generated_keys: info.knows_generated_keys(),
        };
        Self {
            encoder: Encoder::new(dialect, Arc::clone(&quirks)),
            over_leftovers: OverLeftovers::new(info, &quirks),
            quirks,
            events_bytes_max: 0,
            events: Vec::new(),
            format_description: format_description(info),
            own_version: info.knows_generated_keys().then(|| hidden_keys::of_own_version(info)),
            resets_gtid_next: is_mysql && info.version >= (5, 6, 5),
            session_privilege: info.session_privilege(),
            privilege: privilege(info),
        }
    }

    fn encode(&mut self, batch: &Batch<'_>, script: &mut Script, connection: &mut Connection) -> Result<(), Failure> {
        let Self { encoder, events_bytes_max, .. } = self;
        encoder.encode(batch, &mut |events| {
            check_fits(events.len(), *events_bytes_max)?;
            script.grow(BINLOG, events, connection)
        })
    }

    /// See `rows/hidden_keys.rs`.
    fn leaves_key_out(&self, batch: &Batch<'_>) -> bool {
        self.own_version.is_some() && self.quirks.hidden_keys.get(batch.map).is_some()
    }

    /// The rows as they are in the log.
    fn write_logged(
        &mut self,
        batch: &Batch<'_>,
        script: &mut Script,
        connection: &mut Connection,
    ) -> Result<(), Failure> {
        let lookup = match batch.kind {
            RowsKind::Write => None,
            RowsKind::Update | RowsKind::Delete => self.quirks.lookups.get(batch.map),
        };
        if self.leaves_key_out(batch) {
            if let Some(version) = &self.own_version {
                script.statement(version);
            }
            self.encode(batch, script, connection)?;
            script.statement(hidden_keys::OF_NO_SERVER);
            return Ok(());
        }
        let Some(lookup) = lookup else { return self.encode(batch, script, connection) };
        script.send(connection)?;
        if lookup.is_by_first_key(|sql| connection.rows(sql))? {
            self.encode(batch, script, connection)?;
            script.send(connection)?;
            // The server has chosen the index in between.
            let is_so_still = lookup.is_by_first_key(|sql| connection.rows(sql))?;
            return if is_so_still { Ok(()) } else { Err(lookup.has_changed()) };
        }
        ambiguous_rows::one_by_one(&lookup, batch, &mut |question, row| {
            script.send(connection)?;
            if connection.scalar(question).map_err(failed)?.as_deref() != Some("0") {
                return Ok(false);
            }
            self.encode(row, script, connection)?;
            Ok(true)
        })
    }

    /// As statements: deletes, and the events between them.
    fn store_over_leftovers(&mut self, batches: &[Batch<'_>]) -> Result<String, Failure> {
        let mut stored = StoredStatements::default();
        for batch in batches {
            for (clearing, rows) in self.over_leftovers.known_steps(batch)? {
                clearing.iter().for_each(|statement| stored.add(statement));
                let version = self.own_version.as_ref().filter(|_| self.leaves_key_out(&rows));
                if let Some(version) = version {
                    stored.add(version.as_bytes());
                }
                self.encoder.encode(&rows, &mut |events| {
                    stored.add(
                        format!("{}{}{}", BINLOG.before, STANDARD.encode_to_string(events), BINLOG.after).as_bytes(),
                    );
                    Ok(())
                })?;
                if version.is_some() {
                    stored.add(hidden_keys::OF_NO_SERVER.as_bytes());
                }
            }
        }
        Ok(stored.text())
    }

    fn needs_questions(&self, batch: &Batch<'_>) -> bool {
        match batch.kind {
            RowsKind::Write => self.quirks.is_incomplete(batch),
            RowsKind::Update | RowsKind::Delete => self.quirks.lookups.get(batch.map).is_some(),
        }
    }
}

/// Lets an account execute `BINLOG` statements. (MySQL's `REPLICATION_APPLIER` does so, too, and then wants privileges on each table.)
fn privilege(info: &TargetInfo) -> &'static str {
    match info.flavour {
        Flavour::MySql if info.has_dynamic_privileges() => "BINLOG_ADMIN",
        Flavour::MariaDb if info.has_dynamic_privileges() => "BINLOG REPLAY",
        Flavour::MySql | Flavour::MariaDb => "SUPER",
    }
}

const AUTOMATIC_GTIDS: &str = "SET SESSION gtid_next='AUTOMATIC'";

fn check_fits(bytes: usize, bytes_max: usize) -> Result<(), Failure> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(Failure::new(
        FailureKind::Refused,
        format!(
            "an event of {bytes} bytes does not fit into the target's max_allowed_packet (as base64, {bytes_max} bytes at most)"
        ),
    )
    .remedy("raise max_allowed_packet on the target, for the largest row as base64 (4/3 of its size)"))
}

/// One without checksums, of the target's own version.
fn format_description(info: &TargetInfo) -> Vec<u8> {
    let spec = binlog::encode::FormatSpec::new(&info.version_text, info.flavour, binlog::Checksum::Off);
    let head = binlog::encode::Head::new(0, 1, binlog::Checksum::Off);
    binlog::encode::format_description(&head, &spec)
}

impl RowWriter for BinlogStatements {
    fn set_up(&mut self, connection: &mut Connection, packet_bytes_max: usize) -> Result<(), Failure> {
        let mut script = Script::new(packet_bytes_max);
        self.events_bytes_max = script.encoded_bytes_max();
        self.over_leftovers.set_packet_bytes_max(packet_bytes_max);
        self.encoder.set_piece_bytes_max(self.events_bytes_max);
        script.encoded("", BINLOG, &self.format_description);
        script.send(connection)?;
        if self.resets_gtid_next {
            // What is undetermined is an error once GTIDs are switched on.
            connection.execute_repeatable(AUTOMATIC_GTIDS).map_err(failed)?;
        }
        Ok(())
    }

    fn lacks(&mut self, connection: &mut Connection, packet_bytes_max: usize) -> Result<Vec<Lack>, Failure> {
        let mut lacks = Vec::new();
        let mut script = Script::new(packet_bytes_max);
        script.encoded("", BINLOG, &self.format_description);
        match script.send(connection) {
            Err(failure) if failure.code.is_some_and(is_privilege) => lacks.push(Lack::everywhere(self.privilege)),
            Err(failure) if failure.kind == FailureKind::ConnectionLost => return Err(failure),
            Err(_) | Ok(_) => {}
        }
        if self.resets_gtid_next && is_denied(connection, AUTOMATIC_GTIDS)? {
            lacks.push(Lack::everywhere(self.session_privilege));
        }
        Ok(lacks)
    }

    fn set_server_id(&mut self, server_id: u32) {
        self.encoder.set_server_id(server_id);
    }

    fn write(&mut self, batch: &Batch<'_>, script: &mut Script, connection: &mut Connection) -> Result<(), Failure> {
        if self.quirks.skips(batch) {
            return Ok(());
        }
        if self.quirks.is_incomplete(batch) {
            script.send(connection)?;
        }
        if let Some(completed) = self.quirks.complete(batch, connection)? {
            return self.encode(&completed.batch(batch), script, connection);
        }
        if !self.over_leftovers.may_have_some(batch) {
            return self.write_logged(batch, script, connection);
        }
        for (clearing, rows) in self.over_leftovers.steps(batch, script, connection)? {
            for statement in clearing {
                self.over_leftovers.append(statement, script, connection)?;
            }
            self.write_logged(&rows, script, connection)?;
        }
        Ok(())
    }

    fn is_one_statement(&self, batches: &[Batch<'_>], rows_bytes_max: usize) -> bool {
        self.encoder.is_one_statement(batches, rows_bytes_max)
            && !batches.iter().any(|batch| {
                self.needs_questions(batch)
                    || self.quirks.leaves_out(batch)
                    || self.leaves_key_out(batch)
                    || self.over_leftovers.may_have_some(batch)
            })
    }

    fn encode_statement(&mut self, batches: &[Batch<'_>]) -> Result<usize, Failure> {
        self.events.clear();
        self.encoder.encode_statement(batches, &mut self.events)?;
        Ok(self.events.len().div_ceil(3) * 4)
    }

    fn append_statement(&self, settings: &str, script: &mut Script) {
        script.encoded(settings, BINLOG, &self.events);
    }

    fn complete(&self, batch: &Batch<'_>, connection: &mut Connection) -> Result<Option<CompletedRow>, Failure> {
        self.quirks.complete(batch, connection)
    }

    /// A `BINLOG` statement does not look for a partition, any DML does.
    fn choose_history_partition(&self, batch: &Batch<'_>) -> Option<String> {
        let leaves_history = batch.kind != RowsKind::Write
            && batch.table.is_some_and(|table| table.barrier == Some(BarrierReason::HistoryPartitions));
        leaves_history.then(|| {
            let (schema, table) = (identifier(&batch.map.schema), identifier(&batch.map.table));
            let time = batch.timestamp;
            format!("SET STATEMENT timestamp={time} FOR DELETE FROM {schema}.{table} WHERE FALSE")
        })
    }

    fn to_stored(
        &mut self,
        server_id: u32,
        batches: &[Batch<'_>],
        _: &mut Script,
        _: &mut Connection,
    ) -> Result<String, Failure> {
        let mut events = Vec::new();
        self.encoder.set_server_id(server_id);
        if batches.iter().any(|batch| self.over_leftovers.may_have_some(batch)) {
            return self.store_over_leftovers(batches);
        }
        for batch in batches {
            self.encoder.encode(batch, &mut |piece| {
                events.extend_from_slice(piece);
                Ok(())
            })?;
        }
        let leaves_key_out = batches.iter().any(|batch| self.leaves_key_out(batch));
        let mark = if leaves_key_out { LEAVES_KEY_OUT } else { "" };
        Ok(format!("{mark}{}", STANDARD.encode_to_string(&events)))
    }

    fn write_stored(&self, stored: &str, script: &mut Script) -> Result<(), Failure> {
        if let Some(written) = write_stored_statements(stored, script) {
            return written;
        }
        let (stored, version) = match stored.strip_prefix(LEAVES_KEY_OUT) {
            Some(stored) => (stored, self.own_version.as_ref()),
            None => (stored, None),
        };
        if let Some(version) = version {
            script.statement(version);
        }
        script.statement(format!("{}{stored}{}", BINLOG.before, BINLOG.after));
        if version.is_some() {
            script.statement(hidden_keys::OF_NO_SERVER);
        }
        Ok(())
    }
}
