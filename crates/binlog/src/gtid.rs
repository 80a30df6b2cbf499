//! MySQL's GTID events: GTID, ANONYMOUS_GTID and GTID_TAGGED (8.3+).
//!
//! The first two have fixed offsets up to the sequence number and optional fields after it, whose presence is a high
//! bit of the field before. The tagged one is a message of MySQL's serialization library: version, size, last
//! non-ignorable field, then (field id, value) pairs with variable-length integers.

use std::ops::Range;

use crate::corruption::{Corruption, CorruptionKind};
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;
use crate::reader::Reader;
use crate::varlen;

/// Offset of `last_committed` in an untagged event, from the start of its body, in bytes.
pub const LAST_COMMITTED_OFFSET: usize = 26;
/// Length of the body of an untagged event of MySQL 5.6, which has no clock, in bytes.
pub(crate) const BODY_5_6: usize = 1 + 16 + 8;
/// Before the clock stands its type.
pub(crate) const CLOCK_TYPE: u8 = 2;
/// Offset of `sequence_number` likewise.
pub const SEQUENCE_NUMBER_OFFSET: usize = 34;

/// Identity, logical clock and times of one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MySqlGtid {
    /// The source's UUID; zeros when anonymous.
    pub uuid: [u8; 16],
    /// Empty without a tag.
    pub tag: String,
    /// Transaction number, from 1; 0 when anonymous.
    pub gno: u64,
    /// [`MySqlGtid::FLAG_MAY_HAVE_SBR`].
    pub flags: u8,
    /// Sequence number that must be committed before this transaction starts; 0 when not known.
    pub last_committed: i64,
    /// Number of this transaction in its file, from 1; 0 when not known.
    pub sequence_number: i64,
    /// Microseconds since 1970 of the commit on the server that wrote the log.
    pub immediate_commit_timestamp_us: Option<u64>,
    /// Likewise on the server where the transaction began.
    pub original_commit_timestamp_us: Option<u64>,
    /// Bytes of the whole transaction, this event included.
    pub transaction_length: Option<u64>,
    /// Version of the server that wrote the log, as 80403.
    pub immediate_server_version: Option<u32>,
    /// Version of the server where the transaction began.
    pub original_server_version: Option<u32>,
    /// ANONYMOUS_GTID.
    pub anonymous: bool,
    /// Binlog group commit ticket (group replication).
    pub commit_group_ticket: Option<u64>,
}

impl MySqlGtid {
    /// The transaction may hold statements, not rows only.
    pub const FLAG_MAY_HAVE_SBR: u8 = 1;

    /// Decodes GTID, ANONYMOUS_GTID and GTID_TAGGED.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<MySqlGtid, Corruption> {
        match event.kind() {
            Kind::GTID => untagged(event, false),
            Kind::ANONYMOUS_GTID => untagged(event, true),
            Kind::GTID_TAGGED => tagged(event),
            _ => Err(event.wrong_kind("GTID")),
        }
    }
}

fn untagged(event: &Event, anonymous: bool) -> Result<MySqlGtid, Corruption> {
    let mut r = event.reader();
    let mut gtid = MySqlGtid {
        anonymous,
        flags: r.u8("gtid flags")?,
        uuid: r.array("uuid")?,
        gno: r.u64("gno")?,
        ..MySqlGtid::default()
    };
    // MySQL 5.6 ends here; 5.7.1 to 5.7.4 had another clock.
    if r.is_empty() || r.u8("logical timestamp type")? != CLOCK_TYPE {
        return Ok(gtid);
    }
    gtid.last_committed = r.u64("last_committed")? as i64;
    gtid.sequence_number = r.u64("sequence_number")? as i64;
    if r.remaining() >= 7 {
        const ORIGINAL_FOLLOWS: u64 = 1 << 55;
        let raw = r.u56("immediate_commit_timestamp")?;
        let immediate = raw & !ORIGINAL_FOLLOWS;
        let original = if raw & ORIGINAL_FOLLOWS != 0 { r.u56("original_commit_timestamp")? } else { immediate };
        gtid.immediate_commit_timestamp_us = Some(immediate);
        gtid.original_commit_timestamp_us = Some(original);
    }
    if !r.is_empty() {
        gtid.transaction_length = Some(r.lenenc("transaction_length")?);
    }
    if r.remaining() >= 4 {
        const ORIGINAL_FOLLOWS: u32 = 1 << 31;
        let raw = r.u32("immediate_server_version")?;
        let immediate = raw & !ORIGINAL_FOLLOWS;
        let original = if raw & ORIGINAL_FOLLOWS != 0 { r.u32("original_server_version")? } else { immediate };
        gtid.immediate_server_version = Some(immediate);
        gtid.original_server_version = Some(original);
    }
    if r.remaining() >= 8 {
        gtid.commit_group_ticket = Some(r.u64("commit_group_ticket")?);
    }
    Ok(gtid)
}

