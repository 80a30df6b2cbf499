//! XA_PREPARE: the end of the first phase of an XA transaction, or of a one-phase commit.

use std::fmt;

use bytes::Bytes;

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// The identifier of an XA transaction. Its `Display` is what `XA COMMIT` takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct XaXid {
    /// 1 unless the client chose another.
    pub format_id: i32,
    /// Global part, at most 64 bytes.
    pub gtrid: Bytes,
    /// Branch, at most 64 bytes.
    pub bqual: Bytes,
}

impl fmt::Display for XaXid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("X'")?;
        self.gtrid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("',X'")?;
        self.bqual.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "',{}", self.format_id)
    }
}

/// XA PREPARE, or XA COMMIT … ONE PHASE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XaPrepare {
    /// The transaction commits right here.
    pub one_phase: bool,
    /// Which transaction.
    pub xid: XaXid,
}

impl XaPrepare {
    /// Decodes an XA_PREPARE event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<XaPrepare, Corruption> {
        const PART_LEN_MAX: u32 = 64;
        event.expect(Kind::XA_PREPARE)?;
        let mut r = event.reader();
        let one_phase = r.u8("one phase")? != 0;
        let format_id = r.u32("xid format")? as i32;
        let gtrid_len = r.u32("gtrid length")?;
        let bqual_len = r.u32("bqual length")?;
        for (field, len) in [("gtrid length", gtrid_len), ("bqual length", bqual_len)] {
            if len > PART_LEN_MAX {
                return Err(r.invalid(field, len.into()));
            }
        }
        let gtrid = event.share(r.bytes(gtrid_len as usize, "gtrid")?);
        let bqual = event.share(r.bytes(bqual_len as usize, "bqual")?);
        Ok(XaPrepare { one_phase, xid: XaXid { format_id, gtrid, bqual } })
    }
}
