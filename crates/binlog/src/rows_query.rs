//! ROWS_QUERY (MySQL) and ANNOTATE_ROWS (MariaDB): the text of the statement whose rows follow.

use bytes::Bytes;

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// The statement, for people: it is not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsQuery {
    /// In `character_set_client`.
    pub sql: Bytes,
}

impl RowsQuery {
    /// Decodes ROWS_QUERY and ANNOTATE_ROWS.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<RowsQuery, Corruption> {
        match event.kind() {
            Kind::ROWS_QUERY => {
                // One byte of length that wraps at 256: the event's end is what counts.
                let mut r = event.reader();
                r.u8("statement length")?;
                Ok(RowsQuery { sql: event.share(r.rest()) })
            }
            Kind::ANNOTATE_ROWS => Ok(RowsQuery { sql: event.body_bytes() }),
            _ => Err(event.wrong_kind("ROWS_QUERY")),
        }
    }
}
