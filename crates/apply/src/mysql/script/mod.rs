//! The text of one target transaction, sent in packets of several statements.
//!
//! In one packet an error ends the rest of it: a COMMIT is never reached after a failed change. Between packets the answer is awaited for
//! the same reason. A script knows no statement's meaning.

mod answers;

use base64_simd::STANDARD;
use engine::failure::Failure;
use wire::{Connection, ResultSet};

use self::answers::await_answers;
use crate::mysql::server::errors::failed;

/// A packet is sent once its text has this many bytes.
const PACKET_BYTES: usize = 2 << 20;
/// Room in a packet for the other statements beside the encoded one.
const OTHER_STATEMENTS_BYTES: usize = 64 << 10;
const TEXT_BYTES_MIN: usize = 1024;
/// Memory that is kept for the next packet.
const KEPT_BYTES: usize = 256 << 10;
/// An encoded statement of more bytes than this is not held a second time as text: it is sent while it is encoded, in pieces.
const LARGE_BYTES: usize = 512 << 10;
/// Such a piece before encoding; a multiple of 3, so that the text goes on without padding.
const PIECE_BYTES: usize = 48 << 10;

/// A statement whose text is base64 between two constant parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base64Frame {
    pub before: &'static str,
    pub after: &'static str,
}

#[derive(Debug)]
pub struct Script {
    sql: Vec<u8>,
    /// How many there are in `sql`.
    statements: usize,
    /// The encoded statement that is still growing, and its bytes before encoding.
    growing: Option<Base64Frame>,
    bytes: Vec<u8>,
    /// The most that `bytes` may hold.
    encoded_bytes_max: usize,
}

impl Script {
    /// `packet_bytes_max`: the target's `max_allowed_packet`.
    pub fn new(packet_bytes_max: usize) -> Self {
        // Base64 turns 3 bytes into 4.
        let text_bytes_max = packet_bytes_max.saturating_sub(OTHER_STATEMENTS_BYTES).max(TEXT_BYTES_MIN);
        Self {
            sql: Vec::new(),
            statements: 0,
            growing: None,
            bytes: Vec::new(),
            encoded_bytes_max: text_bytes_max / 4 * 3,
        }
    }

    /// The most bytes, before encoding, of one encoded statement.
    pub fn encoded_bytes_max(&self) -> usize {
        self.encoded_bytes_max
    }

    /// Nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.sql.is_empty() && self.bytes.is_empty()
    }

    pub fn clear(&mut self) {
        self.sql.clear();
        self.statements = 0;
        self.growing = None;
        self.bytes.clear();
    }

    /// Appends a statement, without its semicolon.
    pub fn statement(&mut self, sql: impl AsRef<[u8]>) {
        self.close_growing();
        self.sql.extend_from_slice(sql.as_ref());
        self.sql.push(b';');
        self.statements += 1;
    }

    /// The same, without a copy of a large one where nothing waits before it.
    pub fn owned_statement(&mut self, sql: Vec<u8>) {
        self.close_growing();
        if self.sql.is_empty() {
            self.sql = sql;
        } else {
            self.sql.extend_from_slice(&sql);
        }
        self.sql.push(b';');
        self.statements += 1;
    }

    /// Appends bytes to the encoded statement that is growing, or begins one. `bytes`: at most [`Script::encoded_bytes_max`].
    /// Sends what is there if they no longer fit.
    pub fn grow(&mut self, statement: Base64Frame, bytes: &[u8], connection: &mut Connection) -> Result<(), Failure> {
        let most = self.encoded_bytes_max.min(PACKET_BYTES / 4 * 3);
        if bytes.len() > LARGE_BYTES {
            return self.send_large(statement, bytes, connection);
        }
        if self.growing.is_some_and(|growing| growing != statement) {
            self.close_growing();
        } else if !self.bytes.is_empty() && self.bytes.len() + bytes.len() > most {
            self.send(connection)?;
        }
        self.growing = Some(statement);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Sends what has gathered and a large statement, and reads all of their results.
    fn send_large(&mut self, statement: Base64Frame, bytes: &[u8], connection: &mut Connection) -> Result<(), Failure> {
        if self.packet_bytes() > OTHER_STATEMENTS_BYTES / 2 {
            self.send(connection)?;
        }
        self.close_growing();
        let before = [self.sql.as_slice(), statement.before.as_bytes()].concat();
        let text_bytes = bytes.len().div_ceil(3) * 4;
        let sent = connection.send_query_written(before.len() + text_bytes + statement.after.len(), |out| {
            out.write_all(&before)?;
            let mut text = Vec::with_capacity(PIECE_BYTES / 3 * 4);
            for piece in bytes.chunks(PIECE_BYTES) {
                text.clear();
                STANDARD.encode_append(piece, &mut text);
                out.write_all(&text)?;
            }
            out.write_all(statement.after.as_bytes())
        });
        self.sql.clear();
        self.statements += 1;
        if sent.is_err() {
            self.statements = 0;
        }
        sent.and_then(|()| self.read(connection)).map(drop).map_err(failed)
    }

    fn close_growing(&mut self) {
        let Some(statement) = self.growing.take() else { return };
        let mut bytes = std::mem::take(&mut self.bytes);
        self.encoded("", statement, &bytes);
        bytes.clear();
        bytes.shrink_to(KEPT_BYTES);
        self.bytes = bytes;
    }

    /// Appends an encoded statement that is complete, small enough for one packet. `settings`: what its text begins with.
    pub fn encoded(&mut self, settings: &str, statement: Base64Frame, bytes: &[u8]) {
        self.sql.extend_from_slice(settings.as_bytes());
        self.sql.extend_from_slice(statement.before.as_bytes());
        // Room ahead, not exactly what one statement needs.
        self.sql.reserve(bytes.len().div_ceil(3) * 4 + 2);
        STANDARD.encode_append(bytes, &mut self.sql);
        self.sql.extend_from_slice(statement.after.as_bytes());
        self.sql.push(b';');
        self.statements += 1;
    }

    /// Statements, and bytes of their text, that wait to be sent.
    pub fn waiting(&self) -> (usize, usize) {
        (self.statements, self.sql.len())
    }

    /// What waits, as it will be sent.
    pub fn packet_bytes(&self) -> usize {
        self.sql.len() + self.bytes.len().div_ceil(3) * 4
    }

    /// Sends what has gathered and reads all of its results.
    pub fn send(&mut self, connection: &mut Connection) -> Result<Vec<ResultSet>, Failure> {
        self.close_growing();
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
        // What was much once is not kept in each connection.
        self.sql.shrink_to(KEPT_BYTES);
        if sent.is_err() {
            self.statements = 0;
        }
        sent
    }

    /// Sends what has gathered, if anything, without reading its results; returns how many there will be.
    pub fn send_ahead(&mut self, connection: &mut Connection) -> Result<usize, wire::Error> {
        self.close_growing();
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
