//! One value of a row image → its literal in a statement, exactly as it is stored.
//!
//! Literals are for sessions as [`super::SQL_MODE`] and [`super::TIME_ZONE`] say: a backslash escapes, times of TIMESTAMP columns are in UTC. Bytes stay
//! bytes: text has the character set of the target's column. Never asks a server.

use binlog::{Column, ColumnKind, compressed, json, value};

use super::bytes::{LiteralError, put_bytes};
use super::json_tree;
use super::table::{Form, SqlColumn};

/// How a literal is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralUse {
    /// It is stored in the column.
    Store,
    /// It is compared with [`super::compare::side`] of the column.
    Compare,
    /// It is compared with the column itself, by an index.
    Find,
}

/// Appends the literal of `raw`, a value without its length prefix; `None` is NULL.
pub fn put(
    column: &SqlColumn,
    logged: &Column,
    raw: Option<&[u8]>,
    way: LiteralUse,
    out: &mut Vec<u8>,
) -> Result<(), LiteralError> {
    let Some(raw) = raw else {
        if way == LiteralUse::Store && !column.nullable {
            return Err("the source's row has NULL, and the target's column is NOT NULL".to_owned());
        }
        out.extend_from_slice(b"NULL");
        return Ok(());
    };
    match logged.real_kind() {
        ColumnKind::TINY | ColumnKind::SHORT | ColumnKind::INT24 | ColumnKind::LONG | ColumnKind::LONGLONG => {
            put_text(&value::display(logged, raw, column.unsigned), out)
        }
        ColumnKind::NEWDECIMAL => put_text(&value::display(logged, raw, false), out),
        ColumnKind::FLOAT => put_double(f64::from(f32::from_le_bytes(fixed(raw)?)), out),
        ColumnKind::DOUBLE => put_double(f64::from_le_bytes(fixed(raw)?), out),
        // A string of two digits would be another year.
        ColumnKind::YEAR => {
            let [year] = fixed(raw)?;
            let year = if year == 0 { 0 } else { 1900 + u16::from(year) };
            put_text(&year.to_string(), out)
        }
        ColumnKind::BIT => put_text(&number(raw.iter())?.to_string(), out),
        ColumnKind::ENUM | ColumnKind::SET => put_text(&number(raw.iter().rev())?.to_string(), out),
        ColumnKind::DATE
        | ColumnKind::NEWDATE
        | ColumnKind::TIME
        | ColumnKind::DATETIME
        | ColumnKind::TIMESTAMP
        | ColumnKind::TIME2
        | ColumnKind::DATETIME2
        | ColumnKind::TIMESTAMP2 => put_time(logged, raw, way, out),
        ColumnKind::JSON => put_json(column, raw, way, out),
        ColumnKind::GEOMETRY | ColumnKind::VECTOR => {
            put_bytes("_binary", raw, out);
            Ok(())
        }
        ColumnKind::STRING
        | ColumnKind::VAR_STRING
        | ColumnKind::VARCHAR
        | ColumnKind::TINY_BLOB
        | ColumnKind::BLOB
        | ColumnKind::MEDIUM_BLOB
        | ColumnKind::LONG_BLOB => put_string(column, raw, way, out),
        ColumnKind::VARCHAR_COMPRESSED | ColumnKind::BLOB_COMPRESSED => {
            let value = compressed::column_value(raw).map_err(|error| error.to_string())?;
            put_string(column, &value, way, out)
        }
        other => Err(format!("a value of the type {other} has no literal")),
    }
}