/// Where `last_committed` stands in the body of a GTID_TAGGED event. `None`: it has none.
pub(crate) fn tagged_last_committed(body: &[u8]) -> Option<Range<usize>> {
    let mut r = Reader::new(body, 0);
    for field in ["serialization version", "message size", "last non-ignorable field"] {
        varlen::read_u64(&mut r, field).ok()?;
    }
    loop {
        match varlen::read_u64(&mut r, "field id").ok()? {
            field::FLAGS | field::GNO => drop(varlen::read_u64(&mut r, "number").ok()?),
            field::UUID => {
                for _ in 0..16 {
                    byte(&mut r, "uuid").ok()?;
                }
            }
            field::TAG => {
                let length = varlen::read_u64(&mut r, "tag length").ok()?;
                r.bytes_u64(length, "tag").ok()?;
            }
            field::LAST_COMMITTED => {
                let from = r.position();
                varlen::read_i64(&mut r, "last_committed").ok()?;
                return Some(from..r.position());
            }
            _ => return None,
        }
    }
}

/// Field ids of the message, in the order in which the server defines them.
pub(crate) mod field {
    pub const FLAGS: u64 = 0;
    pub const UUID: u64 = 1;
    pub const GNO: u64 = 2;
    pub const TAG: u64 = 3;
    pub const LAST_COMMITTED: u64 = 4;
    pub const SEQUENCE_NUMBER: u64 = 5;
    pub const IMMEDIATE_COMMIT_TIMESTAMP: u64 = 6;
    pub const ORIGINAL_COMMIT_TIMESTAMP: u64 = 7;
    pub const TRANSACTION_LENGTH: u64 = 8;
    pub const IMMEDIATE_SERVER_VERSION: u64 = 9;
    pub const ORIGINAL_SERVER_VERSION: u64 = 10;
    pub const COMMIT_GROUP_TICKET: u64 = 11;
}

/// Longest tag, in bytes.
const TAG_LEN_MAX: u64 = 32;

fn tagged(event: &Event) -> Result<MySqlGtid, Corruption> {
    let mut r = event.reader();
    let version = varlen::read_u64(&mut r, "serialization version")?;
    // The library's only version so far is 1; the number on the wire is its encoding.
    if version != 1 {
        return Err(r.invalid("serialization version", version));
    }
    let size = varlen::read_u64(&mut r, "message size")?;
    if size != event.body().len() as u64 {
        return Err(r.invalid("message size", size));
    }
    let last_non_ignorable = varlen::read_u64(&mut r, "last non-ignorable field")?;
    let mut gtid = MySqlGtid::default();
    let mut next_id = 0;
    while !r.is_empty() {
        let id = varlen::read_u64(&mut r, "field id")?;
        if id < next_id {
            return Err(r.invalid("field id", id));
        }
        next_id = id.saturating_add(1);
        match id {
            field::FLAGS => gtid.flags = byte(&mut r, "gtid flags")?,
            field::UUID => {
                for to in &mut gtid.uuid {
                    *to = byte(&mut r, "uuid")?;
                }
            }
            field::GNO => gtid.gno = varlen::read_i64(&mut r, "gno")? as u64,
            field::TAG => {
                let len = varlen::read_u64(&mut r, "tag length")?;
                if len > TAG_LEN_MAX {
                    return Err(r.invalid("tag length", len));
                }
                let bytes = r.bytes_u64(len, "tag")?;
                gtid.tag = r.utf8(bytes, "tag")?;
            }
            field::LAST_COMMITTED => gtid.last_committed = varlen::read_i64(&mut r, "last_committed")?,
            field::SEQUENCE_NUMBER => gtid.sequence_number = varlen::read_i64(&mut r, "sequence_number")?,
            field::IMMEDIATE_COMMIT_TIMESTAMP => {
                gtid.immediate_commit_timestamp_us = Some(varlen::read_u64(&mut r, "immediate_commit_timestamp")?);
            }
            field::ORIGINAL_COMMIT_TIMESTAMP => {
                gtid.original_commit_timestamp_us = Some(varlen::read_u64(&mut r, "original_commit_timestamp")?);
            }
            field::TRANSACTION_LENGTH => {
                gtid.transaction_length = Some(varlen::read_u64(&mut r, "transaction_length")?);
            }
            field::IMMEDIATE_SERVER_VERSION => {
                gtid.immediate_server_version = Some(version_field(&mut r, "immediate_server_version")?);
            }
            field::ORIGINAL_SERVER_VERSION => {
                gtid.original_server_version = Some(version_field(&mut r, "original_server_version")?);
            }
            field::COMMIT_GROUP_TICKET => {
                gtid.commit_group_ticket = Some(varlen::read_u64(&mut r, "commit_group_ticket")?);
            }
            // A field of a later server that may be skipped: its length is not known, but the fields are in order,
            // so nothing known follows it.
            _ if id > last_non_ignorable => break,
            _ => return Err(r.invalid("field id", id)),
        }
    }
    if next_id <= field::GNO {
        return Err(r.err(CorruptionKind::Truncated { field: "gno", want: 1, have: 0 }));
    }
    gtid.original_commit_timestamp_us = gtid.original_commit_timestamp_us.or(gtid.immediate_commit_timestamp_us);
    gtid.original_server_version = gtid.original_server_version.or(gtid.immediate_server_version);
    Ok(gtid)
}

fn byte(r: &mut Reader<'_>, field: &'static str) -> Result<u8, Corruption> {
    let value = varlen::read_u64(r, field)?;
    u8::try_from(value).map_err(|_| r.invalid(field, value))
}

fn version_field(r: &mut Reader<'_>, field: &'static str) -> Result<u32, Corruption> {
    let value = varlen::read_u64(r, field)?;
    u32::try_from(value).map_err(|_| r.invalid(field, value))
}
