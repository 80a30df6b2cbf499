//! GTID events and GTID sets of both flavours.

use crate::gtid::{MySqlGtid, field};
use crate::gtid_list::MariaDbGtidList;
use crate::kind::Kind;
use crate::mariadb_gtid::MariaDbGtid;
use crate::previous_gtids::PreviousGtids;
use crate::varlen;

use super::{Head, build, write_lenenc};

/// A GTID, ANONYMOUS_GTID or (with a tag) GTID_TAGGED event, in the layout of MySQL 8.0 and later. Fields that are `None`
/// and those after them are left out.
pub fn mysql_gtid(head: &Head, gtid: &MySqlGtid) -> Vec<u8> {
    if !gtid.tag.is_empty() {
        return build(Kind::GTID_TAGGED, head, 128, |out| tagged(out, gtid));
    }
    let kind = if gtid.anonymous { Kind::ANONYMOUS_GTID } else { Kind::GTID };
    build(kind, head, 80, |out| {
        out.push(gtid.flags);
        out.extend_from_slice(&gtid.uuid);
        out.extend_from_slice(&gtid.gno.to_le_bytes());
        out.push(2);
        out.extend_from_slice(&gtid.last_committed.to_le_bytes());
        out.extend_from_slice(&gtid.sequence_number.to_le_bytes());
        let Some(immediate) = gtid.immediate_commit_timestamp_us else {
            return;
        };
        let original = gtid.original_commit_timestamp_us.unwrap_or(immediate);
        write_pair(out, immediate, (original != immediate).then_some(original), 7);
        let Some(length) = gtid.transaction_length else {
            return;
        };
        write_lenenc(out, length);
        let Some(immediate) = gtid.immediate_server_version else {
            return;
        };
        let original = gtid.original_server_version.unwrap_or(immediate);
        write_pair(out, immediate.into(), (original != immediate).then_some(original.into()), 4);
        let Some(ticket) = gtid.commit_group_ticket else {
            return;
        };
        out.extend_from_slice(&ticket.to_le_bytes());
    })
}

/// `first` in `len` bytes, its highest bit telling whether `second` follows.
fn write_pair(out: &mut Vec<u8>, first: u64, second: Option<u64>, len: usize) {
    let follows = if second.is_some() { 1 << (len * 8 - 1) } else { 0 };
    out.extend((first | follows).to_le_bytes().into_iter().take(len));
    out.extend(second.into_iter().flat_map(|second| second.to_le_bytes().into_iter().take(len)));
}

fn tagged(out: &mut Vec<u8>, gtid: &MySqlGtid) {
    let mut fields = Vec::with_capacity(112);
    let f = &mut fields;
    let unsigned = |f: &mut Vec<u8>, id: u64, value: Option<u64>| {
        if let Some(value) = value {
            varlen::write_u64(f, id);
            varlen::write_u64(f, value);
        }
    };
    unsigned(f, field::FLAGS, Some(gtid.flags.into()));
    varlen::write_u64(f, field::UUID);
    for byte in gtid.uuid {
        varlen::write_u64(f, byte.into());
    }
    varlen::write_u64(f, field::GNO);
    varlen::write_i64(f, gtid.gno as i64);
    varlen::write_u64(f, field::TAG);
    varlen::write_u64(f, gtid.tag.len() as u64);
    f.extend_from_slice(gtid.tag.as_bytes());
    varlen::write_u64(f, field::LAST_COMMITTED);
    varlen::write_i64(f, gtid.last_committed);
    varlen::write_u64(f, field::SEQUENCE_NUMBER);
    varlen::write_i64(f, gtid.sequence_number);
    let immediate = gtid.immediate_commit_timestamp_us;
    unsigned(f, field::IMMEDIATE_COMMIT_TIMESTAMP, immediate);
    let original = gtid.original_commit_timestamp_us.filter(|original| Some(*original) != immediate);
    unsigned(f, field::ORIGINAL_COMMIT_TIMESTAMP, original);
    unsigned(f, field::TRANSACTION_LENGTH, gtid.transaction_length);
    let immediate = gtid.immediate_server_version;
    unsigned(f, field::IMMEDIATE_SERVER_VERSION, immediate.map(u64::from));
    let original = gtid.original_server_version.filter(|original| Some(*original) != immediate);
    unsigned(f, field::ORIGINAL_SERVER_VERSION, original.map(u64::from));
    unsigned(f, field::COMMIT_GROUP_TICKET, gtid.commit_group_ticket);

    let head_len = |size: u64| {
        let mut head = Vec::with_capacity(16);
        varlen::write_u64(&mut head, 1); // version of the serialization format
        varlen::write_u64(&mut head, size);
        varlen::write_u64(&mut head, 0); // last non-ignorable field, as the server writes it
        head
    };
    // The size counts itself: one more byte at most.
    let mut head = head_len(0);
    while head.len() != head_len((head.len() + fields.len()) as u64).len() {
        head = head_len((head.len() + fields.len() + 1) as u64);
    }
    out.extend_from_slice(&head_len((head.len() + fields.len()) as u64));
    out.extend_from_slice(&fields);
}