/// A text of digits or of a time. What its type can not have is shown as hexadecimal digits.
fn put_text(text: &str, out: &mut Vec<u8>) -> Result<(), LiteralError> {
    if text.starts_with("0x") {
        return Err(format!("a value that its type can not have ({text})"));
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// The shortest digits that are this number.
fn put_double(number: f64, out: &mut Vec<u8>) -> Result<(), LiteralError> {
    if !number.is_finite() {
        return Err(format!("the number {number} has no literal"));
    }
    out.extend_from_slice(format!("{number:e}").as_bytes());
    Ok(())
}

fn put_time(logged: &Column, raw: &[u8], way: LiteralUse, out: &mut Vec<u8>) -> Result<(), LiteralError> {
    let text = value::display(logged, raw, false);
    if way == LiteralUse::Compare {
        out.extend_from_slice(b"_binary");
    }
    out.push(b'\'');
    put_text(&text, out)?;
    out.push(b'\'');
    Ok(())
}

fn put_json(column: &SqlColumn, raw: &[u8], way: LiteralUse, out: &mut Vec<u8>) -> Result<(), LiteralError> {
    if column.form == Form::Json {
        return json_tree::put_expression(raw, out);
    }
    let text = json::to_text(raw).map_err(|error| error.to_string())?;
    put_string(column, text.as_bytes(), way, out)
}

fn put_string(column: &SqlColumn, raw: &[u8], way: LiteralUse, out: &mut Vec<u8>) -> Result<(), LiteralError> {
    match (&column.form, way) {
        // MariaDB's JSON, which is text, into MySQL's.
        (Form::Json, _) => {
            let text = std::str::from_utf8(raw).map_err(|_| "JSON that is no UTF-8".to_owned())?;
            out.extend_from_slice(b"CAST(");
            put_bytes("_utf8mb4", text.as_bytes(), out);
            out.extend_from_slice(b" AS JSON)");
        }
        (Form::FixedBytes { len }, LiteralUse::Compare | LiteralUse::Find) => {
            let mut padded = raw.to_vec();
            padded.resize(padded.len().max(*len), 0);
            put_bytes("_binary", &padded, out);
        }
        (Form::Text { .. }, LiteralUse::Compare) => put_bytes("_binary", raw, out),
        (Form::Text { charset, collation }, LiteralUse::Store | LiteralUse::Find) => {
            put_characters(charset, raw, out)?;
            if way == LiteralUse::Find {
                out.extend_from_slice(format!(" COLLATE {collation}").as_bytes());
            }
        }
        (Form::Address { bytes }, _) => put_address(*bytes, raw, out)?,
        (Form::Uuid, _) => put_uuid(raw, out)?,
        _ => put_bytes("_binary", raw, out),
    }
    Ok(())
}

/// Without an introducer a literal is utf8mb4, and the server looks at its characters only when it stores them: a temporary table would cut it before.
fn put_characters(charset: &str, raw: &[u8], out: &mut Vec<u8>) -> Result<(), LiteralError> {
    if matches!(charset, "utf8mb4" | "utf8mb3" | "utf8") {
        if std::str::from_utf8(raw).is_err() {
            return Err(format!("bytes that are no characters of {charset}, which no statement can store"));
        }
        put_bytes("", raw, out);
    } else {
        put_bytes(&format!("_{charset}"), raw, out);
    }
    Ok(())
}

/// MariaDB's INET4 and INET6, which fill up with zeros in a row image.
fn put_address(bytes: usize, raw: &[u8], out: &mut Vec<u8>) -> Result<(), LiteralError> {
    let mut whole = raw.to_vec();
    whole.resize(bytes, 0);
    let text = match (<[u8; 4]>::try_from(whole.as_slice()), <[u8; 16]>::try_from(whole.as_slice())) {
        (Ok(four), _) => std::net::Ipv4Addr::from(four).to_string(),
        (_, Ok(sixteen)) => std::net::Ipv6Addr::from(sixteen).to_string(),
        _ => return Err(format!("an address of {} bytes", raw.len())),
    };
    put_bytes("", text.as_bytes(), out);
    Ok(())
}

/// MariaDB's UUID, which fills up with zeros in a row image. Some servers keep the parts of versions 1 to 5 from the last to the first, so that they sort by time
/// (MariaDB's manual, "UUID Data Type"); images of 10.11.19 have them as they are. Version and variant show which: no UUID has both in either order.
fn put_uuid(raw: &[u8], out: &mut Vec<u8>) -> Result<(), LiteralError> {
    let mut row = raw.to_vec();
    row.resize(16, 0);
    let parts = [12..16, 10..12, 8..10, 6..8, 0..6];
    let swapped: Vec<u8> = parts.into_iter().flat_map(|part| row.get(part).unwrap_or_default()).copied().collect();
    let is_uuid = |bytes: &[u8], versions: std::ops::RangeInclusive<u8>| {
        let version = bytes.get(6).map_or(0, |byte| byte >> 4);
        bytes.len() == 16 && versions.contains(&version) && bytes.get(8).is_some_and(|byte| byte & 0xc0 == 0x80)
    };
    let digits = if is_uuid(&row, 1..=8) || row == swapped {
        hex::encode(row)
    } else if is_uuid(&swapped, 1..=5) {
        hex::encode(swapped)
    } else {
        return Err("a UUID without a version, of which the log does not say in which order its parts are".to_owned());
    };
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    let text = format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32));
    put_bytes("", text.as_bytes(), out);
    Ok(())
}

fn fixed<const N: usize>(raw: &[u8]) -> Result<[u8; N], LiteralError> {
    raw.try_into().map_err(|_| format!("a value of {} bytes where the type has {N}", raw.len()))
}

