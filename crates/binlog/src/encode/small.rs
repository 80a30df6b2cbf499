//! The events with a few fields.

use crate::header::Header;
use crate::intvar::IntVar;
use crate::kind::Kind;
use crate::xa_prepare::XaPrepare;

use super::{Head, build, event, write_lenenc, write_lenenc_bytes};

/// An XID event.
pub fn xid(head: &Head, xid: u64) -> Vec<u8> {
    event(Kind::XID, head, &xid.to_le_bytes())
}

/// A ROTATE event.
pub fn rotate(head: &Head, position: u64, file: &str) -> Vec<u8> {
    build(Kind::ROTATE, head, 8 + file.len(), |out| {
        out.extend_from_slice(&position.to_le_bytes());
        out.extend_from_slice(file.as_bytes());
    })
}

/// A STOP event.
pub fn stop(head: &Head) -> Vec<u8> {
    event(Kind::STOP, head, &[])
}

/// A HEARTBEAT event. `position` goes into the header, modulo 2³².
pub fn heartbeat(head: &Head, position: u64, file: &str) -> Vec<u8> {
    // The header's position is that of the next event: the heartbeat itself takes no room in the log.
    let len = (crate::header::HEADER_LEN + file.len() + head.checksum.len()) as u64;
    let head = Head { offset: Some(position.wrapping_sub(len)), flags: head.flags | Header::FLAG_ARTIFICIAL, ..*head };
    event(Kind::HEARTBEAT, &head, file.as_bytes())
}

/// A HEARTBEAT_V2 event, whose position may be past 4 GiB.
pub fn heartbeat_v2(head: &Head, position: u64, file: &str) -> Vec<u8> {
    let mut value = Vec::with_capacity(9);
    write_lenenc(&mut value, position);
    let head = Head { offset: None, flags: head.flags | Header::FLAG_ARTIFICIAL, ..*head };
    build(Kind::HEARTBEAT_V2, &head, file.len() + 16, |out| {
        out.push(1);
        write_lenenc_bytes(out, file.as_bytes());
        out.push(2);
        write_lenenc_bytes(out, &value);
        out.push(0);
    })
}

/// An INTVAR event.
pub fn intvar(head: &Head, value: IntVar) -> Vec<u8> {
    let (which, value) = match value {
        IntVar::LastInsertId(value) => (1, value),
        IntVar::InsertId(value) => (2, value),
    };
    build(Kind::INTVAR, head, 9, |out| {
        out.push(which);
        out.extend_from_slice(&value.to_le_bytes());
    })
}

/// A ROWS_QUERY event: the text of a statement whose rows follow.
pub fn rows_query(head: &Head, sql: &[u8]) -> Vec<u8> {
    let head = head.with_flags(head.flags | Header::FLAG_IGNORABLE);
    build(Kind::ROWS_QUERY, &head, 1 + sql.len(), |out| {
        // A length that no server reads; recent ones write 0.
        out.push(0);
        out.extend_from_slice(sql);
    })
}

/// An XA_PREPARE event.
pub fn xa_prepare(head: &Head, prepare: &XaPrepare) -> Vec<u8> {
    build(Kind::XA_PREPARE, head, 13 + 128, |out| {
        out.push(prepare.one_phase.into());
        out.extend_from_slice(&prepare.xid.format_id.to_le_bytes());
        out.extend_from_slice(&(prepare.xid.gtrid.len() as u32).to_le_bytes());
        out.extend_from_slice(&(prepare.xid.bqual.len() as u32).to_le_bytes());
        out.extend_from_slice(&prepare.xid.gtrid);
        out.extend_from_slice(&prepare.xid.bqual);
    })
}
