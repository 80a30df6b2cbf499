//! Column values as text, as the server's client prints them.
//!
//! Values in row images are little-endian, except decimals and the second generation of time types (big-endian, with
//! the sign in the highest bit, so that they sort as bytes). Timestamps are printed in UTC: no time zone is known here.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::charset;
use crate::column::{Column, ColumnKind};
use crate::image::decimal_len;
use crate::json;

/// The text of `raw`, a value without its length prefix. `unsigned` is for integer columns whose table map does not say.
/// A value that its type cannot have is printed as hexadecimal digits.
pub fn display(column: &Column, raw: &[u8], unsigned: bool) -> String {
    text(column, raw, column.unsigned.unwrap_or(unsigned)).unwrap_or_else(|| hex(raw))
}

/// `0x` and hexadecimal digits.
pub fn hex(raw: &[u8]) -> String {
    format!("0x{}", hex::encode_upper(raw))
}

fn text(column: &Column, raw: &[u8], unsigned: bool) -> Option<String> {
    let meta = column.meta;
    Some(match column.real_kind() {
        ColumnKind::TINY | ColumnKind::SHORT | ColumnKind::INT24 | ColumnKind::LONG | ColumnKind::LONGLONG => {
            integer(raw, unsigned)?
        }
        ColumnKind::FLOAT => float_text(f32::from_le_bytes(raw.try_into().ok()?)),
        ColumnKind::DOUBLE => double_text(f64::from_le_bytes(raw.try_into().ok()?)),
        ColumnKind::NEWDECIMAL => decimal_text(raw, meta >> 8, meta & 0xff)?,
        ColumnKind::YEAR => match raw {
            [0] => "0000".to_owned(),
            [year] => (1900 + u16::from(*year)).to_string(),
            _ => return None,
        },
        ColumnKind::DATE | ColumnKind::NEWDATE => {
            let packed = little(raw, 3)?;
            date(packed >> 9, packed >> 5 & 15, packed & 31)
        }
        ColumnKind::TIME => {
            let raw = little(raw, 3)?;
            let signed = if raw >= 1 << 23 { raw as i64 - (1 << 24) } else { raw as i64 };
            let (sign, hms) = (if signed < 0 { "-" } else { "" }, signed.unsigned_abs());
            format!("{sign}{:02}:{:02}:{:02}", hms / 10_000, hms / 100 % 100, hms % 100)
        }
        ColumnKind::DATETIME => {
            let packed = little(raw, 8)?;
            let (day, time) = (packed / 1_000_000, packed % 1_000_000);
            let date = date(day / 10_000, day / 100 % 100, day % 100);
            format!("{date} {:02}:{:02}:{:02}", time / 10_000, time / 100 % 100, time % 100)
        }
        ColumnKind::TIMESTAMP => unix_text(little(raw, 4)?)?,
        ColumnKind::TIMESTAMP2 => {
            let (seconds, rest) = raw.split_at_checked(4)?;
            with_fraction(unix_text(big(seconds))?, big(rest), meta)?
        }
        ColumnKind::DATETIME2 => {
            let (whole, rest) = raw.split_at_checked(5)?;
            let packed = big(whole).checked_sub(1 << 39)?;
            with_fraction(packed_datetime(packed), big(rest), meta)?
        }
        ColumnKind::TIME2 => time2(raw, meta)?,
        ColumnKind::BIT | ColumnKind::GEOMETRY => hex(raw),
        ColumnKind::ENUM => enum_text(column, little(raw, raw.len())?),
        ColumnKind::SET => set_text(column, little(raw, raw.len())?),
        ColumnKind::JSON => json::to_text(raw).ok()?,
        ColumnKind::NULL => "NULL".to_owned(),
        ColumnKind::VECTOR => vector_text(raw)?,
        _ if column.collation == Some(63) && raw.iter().any(|byte| *byte < b' ') => return None,
        _ => string(column, raw)?.into_owned(),
    })
}

/// In the column's character set; without one that is known, UTF-8.
fn string<'a>(column: &Column, raw: &'a [u8]) -> Option<Cow<'a, str>> {
    match column.collation {
        Some(collation) => charset::decode(collation, raw),
        None => std::str::from_utf8(raw).ok().map(Cow::Borrowed),
    }
}

