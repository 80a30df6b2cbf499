//! Builders of whole events: header, body and, where wanted, CRC32.
//!
//! What they build is what the servers build, so that the stock `mysqlbinlog` and replicas read it. They take values the
//! program made; nothing here reads input.

mod format_description;
mod gtid;
mod query;
mod rows;
mod small;
mod table_map;

pub use format_description::{FormatSpec, format_description};
pub use gtid::{mariadb_gtid, mariadb_gtid_list, mysql_gtid, previous_gtids};
pub use query::{StatusVarsBuilder, query};
pub use rows::{RowsSpec, rows, rows_v};
pub use small::{heartbeat, heartbeat_v2, intvar, rotate, rows_query, stop, xa_prepare, xid};
pub use table_map::{ColumnDef, TableMapSpec, table_map};

use crate::event::Checksum;
use crate::header::{HEADER_LEN, Header};
use crate::kind::Kind;

/// What the header of an event says, and how it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Seconds since 1970.
    pub timestamp: u32,
    /// The writing server.
    pub server_id: u32,
    /// `Header::FLAG_*`.
    pub flags: u16,
    /// Offset of the event in its file, from which `log_pos` follows; `None` writes 0, as for artificial events.
    pub offset: Option<u64>,
    /// Whether to add a CRC32.
    pub checksum: Checksum,
}

impl Head {
    /// An event without a place in a file.
    pub fn new(timestamp: u32, server_id: u32, checksum: Checksum) -> Head {
        Head { timestamp, server_id, flags: 0, offset: None, checksum }
    }

    /// The same for an event at `offset` of its file, in bytes.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Head {
        self.offset = Some(offset);
        self
    }

    /// The same with these flags.
    #[must_use]
    pub fn with_flags(mut self, flags: u16) -> Head {
        self.flags = flags;
        self
    }
}

/// A whole event around `body`.
///
/// # Panics
/// When the event would be longer than 4 GiB, which no header can say.
pub fn event(kind: Kind, head: &Head, body: &[u8]) -> Vec<u8> {
    build(kind, head, body.len(), |out| out.extend_from_slice(body))
}

/// A whole event whose body `write` appends; `capacity` is a guess at its length.
pub(crate) fn build(kind: Kind, head: &Head, capacity: usize, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_LEN + capacity + head.checksum.len());
    let placeholder = Header {
        timestamp: head.timestamp,
        kind,
        server_id: head.server_id,
        event_len: 0,
        log_pos: 0,
        flags: head.flags,
    };
    placeholder.write_to(&mut out);
    write(&mut out);
    let len = u32::try_from(out.len() + head.checksum.len());
    #[expect(clippy::expect_used, reason = "documented: no header can say more")]
    let event_len = len.expect("an event is shorter than 4 GiB");
    // Past 4 GiB servers write the position modulo 2³².
    let log_pos = head.offset.map_or(0, |offset| offset.wrapping_add(event_len.into()) as u32);
    let mut header = Vec::with_capacity(HEADER_LEN);
    Header { event_len, log_pos, ..placeholder }.write_to(&mut header);
    for (to, from) in out.iter_mut().zip(header) {
        *to = from;
    }
    if head.checksum == Checksum::Crc32 {
        let crc = crc32fast::hash(&out);
        out.extend_from_slice(&crc.to_le_bytes());
    }
    out
}

/// Appends a length-encoded integer.
pub fn write_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    let (marker, len) = match value {
        0..=0xfa => (None, 1),
        0xfb..=0xffff => (Some(0xfc), 2),
        0x1_0000..=0xff_ffff => (Some(0xfd), 3),
        _ => (Some(0xfe), 8),
    };
    out.extend(marker);
    out.extend(bytes.into_iter().take(len));
}

/// Appends bytes behind their length-encoded length.
pub fn write_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_lenenc(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
