//! XID: the commit of a transaction.

use crate::corrupt::Corrupt;
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
    /// [`Corrupt`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<Xid, Corrupt> {
        event.expect(Kind::XID)?;
        Ok(Xid(event.reader().u64("xid")?))
    }
}
