//! MySQL's binary JSON as text, as the server's client prints it.
//!
//! A value is a type byte and data. Objects and arrays come small (16-bit offsets and sizes) or large (32-bit): element
//! count, size in bytes, key entries (offset, length u16), value entries (type, offset or the value itself when it is
//! small enough), keys, values. Source: the description of the format in MySQL's manual of its binary JSON.

use std::fmt::Write as _;

use crate::corruption::{Corruption, CorruptionKind};
use crate::reader::Reader;
use crate::value;

/// The server's own limit for nesting.
pub(crate) const DEPTH_MAX: usize = 100;

pub(crate) const SMALL_OBJECT: u8 = 0;
pub(crate) const LARGE_OBJECT: u8 = 1;
pub(crate) const SMALL_ARRAY: u8 = 2;
pub(crate) const LARGE_ARRAY: u8 = 3;
pub(crate) const LITERAL: u8 = 4;
pub(crate) const INT16: u8 = 5;
pub(crate) const UINT16: u8 = 6;
pub(crate) const INT32: u8 = 7;
pub(crate) const UINT32: u8 = 8;
pub(crate) const INT64: u8 = 9;
pub(crate) const UINT64: u8 = 10;
pub(crate) const DOUBLE: u8 = 11;
pub(crate) const STRING: u8 = 12;
pub(crate) const OPAQUE: u8 = 15;

/// The text of a JSON column's value. An empty value is what the server stores for JSON null.
///
/// # Errors
/// [`Corruption`] with an offset in the value.
pub fn to_text(bytes: &[u8]) -> Result<String, Corruption> {
    let mut out = String::new();
    let Some((kind, data)) = bytes.split_first() else {
        out.push_str("null");
        return Ok(out);
    };
    // A document whose entries share their data could print far more than it holds.
    let mut budget = Budget {
        elements: bytes.len().saturating_add(1),
        text_len: bytes.len().saturating_mul(16).saturating_add(1024),
    };
    write_value(&mut out, *kind, data, 0, &mut budget)?;
    Ok(out)
}

/// What is left of the limits that no document of a server reaches.
struct Budget {
    elements: usize,
    text_len: usize,
}

impl Budget {
    fn spend(&mut self, out: &str, r: &Reader<'_>) -> Result<(), Corruption> {
        let left = self.elements.checked_sub(1).filter(|_| out.len() <= self.text_len);
        self.elements = left.ok_or_else(|| r.invalid("JSON element count", 0))?;
        Ok(())
    }
}

fn write_value(out: &mut String, kind: u8, data: &[u8], depth: usize, budget: &mut Budget) -> Result<(), Corruption> {
    let mut r = Reader::new(data, 0);
    budget.spend(out, &r)?;
    if depth > DEPTH_MAX {
        return Err(r.invalid("JSON depth", depth as u64));
    }
    match kind {
        SMALL_OBJECT => container(out, data, true, false, depth, budget)?,
        LARGE_OBJECT => container(out, data, true, true, depth, budget)?,
        SMALL_ARRAY => container(out, data, false, false, depth, budget)?,
        LARGE_ARRAY => container(out, data, false, true, depth, budget)?,
        LITERAL => literal(out, &mut r)?,
        INT16 => push(out, r.u16("JSON int16")? as i16),
        UINT16 => push(out, r.u16("JSON uint16")?),
        INT32 => push(out, r.u32("JSON int32")? as i32),
        UINT32 => push(out, r.u32("JSON uint32")?),
        INT64 => push(out, r.u64("JSON int64")? as i64),
        UINT64 => push(out, r.u64("JSON uint64")?),
        DOUBLE => {
            let text = value::double_text(f64::from_le_bytes(r.array("JSON double")?));
            out.push_str(&text);
            // The server tells a double from an integer.
            if !text.contains(['.', 'e', 'n', 'i']) {
                out.push_str(".0");
            }
        }
        STRING => {
            let len = data_len(&mut r)?;
            quote(out, r.bytes_u64(len, "JSON string")?);
        }
        OPAQUE => {
            let column = r.u8("JSON opaque type")?;
            let len = data_len(&mut r)?;
            opaque(out, column, r.bytes_u64(len, "JSON opaque value")?);
        }
        other => return Err(r.invalid("JSON type", other.into())),
    }
    Ok(())
}

