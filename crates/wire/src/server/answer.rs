//! What a server answers, as bytes: OK, error, end, and rows in the text protocol.

use crate::codec::capabilities as cap;
use crate::codec::cursor::{put_lenenc, put_lenenc_bytes};

/// Servers stop there; clients may have no more room.
const MESSAGE_BYTES_MAX: usize = 511;
const TYPE_LONGLONG: u8 = 8;
const TYPE_VAR_STRING: u8 = 253;
const COLLATION_BINARY: u16 = 63;
const FLAG_BINARY: u16 = 128;
const FLAG_NUMBER: u16 = 32768;

/// An error that a client gets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} ({state}): {message}")]
pub struct ServerError {
    /// The servers' number.
    pub code: u16,
    /// Five characters.
    pub state: &'static str,
    /// The text.
    pub message: String,
}

impl ServerError {
    /// An error.
    pub fn new(code: u16, state: &'static str, message: impl Into<String>) -> Self {
        ServerError { code, state, message: message.into() }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0xff];
        out.extend_from_slice(&self.code.to_le_bytes());
        out.push(b'#');
        out.extend_from_slice(self.state.as_bytes());
        let mut end = self.message.len().min(MESSAGE_BYTES_MAX);
        while !self.message.is_char_boundary(end) {
            end -= 1;
        }
        out.extend_from_slice(self.message.get(..end).unwrap_or_default().as_bytes());
        out
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// A whole number.
    Number,
}

/// A value; none for NULL.
pub type Cell = Option<String>;

/// A result with rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Names, and what the columns hold.
    pub columns: Vec<(String, ColumnKind)>,
    /// The rows, each with as many values as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

impl Rows {
    /// Without any row yet.
    pub fn new(columns: &[(&str, ColumnKind)]) -> Self {
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        Rows { columns, rows: Vec::new() }
    }

    /// All packets of the result of a statement that was prepared.
    pub(crate) fn encode_binary(&self, capabilities: u32) -> Vec<Vec<u8>> {
        let row = |row: &Vec<Cell>| {
            let mut nulls = vec![0; (row.len() + 2).div_ceil(8)];
            let mut values = Vec::new();
            for (at, (cell, (_, kind))) in row.iter().zip(&self.columns).enumerate() {
                match (cell, kind) {
                    (None, _) => {
                        if let Some(bits) = nulls.get_mut((at + 2) / 8) {
                            *bits |= 1 << ((at + 2) % 8);
                        }
                    }
                    (Some(text), ColumnKind::Text) => put_lenenc_bytes(&mut values, text.as_bytes()),
                    (Some(text), ColumnKind::Number) => {
                        let number = text.parse::<i64>().or_else(|_| text.parse::<u64>().map(u64::cast_signed));
                        values.extend_from_slice(&number.unwrap_or(0).to_le_bytes());
                    }
                }
            }
            [&[0u8][..], &nulls, &values].concat()
        };
        self.encode_with(capabilities, &row)
    }

    /// All packets of the result.
    pub(crate) fn encode(&self, capabilities: u32) -> Vec<Vec<u8>> {
        let row = |row: &Vec<Cell>| {
            let mut out = Vec::new();
            for cell in row {
                match cell {
                    None => out.push(0xfb),
                    Some(text) => put_lenenc_bytes(&mut out, text.as_bytes()),
                }
            }
            out
        };
        self.encode_with(capabilities, &row)
    }

    fn encode_with(&self, capabilities: u32, row: &dyn Fn(&Vec<Cell>) -> Vec<u8>) -> Vec<Vec<u8>> {
        let mut packets = Vec::with_capacity(self.columns.len() + self.rows.len() + 3);
        let mut count = Vec::new();
        put_lenenc(&mut count, self.columns.len() as u64);
        packets.push(count);
        packets.extend(self.columns.iter().map(|(name, kind)| column(name, *kind)));
        let no_eof = capabilities & cap::DEPRECATE_EOF != 0;
        if !no_eof {
            packets.push(eof());
        }
        packets.extend(self.rows.iter().map(row));
        packets.push(if no_eof { ok(0xfe) } else { eof() });
        packets
    }
}

fn column(name: &str, kind: ColumnKind) -> Vec<u8> {
    let (type_code, collation, length, flags) = match kind {
        ColumnKind::Text => (TYPE_VAR_STRING, cap::COLLATION_UTF8MB4.into(), 4096_u32, 0_u16),
        ColumnKind::Number => (TYPE_LONGLONG, COLLATION_BINARY, 21, FLAG_BINARY | FLAG_NUMBER),
    };
    let mut out = Vec::new();
    put_lenenc_bytes(&mut out, b"def");
    for text in ["", "", "", name, ""] {
        put_lenenc_bytes(&mut out, text.as_bytes());
    }
    out.push(0x0c);
    out.extend_from_slice(&collation.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.push(type_code);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[0, 0, 0]);
    out
}

/// What follows the request to prepare a statement with so many values: what a value stands for is said by who executes it.
pub(crate) fn prepared(number: u32, values: u16, capabilities: u32) -> Vec<Vec<u8>> {
    let mut first = vec![0];
    first.extend_from_slice(&number.to_le_bytes());
    // The columns are said with the rows.
    first.extend_from_slice(&[0, 0]);
    first.extend_from_slice(&values.to_le_bytes());
    first.extend_from_slice(&[0, 0, 0]);
    let mut packets = vec![first];
    packets.extend((0..values).map(|_| column("?", ColumnKind::Text)));
    if values > 0 && capabilities & cap::DEPRECATE_EOF == 0 {
        packets.push(eof());
    }
    packets
}

/// The end of a login, with a text for the client.
pub(crate) fn ok_with(text: &[u8]) -> Vec<u8> {
    let mut out = ok(0);
    put_lenenc_bytes(&mut out, text);
    out
}

/// `header` is 0, or 0xfe where it ends rows.
pub(crate) fn ok(header: u8) -> Vec<u8> {
    let mut out = vec![header, 0, 0];
    out.extend_from_slice(&cap::STATUS_AUTOCOMMIT.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out
}

/// As servers send it after a stream of events, whatever was agreed.
pub(crate) fn eof() -> Vec<u8> {
    let mut out = vec![0xfe, 0, 0];
    out.extend_from_slice(&cap::STATUS_AUTOCOMMIT.to_le_bytes());
    out
}
