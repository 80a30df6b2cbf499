//! INTVAR: `LAST_INSERT_ID()` or `insert_id` for the next statement.

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// A value for the next statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntVar {
    /// What `LAST_INSERT_ID()` returns.
    LastInsertId(u64),
    /// The first value for an AUTO_INCREMENT column.
    InsertId(u64),
}

impl IntVar {
    /// Decodes an INTVAR event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<IntVar, Corruption> {
        event.expect(Kind::INTVAR)?;
        let mut r = event.reader();
        let which = r.u8("intvar type")?;
        let value = r.u64("intvar value")?;
        match which {
            1 => Ok(IntVar::LastInsertId(value)),
            2 => Ok(IntVar::InsertId(value)),
            other => Err(r.invalid("intvar type", other.into())),
        }
    }
}
