//! USER_VAR: a user variable that the next statement reads.

use bytes::Bytes;

use crate::corruption::Corruption;
use crate::event::Event;
use crate::format_description::FormatDescription;
use crate::kind::Kind;

/// `SET @name := value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserVar {
    /// Without the `@`, UTF-8.
    pub name: Bytes,
    /// `None`: NULL.
    pub value: Option<UserValue>,
}

/// A value with its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserValue {
    /// The server's result type: 0 string, 1 real, 2 integer, 4 decimal.
    pub result_type: u8,
    /// Collation id of a string.
    pub collation: u32,
    /// String: its bytes. Real: f64 little-endian. Integer: 8 bytes little-endian. Decimal: precision u8, scale u8,
    /// then the packed digits.
    pub bytes: Bytes,
    /// An integer is unsigned.
    pub unsigned: bool,
    /// What follows, as newer MariaDB servers add it (data type name).
    pub extra: Bytes,
}

impl UserVar {
    /// Decodes a USER_VAR event.
    ///
    /// # Errors
    /// [`Corruption`] with an offset in the event.
    pub fn decode(event: &Event, _format: &FormatDescription) -> Result<UserVar, Corruption> {
        event.expect(Kind::USER_VAR)?;
        let mut r = event.reader();
        let len = r.u32("variable name length")?;
        let name = event.share(r.bytes(len as usize, "variable name")?);
        if r.u8("null flag")? != 0 {
            return Ok(UserVar { name, value: None });
        }
        let result_type = r.u8("value type")?;
        if !matches!(result_type, 0..=2 | 4) {
            return Err(r.invalid("value type", result_type.into()));
        }
        let collation = r.u32("collation")?;
        let len = r.u32("value length")?;
        let bytes = event.share(r.bytes(len as usize, "value")?);
        if matches!(result_type, 1 | 2) && bytes.len() != 8 {
            return Err(r.invalid("value length", len.into()));
        }
        let unsigned = !r.is_empty() && r.u8("value flags")? & 1 != 0;
        let extra = event.share(r.rest());
        Ok(UserVar { name, value: Some(UserValue { result_type, collation, bytes, unsigned, extra }) })
    }
}
