//! INCIDENT: the source says that its log may lack changes.

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// What the source says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// 1: lost events.
    pub number: u16,
    /// May be empty.
    pub message: String,
}

impl std::fmt::Display for Incident {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.number, self.message.as_str()) {
            (number, "") => write!(f, "number {number}"),
            (number, message) => write!(f, "number {number}: {message}"),
        }
    }
}

impl Incident {
    /// Decodes an INCIDENT event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<Incident, Corruption> {
        event.expect(Kind::INCIDENT)?;
        let mut r = event.reader();
        let number = r.u16("incident")?;
        let message = if r.is_empty() { &[] } else { r.u8_bytes("incident message")? };
        Ok(Incident { number, message: String::from_utf8_lossy(message).into_owned() })
    }
}