fn push(out: &mut String, number: impl std::fmt::Display) {
    // Writing to a String does not fail.
    let _ = write!(out, "{number}");
}

fn literal(out: &mut String, r: &mut Reader<'_>) -> Result<(), Corruption> {
    out.push_str(match r.u8("JSON literal")? {
        0 => "null",
        1 => "true",
        2 => "false",
        other => return Err(r.invalid("JSON literal", other.into())),
    });
    Ok(())
}

/// Seven bits in each byte, the lowest first, the high bit saying that more follow.
pub(crate) fn data_len(r: &mut Reader<'_>) -> Result<u64, Corruption> {
    let mut len = 0u64;
    for shift in 0..5 {
        let byte = r.u8("JSON length")?;
        len |= u64::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            return Ok(len);
        }
    }
    Err(r.invalid("JSON length", len))
}

fn container(
    out: &mut String,
    data: &[u8],
    object: bool,
    large: bool,
    depth: usize,
    budget: &mut Budget,
) -> Result<(), Corruption> {
    let mut r = Reader::new(data, 0);
    let number = |r: &mut Reader<'_>, field| {
        if large { r.u32(field) } else { r.u16(field).map(u32::from) }
    };
    let count = number(&mut r, "JSON element count")?;
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
    if (count as usize).saturating_mul(entry_len) > data.len() {
        return Err(r.invalid("JSON element count", count.into()));
    }
    let mut keys = r.clone();
    let mut values = r;
    if object {
        values.bytes(count as usize * (offset_len + 2), "JSON keys")?;
    }
    out.push(if object { '{' } else { '[' });
    for index in 0..count {
        if index > 0 {
            out.push_str(", ");
        }
        if object {
            let at = number(&mut keys, "JSON key offset")? as usize;
            let len = usize::from(keys.u16("JSON key length")?);
            let key = data.get(at..).and_then(|rest| rest.get(..len));
            quote(out, key.ok_or_else(|| keys.invalid("JSON key offset", at as u64))?);
            out.push_str(": ");
        }
        let kind = values.u8("JSON value type")?;
        let inline = matches!(kind, LITERAL | INT16 | UINT16) || (large && matches!(kind, INT32 | UINT32));
        if inline {
            write_value(out, kind, values.bytes(offset_len, "JSON value")?, depth + 1, budget)?;
        } else {
            let at = number(&mut values, "JSON value offset")? as usize;
            let value = data.get(at..).ok_or_else(|| values.invalid("JSON value offset", at as u64))?;
            write_value(out, kind, value, depth + 1, budget)?;
        }
    }
    out.push(if object { '}' } else { ']' });
    Ok(())
}

fn quote(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A value of an SQL type inside a document.
fn opaque(out: &mut String, column: u8, bytes: &[u8]) {
    use crate::column::ColumnKind;
    let text = match ColumnKind(column) {
        ColumnKind::NEWDECIMAL => match bytes.split_first_chunk::<2>() {
            Some(([precision, scale], digits)) => value::decimal_text(digits, (*precision).into(), (*scale).into()),
            None => None,
        },
        ColumnKind::DATE | ColumnKind::DATETIME | ColumnKind::TIMESTAMP | ColumnKind::TIME => {
            let packed = bytes.first_chunk::<8>().map(|raw| i64::from_le_bytes(*raw));
            packed.map(|packed| format!("\"{}\"", value::packed_temporal_text(packed, ColumnKind(column))))
        }
        _ => None,
    };
    match text {
        Some(text) => out.push_str(&text),
        None => {
            let _ = write!(out, "\"base64:type{column}:{}\"", base64(bytes));
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut word = [0u8; 3];
        for (to, from) in word.iter_mut().zip(three) {
            *to = *from;
        }
        let [a, b, c] = word.map(u32::from);
        let bits = a << 16 | b << 8 | c;
        for index in 0..4 {
            let digit = (bits >> (18 - 6 * index)) as usize % 64;
            let padding = index > three.len();
            out.push(if padding { '=' } else { DIGITS.get(digit).copied().unwrap_or(b'=').into() });
        }
    }
    out
}
