//! MySQL's binary JSON as a tree of its values, without copying them. `json` has the format, and the text.

use crate::corruption::{Corruption, CorruptionKind};
use crate::json::{self, DEPTH_MAX, data_len};
use crate::reader::Reader;

/// One value of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Element<'a> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Double(f64),
    /// UTF-8, as the server has checked it.
    Text(&'a [u8]),
    /// A value of an SQL type: its `MYSQL_TYPE_*` and its bytes.
    Opaque {
        kind: u8,
        bytes: &'a [u8],
    },
    Array(Vec<Element<'a>>),
    /// In the document's order of keys.
    Object(Vec<(&'a [u8], Element<'a>)>),
}

/// The document in a JSON column's value. An empty value is what the server stores for JSON null.
///
/// # Errors
/// [`Corruption`] with an offset in a part of the value.
pub fn tree(bytes: &[u8]) -> Result<Element<'_>, Corruption> {
    let Some((kind, data)) = bytes.split_first() else { return Ok(Element::Null) };
    // Entries that share their data could be far more than a document holds.
    let mut left = bytes.len().saturating_add(1);
    element(*kind, data, 0, &mut left)
}

fn element<'a>(kind: u8, data: &'a [u8], depth: usize, left: &mut usize) -> Result<Element<'a>, Corruption> {
    let mut r = Reader::new(data, 0);
    *left = left.checked_sub(1).ok_or_else(|| r.invalid("JSON element count", 0))?;
    if depth > DEPTH_MAX {
        return Err(r.invalid("JSON depth", depth as u64));
    }
    Ok(match kind {
        json::SMALL_OBJECT => container(data, true, false, depth, left)?,
        json::LARGE_OBJECT => container(data, true, true, depth, left)?,
        json::SMALL_ARRAY => container(data, false, false, depth, left)?,
        json::LARGE_ARRAY => container(data, false, true, depth, left)?,
        json::LITERAL => match r.u8("JSON literal")? {
            0 => Element::Null,
            1 => Element::Bool(true),
            2 => Element::Bool(false),
            other => return Err(r.invalid("JSON literal", other.into())),
        },
        json::INT16 => Element::Signed((r.u16("JSON int16")? as i16).into()),
        json::UINT16 => Element::Unsigned(r.u16("JSON uint16")?.into()),
        json::INT32 => Element::Signed((r.u32("JSON int32")? as i32).into()),
        json::UINT32 => Element::Unsigned(r.u32("JSON uint32")?.into()),
        json::INT64 => Element::Signed(r.u64("JSON int64")? as i64),
        json::UINT64 => Element::Unsigned(r.u64("JSON uint64")?),
        json::DOUBLE => Element::Double(f64::from_le_bytes(r.array("JSON double")?)),
        json::STRING => {
            let len = data_len(&mut r)?;
            Element::Text(r.bytes_u64(len, "JSON string")?)
        }
        json::OPAQUE => {
            let kind = r.u8("JSON opaque type")?;
            let len = data_len(&mut r)?;
            Element::Opaque { kind, bytes: r.bytes_u64(len, "JSON opaque value")? }
        }
        other => return Err(r.invalid("JSON type", other.into())),
    })
}

fn container<'a>(
    data: &'a [u8],
    object: bool,
    large: bool,
    depth: usize,
    left: &mut usize,
) -> Result<Element<'a>, Corruption> {
    let mut r = Reader::new(data, 0);
    let number = |r: &mut Reader<'_>, field| {
        if large { r.u32(field) } else { r.u16(field).map(u32::from) }
    };
    let count = number(&mut r, "JSON element count")? as usize;
    let size = number(&mut r, "JSON size")? as usize;
    let Some(data) = data.get(..size) else {
        return Err(r.err(CorruptionKind::Truncated {
            field: "JSON container",
            want: size as u64,
            have: data.len() as u64,
        }));
    };
    let offset_len: usize = if large { 4 } else { 2 };
    let entry_len = (if object { offset_len + 2 } else { 0 }) + 1 + offset_len;
    if count.saturating_mul(entry_len) > data.len() {
        return Err(r.invalid("JSON element count", count as u64));
    }
    let mut keys = r.clone();
    let mut values = r;
    if object {
        values.bytes(count * (offset_len + 2), "JSON keys")?;
    }
    let mut value = |r: &mut Reader<'a>| {
        let kind = r.u8("JSON value type")?;
        let inline = matches!(kind, json::LITERAL | json::INT16 | json::UINT16)
            || large && matches!(kind, json::INT32 | json::UINT32);
        if inline {
            return element(kind, r.bytes(offset_len, "JSON value")?, depth + 1, left);
        }
        let at = number(r, "JSON value offset")? as usize;
        element(kind, data.get(at..).ok_or_else(|| r.invalid("JSON value offset", at as u64))?, depth + 1, left)
    };
    if !object {
        return (0..count).map(|_| value(&mut values)).collect::<Result<_, _>>().map(Element::Array);
    }
    let mut members = Vec::new();
    for _ in 0..count {
        let at = number(&mut keys, "JSON key offset")? as usize;
        let len = usize::from(keys.u16("JSON key length")?);
        let key = data.get(at..).and_then(|rest| rest.get(..len));
        let key = key.ok_or_else(|| keys.invalid("JSON key offset", at as u64))?;
        members.push((key, value(&mut values)?));
    }
    Ok(Element::Object(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_object() {
        // {"a": 1}, as a server stores it.
        let bytes = [0, 1, 0, 12, 0, 11, 0, 1, 0, json::INT16, 1, 0, b'a'];
        assert_eq!(tree(&bytes).unwrap(), Element::Object(vec![(b"a", Element::Signed(1))]));
        assert_eq!(tree(&[]).unwrap(), Element::Null);
    }

    #[test]
    fn damage_is_an_error() {
        for end in 1..13 {
            let bytes = [0, 1, 0, 12, 0, 11, 0, 1, 0, json::INT16, 1, 0, b'a'];
            assert!(tree(&bytes[..end]).is_err(), "{end}");
        }
        // An array whose only element is itself.
        assert!(tree(&[2, 1, 0, 7, 0, 2, 0, 0]).is_err());
    }
}
