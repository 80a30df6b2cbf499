//! MySQL's previous GTIDs: every GTID in the logs before this one.
//!
//! Two layouts: before tags, a u64 count of UUIDs; with tags (8.3+), the top byte of that u64 is 1 and the count is in
//! bits 8 to 55. Each entry: UUID, (with tags: length as a variable-length integer, tag), u64 count of intervals, and
//! for each its start and the number after its end.

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;
use crate::varlen;

/// One UUID and tag with its transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtidSetEntry {
    /// The source's UUID.
    pub uuid: [u8; 16],
    /// Empty without a tag.
    pub tag: String,
    /// Half-open: first number, and the number after the last.
    pub intervals: Vec<(u64, u64)>,
}

/// A GTID set as the server wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousGtids {
    /// Ordered by UUID and tag, as the server writes them.
    pub entries: Vec<GtidSetEntry>,
}

impl PreviousGtids {
    /// Decodes a PREVIOUS_GTIDS event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<PreviousGtids, Corruption> {
        event.expect(Kind::PREVIOUS_GTIDS)?;
        Self::decode_set(event.body(), crate::header::HEADER_LEN as u64)
    }

    /// Decodes the set alone, as COM_BINLOG_DUMP_GTID carries it too; `base` is added to offsets in errors.
    ///
    /// # Errors
    /// [`Corruption`] with an offset from `base`.
    pub fn decode_set(bytes: &[u8], base: u64) -> Result<PreviousGtids, Corruption> {
        let mut r = crate::reader::Reader::new(bytes, base);
        let head = r.u64("uuid count")?;
        let format = head >> 56;
        let count = match format {
            0 => head,
            1 => (head >> 8) & 0xffff_ffff_ffff,
            other => return Err(r.invalid("gtid set format", other)),
        };
        let count = r.check_count(count, "uuid count")?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let uuid = r.array("uuid")?;
            let mut tag = String::new();
            if format == 1 {
                let len = varlen::read_u64(&mut r, "tag length")?;
                let raw = r.bytes_u64(len, "tag")?;
                tag = r.utf8(raw, "tag")?;
            }
            let intervals = r.u64("interval count")?;
            let mut entry = GtidSetEntry { uuid, tag, intervals: Vec::new() };
            for _ in 0..r.check_count(intervals, "interval count")? {
                let start = r.u64("interval start")?;
                let end = r.u64("interval end")?;
                if start == 0 || end <= start {
                    return Err(r.invalid("interval end", end));
                }
                entry.intervals.push((start, end));
            }
            entries.push(entry);
        }
        Ok(PreviousGtids { entries })
    }

    /// Appends the set in the servers' format: with tags only when an entry has one.
    pub fn encode_set(&self, out: &mut Vec<u8>) {
        let tagged = self.entries.iter().any(|entry| !entry.tag.is_empty());
        let count = self.entries.len() as u64;
        let head = if tagged { 1 << 56 | count << 8 | 1 } else { count };
        out.extend_from_slice(&head.to_le_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&entry.uuid);
            if tagged {
                varlen::write_u64(out, entry.tag.len() as u64);
                out.extend_from_slice(entry.tag.as_bytes());
            }
            out.extend_from_slice(&(entry.intervals.len() as u64).to_le_bytes());
            for (start, end) in &entry.intervals {
                out.extend_from_slice(&start.to_le_bytes());
                out.extend_from_slice(&end.to_le_bytes());
            }
        }
    }
}
