//! MariaDB's GTID list: the state of every domain at the start of a log; and its binlog checkpoint.

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// One entry of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MariaDbGtidEntry {
    /// Replication domain.
    pub domain_id: u32,
    /// Server that wrote the transaction.
    pub server_id: u32,
    /// Number in the domain.
    pub seq_no: u64,
}

/// The last GTIDs of each domain and server before this log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MariaDbGtidList {
    /// The upper four bits of the count field.
    pub flags: u8,
    /// In the server's order: the last entry of a domain is its current position.
    pub entries: Vec<MariaDbGtidEntry>,
}

impl MariaDbGtidList {
    /// Sent to a replica that asked to stop at a position, once it is reached.
    pub const FLAG_UNTIL_REACHED: u8 = 1;
    /// Sent to skip events that a filter removed.
    pub const FLAG_IGN_GTIDS: u8 = 2;

    /// Decodes a MARIADB_GTID_LIST event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<MariaDbGtidList, Corruption> {
        event.expect(Kind::MARIADB_GTID_LIST)?;
        let mut r = event.reader();
        let raw = r.u32("gtid count")?;
        let count = r.check_count(u64::from(raw & 0x0fff_ffff), "gtid count")?;
        let mut entries = Vec::new();
        for _ in 0..count {
            entries.push(MariaDbGtidEntry {
                domain_id: r.u32("domain_id")?,
                server_id: r.u32("server_id")?,
                seq_no: r.u64("seq_no")?,
            });
        }
        Ok(MariaDbGtidList { flags: (raw >> 28) as u8, entries })
    }
}

/// The oldest log that crash recovery of the source would need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinlogCheckpoint {
    /// Name of that log.
    pub file: String,
}

impl BinlogCheckpoint {
    /// Decodes a BINLOG_CHECKPOINT event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<BinlogCheckpoint, Corruption> {
        event.expect(Kind::BINLOG_CHECKPOINT)?;
        let mut r = event.reader();
        let len = r.u32("file name length")?;
        let name = r.bytes(len as usize, "file name")?;
        Ok(BinlogCheckpoint { file: r.utf8(name, "file name")? })
    }
}
