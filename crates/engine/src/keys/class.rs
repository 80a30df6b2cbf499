//! Which normalisation a column needs, and the normalisation of one value.

use super::collation::{for_char, text_key};
use super::data_type::DataType;
use super::text::TextKey;

/// How values of a column become comparable bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyClass {
    /// The bytes of the row image; a prefix counts bytes.
    Exact,
    /// BINARY(n): the zero bytes at the end do not count (MySQL's row images leave them out).
    FixedBinary,
    /// Little-endian IEEE 754, of which −0 equals 0.
    Float,
    Double,
    /// A string under its collation.
    Text(TextKey),
    /// Not known: order by table.
    Coarse,
}

/// Whether a value could be normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum EncodedValue {
    Yes,
    /// Nothing was appended: the value may equal any other of the column.
    Wildcard,
}

/// How values of a column become comparable; `charset` and `collation` as `information_schema` names them, in any
/// case, and not looked at for types that have none.
pub fn classify(column_type: &DataType, charset: &str, collation: &str) -> KeyClass {
    let text = |char_column: bool| match text_key(charset, collation) {
        Some(key) => KeyClass::Text(if char_column { for_char(key) } else { key }),
        None => KeyClass::Coarse,
    };
    let binary = collation.eq_ignore_ascii_case("binary");
    match column_type {
        // DECIMAL, the temporal types, BIT and MariaDB's fixed types have one binary form for each value, and
        // InnoDB compares that; an ENUM or SET is its number.
        DataType::Int { .. }
        | DataType::Decimal
        | DataType::Bit
        | DataType::Year
        | DataType::Date
        | DataType::Time
        | DataType::DateTime
        | DataType::Timestamp
        | DataType::VarBinary
        | DataType::Blob
        | DataType::Enum
        | DataType::Set
        | DataType::Inet4
        | DataType::Inet6
        | DataType::Uuid => KeyClass::Exact,
        DataType::Binary => KeyClass::FixedBinary,
        DataType::Char if binary => KeyClass::FixedBinary,
        DataType::VarChar | DataType::Text if binary => KeyClass::Exact,
        DataType::Float => KeyClass::Float,
        DataType::Double => KeyClass::Double,
        DataType::Char => text(true),
        DataType::VarChar | DataType::Text => text(false),
        DataType::Json | DataType::Geometry | DataType::Vector | DataType::Other => KeyClass::Coarse,
    }
}

/// Appends the comparable bytes of one value to `out`.
///
/// `value` is as the row image holds it, without its length prefix. `prefix` is the length of a prefix key: in
/// characters for strings, in bytes for binary strings. The bytes do not say where they end.
pub fn append_key(class: &KeyClass, value: &[u8], prefix: Option<u32>, out: &mut Vec<u8>) -> EncodedValue {
    let head = || match prefix {
        Some(bytes) => value.get(..bytes as usize).unwrap_or(value),
        None => value,
    };
    match class {
        KeyClass::Exact => out.extend_from_slice(head()),
        KeyClass::FixedBinary => {
            let head = head();
            let end = head.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            out.extend_from_slice(head.get(..end).unwrap_or(head));
        }
        KeyClass::Float => match <[u8; 4]>::try_from(value).map(f32::from_le_bytes) {
            Ok(number) if !number.is_nan() => out.extend((number + 0.0).to_le_bytes()),
            _ => return EncodedValue::Wildcard,
        },
        KeyClass::Double => match <[u8; 8]>::try_from(value).map(f64::from_le_bytes) {
            Ok(number) if !number.is_nan() => out.extend((number + 0.0).to_le_bytes()),
            _ => return EncodedValue::Wildcard,
        },
        KeyClass::Text(key) => {
            let start = out.len();
            if !key.append(value, prefix, out) {
                out.truncate(start);
                return EncodedValue::Wildcard;
            }
        }
        KeyClass::Coarse => return EncodedValue::Wildcard,
    }
    EncodedValue::Yes
}
