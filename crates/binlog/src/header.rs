//! The 19 bytes that every event starts with.

use crate::kind::Kind;

/// Length of the common header of binary log format 4, in bytes.
pub const HEADER_LEN: usize = 19;

/// The common header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Seconds since 1970 when the statement started on the source; 0 for artificial events.
    pub timestamp: u32,
    /// Type code.
    pub kind: Kind,
    /// The server that wrote the event first.
    pub server_id: u32,
    /// Whole length in bytes: header, body and checksum.
    pub event_len: u32,
    /// Offset of the next event in the source's log, modulo 2³²; 0 for artificial events, and in MariaDB 11.4+ for
    /// the events inside a transaction.
    pub log_pos: u32,
    /// `FLAG_*`.
    pub flags: u16,
}

impl Header {
    /// The log is being written, or its writer crashed (format descriptions only; not covered by the checksum).
    pub const FLAG_BINLOG_IN_USE: u16 = 0x1;
    /// The statement depends on the connection: temporary tables.
    pub const FLAG_THREAD_SPECIFIC: u16 = 0x4;
    /// No `USE` is needed before the statement.
    pub const FLAG_SUPPRESS_USE: u16 = 0x8;
    /// Made up by the sending server, not in its log.
    pub const FLAG_ARTIFICIAL: u16 = 0x20;
    /// Written by a replica's receiver.
    pub const FLAG_RELAY_LOG: u16 = 0x40;
    /// A replica that does not know the type may skip the event.
    pub const FLAG_IGNORABLE: u16 = 0x80;
    /// MariaDB: a replica may skip the event (`skip_replication`).
    pub const FLAG_SKIP_REPLICATION: u16 = 0x8000;

    /// Reads the first 19 bytes; `None` when there are fewer.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let [t0, t1, t2, t3, kind, s0, s1, s2, s3, l0, l1, l2, l3, p0, p1, p2, p3, f0, f1] =
            *bytes.first_chunk::<HEADER_LEN>()?;
        Some(Header {
            timestamp: u32::from_le_bytes([t0, t1, t2, t3]),
            kind: Kind(kind),
            server_id: u32::from_le_bytes([s0, s1, s2, s3]),
            event_len: u32::from_le_bytes([l0, l1, l2, l3]),
            log_pos: u32::from_le_bytes([p0, p1, p2, p3]),
            flags: u16::from_le_bytes([f0, f1]),
        })
    }

    /// Appends the 19 bytes.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_le_bytes());
        out.push(self.kind.0);
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(&self.event_len.to_le_bytes());
        out.extend_from_slice(&self.log_pos.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
    }
}
