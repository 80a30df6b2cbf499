//! ROTATE: the next log of the source.

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// Where the log goes on. With timestamp 0 or the artificial flag, it was made up by the sending server to announce the
/// log that it is about to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotate {
    /// Offset of the first event, bytes.
    pub position: u64,
    /// File name without a folder.
    pub file: String,
}

impl Rotate {
    /// Decodes a ROTATE event, which needs no format description: it may come before one.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode_any(event: &Event) -> Result<Rotate, Corruption> {
        event.expect(Kind::ROTATE)?;
        let mut r = event.reader();
        let position = r.u64("rotate position")?;
        let name = r.rest();
        Ok(Rotate { position, file: r.utf8(name, "rotate file")? })
    }

    /// Decodes a ROTATE event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<Rotate, Corruption> {
        Self::decode_any(event)
    }
}
