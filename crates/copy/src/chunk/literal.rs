//! A value that was read → a literal that stores the same value, on a session with `utf8mb4` and a mode that takes every value.

/// How a column's values are read and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Whole numbers, DECIMAL, YEAR; BIT, ENUM and SET by their numbers.
    Number,
    /// FLOAT, DOUBLE.
    Approximate,
    /// Characters of this character set.
    Text(String),
    /// Binary strings, geometry, vectors.
    Bytes,
    /// DATE, TIME, DATETIME, TIMESTAMP, and types whose text the server reads (INET6, UUID).
    Plain,
    /// MySQL's.
    Json,
}

impl ValueKind {
    /// By the words of `information_schema.COLUMNS`.
    pub fn of(data_type: &str, charset: &str) -> Self {
        match data_type {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" | "bit" | "enum" | "set" => {
                Self::Number
            }
            "float" | "double" => Self::Approximate,
            "json" => Self::Json,
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" if !charset.is_empty() => {
                Self::Text(charset.to_owned())
            }
            "date" | "time" | "datetime" | "timestamp" | "inet4" | "inet6" | "uuid" => Self::Plain,
            _ => Self::Bytes,
        }
    }

    /// The expression that reads such a column, whose quoted name this is.
    pub fn expression(&self, data_type: &str, name: &str) -> String {
        match self {
            // As text a FLOAT has six digits.
            Self::Approximate => format!("{name}*1e0"),
            Self::Number if matches!(data_type, "bit" | "enum" | "set") => format!("CAST({name} AS UNSIGNED)"),
            _ => name.to_owned(),
        }
    }
}

/// `None`: NULL.
pub fn put_literal(kind: &ValueKind, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else {
        out.extend_from_slice(b"NULL");
        return;
    };
    match kind {
        ValueKind::Number if is_number(value) => out.extend_from_slice(value),
        ValueKind::Approximate if is_number(value) => {
            out.extend_from_slice(value);
            // Without it -0 would be a whole number, which has no sign.
            if !value.iter().any(|byte| matches!(byte, b'e' | b'E')) {
                out.extend_from_slice(b"e0");
            }
        }
        ValueKind::Text(charset) => put_characters(charset, value, out),
        ValueKind::Json => put_quoted("_utf8mb4", value, out),
        ValueKind::Bytes => put_quoted("_binary", value, out),
        ValueKind::Plain | ValueKind::Number | ValueKind::Approximate => put_quoted("", value, out),
    }
}

/// The same in plain characters, for a [`KeyBound`](super::KeyBound).
pub fn key_literal(kind: &ValueKind, value: &[u8]) -> String {
    let mut out = Vec::new();
    match kind {
        ValueKind::Text(charset) => put_hexadecimal(&format!("_{}", introduced(charset)), value, &mut out),
        ValueKind::Bytes => put_hexadecimal("_binary", value, &mut out),
        ValueKind::Json => put_hexadecimal("_utf8mb4", value, &mut out),
        _ => put_literal(kind, Some(value), &mut out),
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// MySQL warns of the other names.
fn introduced(charset: &str) -> &str {
    if matches!(charset, "utf8mb3" | "utf8") { "utf8mb4" } else { charset }
}

fn put_hexadecimal(introducer: &str, value: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(introducer.as_bytes());
    out.extend_from_slice(b" x'");
    for byte in value {
        out.extend([byte >> 4, byte & 15].iter().filter_map(|digit| DIGITS.get(usize::from(*digit))));
    }
    out.push(b'\'');
}

fn is_number(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
}

/// In some character sets the second byte of a character may be a backslash or a quote.
fn put_characters(charset: &str, value: &[u8], out: &mut Vec<u8>) {
    let is_plain = matches!(
        charset,
        "utf8mb4" | "utf8mb3" | "utf8" | "ascii" | "latin1" | "latin2" | "latin5" | "latin7" | "cp1250" | "cp1251"
    );
    let introducer = format!("_{}", introduced(charset));
    if is_plain || value.is_ascii() && !matches!(charset, "ucs2" | "utf16" | "utf16le" | "utf32") {
        return put_quoted(&introducer, value, out);
    }
    put_hexadecimal(&introducer, value, out);
}

fn put_quoted(introducer: &str, value: &[u8], out: &mut Vec<u8>) {
    out.reserve(introducer.len() + value.len() + 2);
    out.extend_from_slice(introducer.as_bytes());
    out.push(b'\'');
    let mut remainder = value;
    while let Some(at) = remainder.iter().position(|byte| matches!(byte, 0 | b'\'' | b'\\')) {
        let (plain, special) = remainder.split_at(at);
        out.extend_from_slice(plain);
        let Some((byte, behind)) = special.split_first() else { break };
        out.push(b'\\');
        out.push(if *byte == 0 { b'0' } else { *byte });
        remainder = behind;
    }
    out.extend_from_slice(remainder);
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(data_type: &str, charset: &str, value: &[u8], expected: &str) {
        let mut out = Vec::new();
        put_literal(&ValueKind::of(data_type, charset), Some(value), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{data_type}");
    }

    #[test]
    fn literals() {
        check("int", "", b"-7", "-7");
        check("decimal", "", b"-0.50", "-0.50");
        check("float", "", b"-0", "-0e0");
        check("double", "", b"1.5e300", "1.5e300");
        check("varchar", "utf8mb4", b"a'b\\\0", "_utf8mb4'a\\'b\\\\\\0'");
        check("varchar", "latin1", b"\xe9'", "_latin1'\u{fffd}\\''");
        check("varchar", "sjis", b"\x83\x5c", "_sjis x'835c'");
        check("char", "utf16", b"\0a", "_utf16 x'0061'");
        check("blob", "", b"x\0", "_binary'x\\0'");
        check("point", "", b"\0", "_binary'\\0'");
        check("datetime", "", b"0000-00-00 00:00:00", "'0000-00-00 00:00:00'");
        check("json", "", b"{\"a\": 1}", "_utf8mb4'{\"a\": 1}'");
        check("int", "", b"1 OR 1", "'1 OR 1'");
        check("text", "utf8mb3", b"a", "_utf8mb4'a'");
        assert_eq!(key_literal(&ValueKind::of("varchar", "utf8mb3"), "\u{e9}".as_bytes()), "_utf8mb4 x'c3a9'");
        assert_eq!(key_literal(&ValueKind::of("binary", ""), b"\xff"), "_binary x'ff'");
        assert_eq!(key_literal(&ValueKind::of("int", ""), b"7"), "7");
        let mut out = Vec::new();
        put_literal(&ValueKind::Bytes, None, &mut out);
        assert_eq!(out, b"NULL");
    }

    #[test]
    fn expressions() {
        let of = |data_type: &str| ValueKind::of(data_type, "").expression(data_type, "`c`");
        assert_eq!(of("float"), "`c`*1e0");
        assert_eq!(of("set"), "CAST(`c` AS UNSIGNED)");
        assert_eq!(of("bigint"), "`c`");
    }
}