/// Little-endian, `len` bytes (at most 8) and no more.
fn little(raw: &[u8], len: usize) -> Option<u64> {
    if raw.len() != len || len > 8 {
        return None;
    }
    Some(raw.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// Big-endian; more than eight bytes keep the last eight.
fn big(raw: &[u8]) -> u64 {
    raw.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn integer(raw: &[u8], unsigned: bool) -> Option<String> {
    let value = little(raw, raw.len())?;
    if unsigned || raw.is_empty() {
        return Some(value.to_string());
    }
    let shift = 64 - 8 * raw.len() as u32;
    Some(((value << shift) as i64 >> shift).to_string())
}

fn date(year: u64, month: u64, day: u64) -> String {
    format!("{year:04}-{month:02}-{day:02}")
}

fn packed_datetime(packed: u64) -> String {
    let (day, time) = (packed >> 17, packed & 0x1ffff);
    let (year_month, day) = (day >> 5, day & 31);
    let date = date(year_month / 13, year_month % 13, day);
    format!("{date} {:02}:{:02}:{:02}", time >> 12, time >> 6 & 63, time & 63)
}

/// Appends `fraction`, which is in units of 10⁻², 10⁻⁴ or 10⁻⁶ by its length, with `digits` digits.
fn with_fraction(mut text: String, fraction: u64, digits: u16) -> Option<String> {
    let stored = digits.div_ceil(2) * 2;
    if digits == 0 {
        return Some(text);
    }
    if digits > 6 || fraction >= 10u64.pow(stored.into()) {
        return None;
    }
    let all = format!("{fraction:0width$}", width = usize::from(stored));
    text.push('.');
    text.push_str(all.get(..usize::from(digits))?);
    Some(text)
}

/// Seconds since 1970 in UTC; 0 is the zero date.
fn unix_text(seconds: u64) -> Option<String> {
    if seconds == 0 {
        return Some("0000-00-00 00:00:00".to_owned());
    }
    let time = jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    Some(time.strftime("%F %T").to_string())
}

/// Sign and magnitude over the whole value, fraction included: negative values are the complement.
fn time2(raw: &[u8], digits: u16) -> Option<String> {
    let fraction_len = usize::from(digits.div_ceil(2));
    if raw.len() != 3 + fraction_len {
        return None;
    }
    let bits = 8 * raw.len() as u32;
    let signed = big(raw) as i64 - (1i64 << (bits - 1));
    let magnitude = signed.unsigned_abs();
    let (whole, fraction) = (magnitude >> (8 * fraction_len), magnitude & ((1 << (8 * fraction_len)) - 1));
    let sign = if signed < 0 { "-" } else { "" };
    let text = format!("{sign}{:02}:{:02}:{:02}", whole >> 12 & 0x3ff, whole >> 6 & 63, whole & 63);
    with_fraction(text, fraction, digits)
}

/// A date or a time inside JSON, as its opaque value has it. `None`: it is none.
pub fn json_temporal(bytes: &[u8], kind: ColumnKind) -> Option<String> {
    let packed = bytes.first_chunk::<8>().map(|raw| i64::from_le_bytes(*raw))?;
    Some(packed_temporal_text(packed, kind))
}

/// Dates and times inside JSON: the second generation's packed value shifted left by 24, microseconds below.
pub(crate) fn packed_temporal_text(packed: i64, kind: ColumnKind) -> String {
    let (sign, magnitude) = (if packed < 0 { "-" } else { "" }, packed.unsigned_abs());
    let (whole, micros) = (magnitude >> 24, magnitude & 0xff_ffff);
    match kind {
        ColumnKind::TIME => {
            format!("{sign}{:02}:{:02}:{:02}.{micros:06}", whole >> 12 & 0x3ff, whole >> 6 & 63, whole & 63)
        }
        ColumnKind::DATE => packed_datetime(whole).split(' ').next().unwrap_or_default().to_owned(),
        _ => format!("{}.{micros:06}", packed_datetime(whole)),
    }
}

/// A packed decimal: groups of nine digits in four bytes, big-endian, a shorter group first and last; the highest bit
/// set for positive numbers, all bits inverted for negative ones.
pub(crate) fn decimal_text(raw: &[u8], precision: u16, scale: u16) -> Option<String> {
    const GROUP: u16 = 9;
    if raw.len() != usize::from(decimal_len(precision, scale)?) {
        return None;
    }
    let whole = precision.checked_sub(scale)?;
    let mut bytes = raw.to_vec();
    let first = bytes.first_mut()?;
    let negative = *first & 0x80 == 0;
    *first ^= 0x80;
    if negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut rest = bytes.as_slice();
    let mut group = |digits: u16| {
        let len = usize::from(decimal_len(digits, 0)?);
        let (head, tail) = rest.split_at_checked(len)?;
        rest = tail;
        Some(format!("{:0width$}", big(head), width = usize::from(digits)))
    };
    let mut integer = String::new();
    if !whole.is_multiple_of(GROUP) {
        integer.push_str(&group(whole % GROUP)?);
    }
    for _ in 0..whole / GROUP {
        integer.push_str(&group(GROUP)?);
    }
    let mut fraction = String::new();
    for _ in 0..scale / GROUP {
        fraction.push_str(&group(GROUP)?);
    }
    if !scale.is_multiple_of(GROUP) {
        fraction.push_str(&group(scale % GROUP)?);
    }
    let integer = match integer.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let sign = if negative { "-" } else { "" };
    Some(if scale == 0 { format!("{sign}{integer}") } else { format!("{sign}{integer}.{fraction}") })
}

fn enum_text(column: &Column, index: u64) -> String {
    let value = usize::try_from(index).ok().and_then(|index| index.checked_sub(1));
    match (&column.values, value) {
        (Some(_), None) => String::new(),
        (Some(values), Some(at)) => match values.get(at).and_then(|value| string(column, value)) {
            Some(text) => text.into_owned(),
            None => index.to_string(),
        },
        (None, _) => index.to_string(),
    }
}

fn set_text(column: &Column, bits: u64) -> String {
    let Some(values) = &column.values else {
        return bits.to_string();
    };
    let mut out = Vec::new();
    for index in (0..64).filter(|index| bits >> index & 1 != 0) {
        match values.get(index).and_then(|value| string(column, value)) {
            Some(text) => out.push(text),
            None => return bits.to_string(),
        }
    }
    out.join(",")
}

fn vector_text(raw: &[u8]) -> Option<String> {
    let (numbers, rest) = raw.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut out = String::from("[");
    for (index, number) in numbers.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{:.5e}", f32::from_le_bytes(*number));
    }
    out.push(']');
    Some(out)
}

/// As the server prints a FLOAT: six significant digits.
fn float_text(value: f32) -> String {
    if value == 0.0 || !value.is_finite() {
        return plain_or_scientific(&format!("{value:e}"), value.into());
    }
    let six = format!("{value:.5e}");
    plain_or_scientific(&trim_mantissa(&six), value.into())
}

/// As the server prints a DOUBLE: the shortest text that reads back as the same number.
pub(crate) fn double_text(value: f64) -> String {
    plain_or_scientific(&format!("{value:e}"), value)
}

fn trim_mantissa(scientific: &str) -> String {
    match scientific.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => {
            let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
            format!("{mantissa}e{exponent}")
        }
        _ => scientific.to_owned(),
    }
}

/// `scientific` is `d.ddde±x`. The server prints exponents from -15 to 14 without an exponent.
fn plain_or_scientific(scientific: &str, value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_owned();
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return scientific.to_owned();
    };
    if !(-15..15).contains(&exponent) {
        return format!("{mantissa}e{exponent}");
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let point = exponent + 1;
    if point <= 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize));
    }
    let point = point as usize;
    if digits.len() <= point {
        return format!("{sign}{digits}{}", "0".repeat(point - digits.len()));
    }
    let (whole, fraction) = digits.split_at(point);
    format!("{sign}{whole}.{fraction}")
}
