//! MariaDB's GTID event: starts each transaction and each stand-alone statement.
//!
//! Layout: seq_no u64, domain_id u32, flags u8; then commit_id u64 (with FL_GROUP_COMMIT_ID), an XID (with
//! FL_PREPARED_XA or FL_COMPLETED_XA), extra flags u8 and what they announce; at least 19 bytes, padded with zeros.

use bytes::Bytes;

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;
use crate::xa_prepare::XaXid;

/// Identity and parallel-replication tags of one event group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MariaDbGtid {
    /// Replication domain.
    pub domain_id: u32,
    /// From the event's header.
    pub server_id: u32,
    /// Number in the domain.
    pub seq_no: u64,
    /// `FL_*`.
    pub flags: u8,
    /// Transactions with the same one were committed together.
    pub commit_id: Option<u64>,
    /// The XA transaction that is prepared or completed.
    pub xid: Option<XaXid>,
    /// `FL_EXTRA_*`, 0 when absent.
    pub flags_extra: u8,
    /// Number of further engines in the transaction.
    pub extra_engines: Option<u8>,
    /// For the end of a two-phase ALTER: the seq_no of its start.
    pub start_alter_seq_no: Option<u64>,
    /// Connection that ran the transaction on the source (11.5+).
    pub thread_id: Option<u32>,
}

impl MariaDbGtid {
    /// One statement without a COMMIT event after it.
    pub const FL_STANDALONE: u8 = 1;
    /// `commit_id` is present.
    pub const FL_GROUP_COMMIT_ID: u8 = 2;
    /// Can be rolled back.
    pub const FL_TRANSACTIONAL: u8 = 4;
    /// `@@skip_parallel_replication` was off.
    pub const FL_ALLOW_PARALLEL: u8 = 8;
    /// Waited for a row lock on the source.
    pub const FL_WAITED: u8 = 16;
    /// DDL.
    pub const FL_DDL: u8 = 32;
    /// XA PREPARE.
    pub const FL_PREPARED_XA: u8 = 64;
    /// XA COMMIT or XA ROLLBACK.
    pub const FL_COMPLETED_XA: u8 = 128;
    /// `extra_engines` is present.
    pub const FL_EXTRA_MULTI_ENGINE: u8 = 1;
    /// First phase of a two-phase ALTER.
    pub const FL_EXTRA_START_ALTER: u8 = 2;
    /// COMMIT of a two-phase ALTER.
    pub const FL_EXTRA_COMMIT_ALTER: u8 = 4;
    /// ROLLBACK of a two-phase ALTER.
    pub const FL_EXTRA_ROLLBACK_ALTER: u8 = 8;
    /// `thread_id` is present.
    pub const FL_EXTRA_THREAD_ID: u8 = 16;

    /// `flags`, found in a body without decoding it; 0 if it is too short.
    pub fn peek_flags(body: &[u8]) -> u8 {
        const AT: usize = 8 + 4;
        body.get(AT).copied().unwrap_or(0)
    }

    /// Decodes a MARIADB_GTID event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<MariaDbGtid, Corruption> {
        event.expect(Kind::MARIADB_GTID)?;
        let mut r = event.reader();
        let mut gtid = MariaDbGtid {
            server_id: event.header().server_id,
            seq_no: r.u64("seq_no")?,
            domain_id: r.u32("domain_id")?,
            flags: r.u8("gtid flags")?,
            ..MariaDbGtid::default()
        };
        if gtid.flags & Self::FL_GROUP_COMMIT_ID != 0 {
            gtid.commit_id = Some(r.u64("commit_id")?);
        }
        if gtid.flags & (Self::FL_PREPARED_XA | Self::FL_COMPLETED_XA) != 0 {
            let format_id = r.u32("xid format")? as i32;
            let gtrid_len = r.u8("gtrid length")?;
            let bqual_len = r.u8("bqual length")?;
            let gtrid = r.bytes(gtrid_len.into(), "gtrid")?;
            let bqual = r.bytes(bqual_len.into(), "bqual")?;
            gtid.xid =
                Some(XaXid { format_id, gtrid: Bytes::copy_from_slice(gtrid), bqual: Bytes::copy_from_slice(bqual) });
        }
        if !r.is_empty() {
            gtid.flags_extra = r.u8("extra flags")?;
        }
        if gtid.flags_extra & Self::FL_EXTRA_MULTI_ENGINE != 0 {
            gtid.extra_engines = Some(r.u8("extra engines")?);
        }
        if gtid.flags_extra & (Self::FL_EXTRA_COMMIT_ALTER | Self::FL_EXTRA_ROLLBACK_ALTER) != 0 {
            gtid.start_alter_seq_no = Some(r.u64("start alter seq_no")?);
        }
        if gtid.flags_extra & Self::FL_EXTRA_THREAD_ID != 0 {
            gtid.thread_id = Some(r.u32("thread id")?);
        }
        Ok(gtid)
    }
}
