//! MySQL's binary JSON → an expression that makes the same document: its text where that says all, functions where it has values of types that text does
//! not have (dates, decimals, unsigned numbers).
//!
//! Source of the types: MySQL's manual, "The JSON Data Type" (`JSON_TYPE`), and the format in `binlog::json`.

use binlog::json;
use binlog::json_tree::{Element, tree};
use binlog::{Column, ColumnKind, value};

use super::bytes::{LiteralError, put_bytes};

/// Appends the expression, of type JSON.
pub fn put_expression(raw: &[u8], out: &mut Vec<u8>) -> Result<(), LiteralError> {
    let document = tree(raw).map_err(|error| error.to_string())?;
    if says_all(&document) {
        let text = json::to_text(raw).map_err(|error| error.to_string())?;
        put_text(&text, out);
        return Ok(());
    }
    put(&document, out)
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"CAST(");
    put_bytes("_utf8mb4", text.as_bytes(), out);
    out.extend_from_slice(b" AS JSON)");
}

/// Whether the document's text makes the same document.
fn says_all(element: &Element<'_>) -> bool {
    match element {
        Element::Opaque { .. } => false,
        // Text makes a signed number of it where that can be.
        Element::Unsigned(number) => i64::try_from(*number).is_err(),
        Element::Array(elements) => elements.iter().all(says_all),
        Element::Object(members) => members.iter().all(|(_, element)| says_all(element)),
        Element::Null | Element::Bool(_) | Element::Signed(_) | Element::Double(_) | Element::Text(_) => true,
    }
}

fn put(element: &Element<'_>, out: &mut Vec<u8>) -> Result<(), LiteralError> {
    match element {
        Element::Null => put_text("null", out),
        Element::Bool(true) => put_text("true", out),
        Element::Bool(false) => put_text("false", out),
        Element::Signed(number) => put_text(&number.to_string(), out),
        Element::Unsigned(number) => {
            out.extend_from_slice(format!("CAST(CAST({number} AS UNSIGNED) AS JSON)").as_bytes());
        }
        Element::Double(number) => out.extend_from_slice(format!("CAST({number:e} AS JSON)").as_bytes()),
        Element::Text(text) => put_bytes("_utf8mb4", text, out),
        Element::Opaque { kind, bytes } => put_opaque(ColumnKind(*kind), bytes, out)?,
        Element::Array(elements) => {
            out.extend_from_slice(b"JSON_ARRAY(");
            for (index, element) in elements.iter().enumerate() {
                separate(index, out);
                put(element, out)?;
            }
            out.push(b')');
        }
        Element::Object(members) => {
            out.extend_from_slice(b"JSON_OBJECT(");
            for (index, (key, element)) in members.iter().enumerate() {
                separate(index, out);
                put_bytes("_utf8mb4", key, out);
                out.push(b',');
                put(element, out)?;
            }
            out.push(b')');
        }
    }
    Ok(())
}

fn separate(index: usize, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b',');
    }
}

fn put_opaque(kind: ColumnKind, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), LiteralError> {
    let unknown = || format!("a JSON document with a value of the type {kind}, which no expression makes");
    let text = |column: ColumnKind| value::json_temporal(bytes, column).ok_or_else(unknown);
    let expression = match kind {
        ColumnKind::NEWDECIMAL => {
            let (&[precision, scale], digits) = bytes.split_first_chunk::<2>().ok_or_else(unknown)?;
            let column = Column::new(ColumnKind::NEWDECIMAL, u16::from(precision) << 8 | u16::from(scale), false);
            let number = value::display(&column, digits, false);
            format!("CAST({number} AS DECIMAL({precision},{scale}))")
        }
        // Bytes, as a literal is.
        ColumnKind::VARCHAR | ColumnKind::VAR_STRING => {
            out.extend_from_slice(b"JSON_EXTRACT(JSON_ARRAY(");
            put_bytes("_binary", bytes, out);
            out.extend_from_slice(b"),'$[0]')");
            return Ok(());
        }
        ColumnKind::DATE => format!("CAST('{}' AS DATE)", text(kind)?),
        ColumnKind::TIME => format!("CAST('{}' AS TIME(6))", text(kind)?),
        ColumnKind::DATETIME => format!("CAST('{}' AS DATETIME(6))", text(kind)?),
        _ => return Err(unknown()),
    };
    out.extend_from_slice(format!("CAST({expression} AS JSON)").as_bytes());
    Ok(())
}
