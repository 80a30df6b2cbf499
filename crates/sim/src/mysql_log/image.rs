//! Rows as row images of a binary log: all columns, NULLs in a bitmap in front.

use binlog::{Column, ColumnKind};

use crate::schema;
use crate::value::{Type, Value};

/// The `utf8mb4_bin` collation's id in both servers.
const UTF8MB4_BIN: u16 = 46;

/// A column as a table map with full metadata says it.
pub fn column(column: &schema::Column) -> Column {
    let (kind, meta, unsigned) = match column.of {
        Type::SmallUnsigned => (ColumnKind::SHORT, 0, Some(true)),
        Type::Int => (ColumnKind::LONG, 0, Some(false)),
        Type::IntUnsigned => (ColumnKind::LONG, 0, Some(true)),
        Type::Big => (ColumnKind::LONGLONG, 0, Some(false)),
        Type::BigUnsigned => (ColumnKind::LONGLONG, 0, Some(true)),
        Type::Decimal { precision, scale } => {
            (ColumnKind::NEWDECIMAL, u16::from(precision) << 8 | u16::from(scale), Some(false))
        }
        Type::Varchar(characters) => (ColumnKind::VARCHAR, varchar_bytes(characters), None),
        Type::Timestamp => (ColumnKind::TIMESTAMP2, 6, None),
    };
    Column {
        unsigned,
        collation: matches!(column.of, Type::Varchar(_)).then_some(UTF8MB4_BIN),
        name: Some(column.name.to_owned()),
        visible: Some(true),
        ..Column::new(kind, meta, column.nullable)
    }
}

/// Appends the image of a row.
pub fn write(out: &mut Vec<u8>, columns: &[schema::Column], row: &[Value]) {
    let nulls = out.len();
    // Bits past the last column are set, as the server leaves them.
    out.extend(std::iter::repeat_n(0xff, columns.len().div_ceil(8)));
    for (index, value) in row.iter().enumerate() {
        if *value != Value::Null
            && let Some(byte) = out.get_mut(nulls + index / 8)
        {
            *byte &= !(1 << (index % 8));
        }
    }
    for (column, value) in columns.iter().zip(row) {
        write_value(out, column.of, value);
    }
}

fn write_value(out: &mut Vec<u8>, of: Type, value: &Value) {
    match (of, value) {
        (_, Value::Null) => {}
        (Type::Decimal { precision, scale }, Value::Decimal(units)) => decimal(out, precision, scale, *units),
        (Type::Timestamp, Value::Timestamp(us)) => {
            out.extend_from_slice(&((us / 1_000_000) as u32).to_be_bytes());
            out.extend(((us % 1_000_000) as u32).to_be_bytes().into_iter().skip(1));
        }
        (Type::Varchar(characters), Value::Text(text)) => {
            let prefix = if varchar_bytes(characters) < 256 { 1 } else { 2 };
            out.extend((text.len() as u16).to_le_bytes().into_iter().take(prefix));
            out.extend_from_slice(text.as_bytes());
        }
        (_, Value::Int(value)) => out.extend(value.to_le_bytes().into_iter().take(int_bytes(of))),
        (_, Value::Uint(value)) => out.extend(value.to_le_bytes().into_iter().take(int_bytes(of))),
        #[expect(clippy::unreachable, reason = "the workload is of this crate")]
        (_, Value::Decimal(_) | Value::Text(_) | Value::Timestamp(_)) => {
            unreachable!("the workload puts only values of a column's type into it")
        }
    }
}

fn int_bytes(of: Type) -> usize {
    match of {
        Type::SmallUnsigned => 2,
        Type::Int | Type::IntUnsigned => 4,
        _ => 8,
    }
}

/// Longest value in bytes: utf8mb4 has up to four for a character.
fn varchar_bytes(characters: u16) -> u16 {
    characters.saturating_mul(4)
}

/// Big-endian groups of nine digits, the odd ones at both ends shorter; the sign is the inverted highest bit, and negative
/// numbers have all bits inverted (`decimal2bin`).
fn decimal(out: &mut Vec<u8>, precision: u8, scale: u8, units: i64) {
    const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let (whole_digits, scale) = (usize::from(precision - scale), usize::from(scale));
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = whole_digits + scale);
    let (whole, fraction) = digits.split_at(whole_digits);
    let start = out.len();
    let mut group = |digits: &str| {
        let value: u32 = digits.parse().unwrap_or(0);
        let len = BYTES.get(digits.len()).copied().unwrap_or(4);
        out.extend(value.to_be_bytes().into_iter().skip(4 - len));
    };
    let (first, rest) = whole.split_at(whole_digits % 9);
    group(first);
    let chunks = |digits: &str, group: &mut dyn FnMut(&str)| {
        let mut rest = digits;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.len().min(9));
            group(chunk);
            rest = after;
        }
    };
    chunks(rest, &mut group);
    chunks(fraction, &mut group);
    for byte in out.iter_mut().skip(start) {
        *byte ^= if units < 0 { 0xff } else { 0 };
    }
    if let Some(first) = out.get_mut(start) {
        *first ^= 0x80;
    }
}
