//! The text of one target transaction, sent in packets of several statements.
//!
//! In one packet an error ends the rest of it: a COMMIT is never reached after a failed change. Between
//! packets the answer is awaited for the same reason.

mod answers;

use base64_simd::STANDARD;
use engine::failure::{Failure, FailureKind};
use wire::{Connection, ResultSet};

use crate::mysql::script::answers::await_answers;
use crate::mysql::server::errors::failed;

/// A packet is sent once its text has this many bytes.
const PACKET_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub struct Script {
    sql: Vec<u8>,
    /// How many there are in `sql`.
    statements: usize,
    /// Events of the `BINLOG` statement that is open.
    events: Vec<u8>,
    /// The most that `events` may hold.
    events_bytes_max: usize,
}

impl Script {
    /// `packet_bytes_max`: the target's `max_allowed_packet`.
    pub fn new(packet_bytes_max: usize) -> Self {
        // Base64 turns 3 bytes into 4; leave room for the other statements in the packet.
        let text_bytes_max = packet_bytes_max.saturating_sub(64 << 10).max(1024);
        Self { sql: Vec::new(), statements: 0, events: Vec::new(), events_bytes_max: text_bytes_max / 4 * 3 }
    }

    /// The most bytes of events in one `BINLOG` statement.
    pub fn events_bytes_max(&self) -> usize {
        self.events_bytes_max
    }

    pub fn clear(&mut self) {
        self.sql.clear();
        self.statements = 0;
        self.events.clear();
    }

    /// Appends a statement, without its semicolon.
    pub fn statement(&mut self, sql: impl AsRef<[u8]>) {
        self.close_events();
        self.sql.extend_from_slice(sql.as_ref());
        self.sql.push(b';');
        self.statements += 1;
    }

    /// Appends whole events, which may share a `BINLOG` statement with those before.
    pub fn events(&mut self, events: &[u8], connection: &mut Connection) -> Result<(), Failure> {
        if events.len() > self.events_bytes_max {
            return Err(Failure::new(
                FailureKind::Refused,
                format!(
                    "an event of {} bytes does not fit into the target's max_allowed_packet (as base64, {} bytes at most)",
                    events.len(),
                    self.events_bytes_max
                ),
            )
            .remedy("raise max_allowed_packet on the target, for the largest row as base64 (4/3 of its size)"));
        }
        let most = self.events_bytes_max.min(PACKET_BYTES / 4 * 3);
        if !self.events.is_empty() && self.events.len() + events.len() > most {
            self.close_events();
            self.send(connection)?;
        }
        self.events.extend_from_slice(events);
        Ok(())
    }

    fn close_events(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        if !events.is_empty() {
            self.one_binlog("", &events);
            events.clear();
        }
        self.events = events;
    }

    /// Appends a `BINLOG` statement with these events, few enough for one packet. `settings`: what it begins with.
    pub fn one_binlog(&mut self, settings: &str, events: &[u8]) {
        self.sql.extend_from_slice(settings.as_bytes());
        self.sql.extend_from_slice(b"BINLOG '");
        // Room ahead, not exactly what one statement needs.
        self.sql.reserve(events.len().div_ceil(3) * 4 + 2);
        STANDARD.encode_append(events, &mut self.sql);
        self.sql.extend_from_slice(b"';");
        self.statements += 1;
    }

    /// Statements, and bytes of their text, that wait to be sent.
    pub fn waiting(&self) -> (usize, usize) {
        (self.statements, self.sql.len())
    }

    /// Sends what has gathered and reads all of its results.
    pub fn send(&mut self, connection: &mut Connection) -> Result<Vec<ResultSet>, Failure> {
        self.close_events();
        if self.sql.is_empty() {
            return Ok(Vec::new());
        }
        self.send_off(connection).and_then(|()| self.read(connection)).map_err(failed)
    }

    /// Sends statements that are not expected to fail, one at least; [`Script::answers`] comes next.
    pub fn send_off(&mut self, connection: &mut Connection) -> Result<(), wire::Error> {
        // The last semicolon would begin one more, empty, statement.
        let sql = self.sql.strip_suffix(b";").unwrap_or(&self.sql);
        let sent = connection.send_query(sql);
        self.sql.clear();
        if sent.is_err() {
            self.statements = 0;
        }
        sent
    }

    /// Sends what has gathered, if anything, without reading its results; returns how many there will be.
    pub fn send_ahead(&mut self, connection: &mut Connection) -> Result<usize, wire::Error> {
        self.close_events();
        if self.sql.is_empty() {
            return Ok(0);
        }
        self.send_off(connection)?;
        Ok(std::mem::take(&mut self.statements))
    }

    /// The results of what was sent, once all are there; an error knows which of the statements it is of.
    pub fn answers(&mut self, connection: &mut Connection) -> Result<Vec<ResultSet>, wire::Error> {
        await_answers(connection, self.statements);
        self.read(connection)
    }

    fn read(&mut self, connection: &mut Connection) -> Result<Vec<ResultSet>, wire::Error> {
        connection.read_statements(std::mem::take(&mut self.statements))
    }
}
