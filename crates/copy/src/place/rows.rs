//! Rows → `REPLACE` statements, sent while more rows come. A row takes the place of what has its key or a unique value of it: rows that are read at different
//! times may have the same one, and the log settles which of them has it.

use apply::mysql::server::errors::failed;
use apply::mysql::server::sql::identifier;
use engine::failure::{Failure, FailureKind};
use wire::{Connection, Row};

use crate::chunk::{TableDefinition, TableName, put_literal};

/// A statement is sent from so many bytes on.
const STATEMENT_BYTES: usize = 512 << 10;
/// Kept free below the server's limit for a packet.
const SPARE_BYTES: usize = 1024;
/// Warnings that mean that a value is not stored as it came.
const LOSSES: [u16; 7] = [1048, 1264, 1265, 1292, 1366, 1406, 3146];

/// Places rows of one table in a transaction that the caller has begun.
pub struct RowPlacer<'a> {
    connection: &'a mut Connection,
    table: &'a TableDefinition,
    head: Vec<u8>,
    statement: Vec<u8>,
    is_sent: bool,
    packet_bytes_max: usize,
    placed: PlacedRows,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct PlacedRows {
    pub rows: u64,
    pub bytes: u64,
}

impl<'a> RowPlacer<'a> {
    /// `name`: of the table on the target.
    pub fn new(
        connection: &'a mut Connection,
        table: &'a TableDefinition,
        name: &TableName,
        packet_bytes_max: usize,
    ) -> Self {
        let columns: Vec<String> = table.columns.iter().map(|column| identifier(&column.name)).collect();
        let head = format!("REPLACE INTO {} ({}) VALUES ", name.quoted(), columns.join(",")).into_bytes();
        Self {
            connection,
            table,
            statement: head.clone(),
            head,
            is_sent: false,
            packet_bytes_max: packet_bytes_max.saturating_sub(SPARE_BYTES),
            placed: PlacedRows::default(),
        }
    }

    /// `row`: as [`crate::chunk::ChunkQuery::sql`] selects it.
    pub fn place(&mut self, row: &Row) -> Result<(), Failure> {
        let before = self.statement.len();
        if before > self.head.len() {
            self.statement.push(b',');
        }
        self.statement.push(b'(');
        for (at, column) in self.table.columns.iter().enumerate() {
            if at > 0 {
                self.statement.push(b',');
            }
            put_literal(&column.kind, row.get(at), &mut self.statement);
        }
        self.statement.push(b')');
        self.placed.rows += 1;
        self.placed.bytes += (self.statement.len() - before) as u64;
        // A row that does not fit behind the others begins a statement of its own.
        if self.statement.len() > self.packet_bytes_max && before > self.head.len() {
            let row = self.statement.split_off(before + 1);
            self.statement.truncate(before);
            self.send()?;
            self.statement.extend_from_slice(&row);
        }
        if self.statement.len() > self.packet_bytes_max {
            return Err(Failure::new(
                FailureKind::Refused,
                format!(
                    "a row of {} takes {} bytes as a statement, and the target's max_allowed_packet is {} bytes",
                    self.table.name,
                    self.statement.len(),
                    self.packet_bytes_max
                ),
            )
            .remedy(
                "raise max_allowed_packet on the target to three times the largest row, and run the same command again",
            ));
        }
        if self.statement.len() >= STATEMENT_BYTES { self.send() } else { Ok(()) }
    }

    /// Waits until all is placed.
    pub fn finish(mut self) -> Result<PlacedRows, Failure> {
        if self.statement.len() > self.head.len() {
            self.send()?;
        }
        self.wait()?;
        Ok(self.placed)
    }

    /// One statement is under way while the next one is put together.
    fn send(&mut self) -> Result<(), Failure> {
        self.wait()?;
        self.connection.send_query(&self.statement).map_err(failed)?;
        self.is_sent = true;
        self.statement.clear();
        self.statement.extend_from_slice(&self.head);
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.is_sent) {
            return Ok(());
        }
        let outcome = self.connection.read_result().map_err(failed)?;
        if outcome.last().warnings > 0 { self.check_warnings() } else { Ok(()) }
    }

    fn check_warnings(&mut self) -> Result<(), Failure> {
        let has_members = self.table.columns.iter().any(|column| column.data_type == "enum");
        for row in self.connection.rows("SHOW WARNINGS").map_err(failed)? {
            let code: u16 = row.required(1).map_err(failed)?;
            // The value of what was no member of an ENUM is stored with this one.
            if !LOSSES.contains(&code) || code == 1265 && has_members {
                continue;
            }
            let text = row.get(2).map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
            let message = format!("the target does not store a row of {} as it is: {text}", self.table.name);
            return Err(Failure::new(FailureKind::Refused, message)
                .code(code)
                .remedy("compare the table's definitions on source and target"));
        }
        Ok(())
    }
}
