//! XID: the commit of a transaction.

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// The source's internal transaction number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xid(pub u64);

impl Xid {
    /// Decodes an XID event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<Xid, Corruption> {
        event.expect(Kind::XID)?;
        Ok(Xid(event.reader().u64("xid")?))
    }
}