/// A MARIADB_GTID event. The server id is the header's.
pub fn mariadb_gtid(head: &Head, gtid: &MariaDbGtid) -> Vec<u8> {
    const LEN_MIN: usize = 19;
    build(Kind::MARIADB_GTID, head, 40, |out| {
        let start = out.len();
        let xa = MariaDbGtid::FL_PREPARED_XA | MariaDbGtid::FL_COMPLETED_XA;
        let mut flags = gtid.flags & !(MariaDbGtid::FL_GROUP_COMMIT_ID | xa);
        if gtid.commit_id.is_some() {
            flags |= MariaDbGtid::FL_GROUP_COMMIT_ID;
        }
        if gtid.xid.is_some() {
            flags |= gtid.flags & xa;
        }
        out.extend_from_slice(&gtid.seq_no.to_le_bytes());
        out.extend_from_slice(&gtid.domain_id.to_le_bytes());
        out.push(flags);
        out.extend(gtid.commit_id.into_iter().flat_map(u64::to_le_bytes));
        if let Some(xid) = gtid.xid.as_ref().filter(|_| flags & xa != 0) {
            out.extend_from_slice(&xid.format_id.to_le_bytes());
            out.push(xid.gtrid.len() as u8);
            out.push(xid.bqual.len() as u8);
            out.extend_from_slice(&xid.gtrid);
            out.extend_from_slice(&xid.bqual);
        }
        if gtid.flags_extra != 0 {
            out.push(gtid.flags_extra);
            if gtid.flags_extra & MariaDbGtid::FL_EXTRA_MULTI_ENGINE != 0 {
                out.push(gtid.extra_engines.unwrap_or(0));
            }
            if gtid.flags_extra & (MariaDbGtid::FL_EXTRA_COMMIT_ALTER | MariaDbGtid::FL_EXTRA_ROLLBACK_ALTER) != 0 {
                out.extend_from_slice(&gtid.start_alter_seq_no.unwrap_or(0).to_le_bytes());
            }
            if gtid.flags_extra & MariaDbGtid::FL_EXTRA_THREAD_ID != 0 {
                out.extend_from_slice(&gtid.thread_id.unwrap_or(0).to_le_bytes());
            }
        }
        if out.len() < start + LEN_MIN {
            out.resize(start + LEN_MIN, 0);
        }
    })
}

/// A MARIADB_GTID_LIST event.
pub fn mariadb_gtid_list(head: &Head, list: &MariaDbGtidList) -> Vec<u8> {
    build(Kind::MARIADB_GTID_LIST, head, 4 + 16 * list.entries.len(), |out| {
        let count = list.entries.len() as u32 & 0x0fff_ffff | u32::from(list.flags) << 28;
        out.extend_from_slice(&count.to_le_bytes());
        for entry in &list.entries {
            out.extend_from_slice(&entry.domain_id.to_le_bytes());
            out.extend_from_slice(&entry.server_id.to_le_bytes());
            out.extend_from_slice(&entry.seq_no.to_le_bytes());
        }
    })
}

/// A PREVIOUS_GTIDS event (the server flags it as ignorable, and so does this).
pub fn previous_gtids(head: &Head, set: &PreviousGtids) -> Vec<u8> {
    let head = head.with_flags(head.flags | crate::header::Header::FLAG_IGNORABLE);
    build(Kind::PREVIOUS_GTIDS, &head, 64, |out| set.encode_set(out))
}