/// The highest byte first.
fn number<'a>(bytes: impl ExactSizeIterator<Item = &'a u8>) -> Result<u64, LiteralError> {
    if bytes.len() > 8 {
        return Err(format!("a number of {} bytes", bytes.len()));
    }
    Ok(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(form: Form) -> SqlColumn {
        SqlColumn { name: "`c`".to_owned(), form, nullable: false, unsigned: false, on_update: false }
    }

    fn text(charset: &str) -> Form {
        Form::Text { charset: charset.to_owned(), collation: format!("{charset}_bin") }
    }

    fn literal(form: Form, logged: Column, raw: &[u8], way: LiteralUse) -> Result<String, LiteralError> {
        let mut out = Vec::new();
        put(&column(form), &logged, Some(raw), way, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    #[track_caller]
    fn check(form: Form, logged: Column, raw: &[u8], expected: &str) {
        assert_eq!(literal(form, logged, raw, LiteralUse::Store).as_deref(), Ok(expected));
    }

    fn of(kind: ColumnKind, meta: u16) -> Column {
        Column::new(kind, meta, true)
    }

    #[test]
    fn numbers() {
        check(Form::Number, of(ColumnKind::LONG, 0), &[0xfe, 0xff, 0xff, 0xff], "-2");
        let mut unsigned = of(ColumnKind::LONGLONG, 0);
        unsigned.unsigned = Some(true);
        check(Form::Number, unsigned, &[0xff; 8], "18446744073709551615");
        check(Form::Approximate, of(ColumnKind::FLOAT, 4), &1.1f32.to_le_bytes(), "1.100000023841858e0");
        check(Form::Approximate, of(ColumnKind::DOUBLE, 8), &(-0.0f64).to_le_bytes(), "-0e0");
        check(Form::Approximate, of(ColumnKind::DOUBLE, 8), &5e-324f64.to_le_bytes(), "5e-324");
        check(Form::Unsigned, of(ColumnKind::YEAR, 0), &[0], "0");
        check(Form::Unsigned, of(ColumnKind::YEAR, 0), &[101], "2001");
        check(Form::Unsigned, of(ColumnKind::BIT, 0x0101), &[1, 2], "258");
        check(Form::Unsigned, of(ColumnKind::ENUM, 0xf702), &[1, 2], "513");
        check(Form::Unsigned, of(ColumnKind::SET, 0xf808), &[0xff; 8], "18446744073709551615");
        assert!(
            literal(Form::Approximate, of(ColumnKind::DOUBLE, 8), &f64::NAN.to_le_bytes(), LiteralUse::Store).is_err()
        );
    }

    #[test]
    fn times() {
        check(Form::Time, of(ColumnKind::DATE, 0), &[0, 0, 0], "'0000-00-00'");
        check(Form::Time, of(ColumnKind::TIMESTAMP2, 0), &[0, 0, 0, 0], "'0000-00-00 00:00:00'");
        check(Form::Time, of(ColumnKind::TIMESTAMP2, 2), &[0x5f, 0x5e, 0x10, 0, 12], "'2020-09-13 12:26:40.12'");
        check(Form::Time, of(ColumnKind::TIME2, 2), &[0x7f, 0xff, 0xff, 0xf6], "'-00:00:00.10'");
    }

    #[test]
    fn strings_are_bytes() {
        check(text("utf8mb4"), of(ColumnKind::VARCHAR, 80), b"a'b\\c\0d", "'a\\'b\\\\c\\0d'");
        check(text("gbk"), of(ColumnKind::VARCHAR, 80), b"ab", "_gbk'ab'");
        check(Form::Bytes, of(ColumnKind::BLOB, 2), b"x\0", "_binary'x\\0'");
        let find = literal(text("latin1"), of(ColumnKind::VARCHAR, 80), b"a", LiteralUse::Find);
        assert_eq!(find.as_deref(), Ok("_latin1'a' COLLATE latin1_bin"));
        let compare = literal(Form::FixedBytes { len: 3 }, of(ColumnKind::STRING, 0xfe03), b"a", LiteralUse::Compare);
        assert_eq!(compare.as_deref(), Ok("_binary'a\\0\\0'"));
        assert!(literal(text("utf8mb4"), of(ColumnKind::VARCHAR, 80), &[0xff], LiteralUse::Store).is_err());
    }

    #[test]
    fn null_where_the_target_has_none() {
        let mut out = Vec::new();
        let logged = of(ColumnKind::LONG, 0);
        assert!(put(&column(Form::Number), &logged, None, LiteralUse::Store, &mut out).is_err());
        assert!(put(&column(Form::Number), &logged, None, LiteralUse::Compare, &mut out).is_ok());
        assert_eq!(out, b"NULL");
    }

    #[test]
    fn addresses_and_uuids() {
        let kind = || of(ColumnKind::STRING, 0xfe10);
        check(Form::Address { bytes: 16 }, kind(), &[0x20, 1], "'2001::'");
        check(Form::Address { bytes: 4 }, kind(), &[10, 0, 0, 1], "'10.0.0.1'");
        for row in ["426655440000a45612d3e89b123e4567", "123e4567e89b12d3a45642665544"] {
            check(Form::Uuid, kind(), &hex::decode(row).unwrap(), "'123e4567-e89b-12d3-a456-426655440000'");
        }
        check(Form::Uuid, kind(), &[], "'00000000-0000-0000-0000-000000000000'");
        assert!(literal(Form::Uuid, kind(), &[1], LiteralUse::Store).is_err());
        // Version 7 stays as it is.
        let row = hex::decode("0190a1b2c3d47e5f8a6b0c1d2e3f4a5b").unwrap();
        check(Form::Uuid, kind(), &row, "'0190a1b2-c3d4-7e5f-8a6b-0c1d2e3f4a5b'");
    }
}
