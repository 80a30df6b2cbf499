//! Values that two servers print differently, in one form. Pure.

use serde_json::Value;

use super::canonical::{FetchedKind, TINY_SHIFT};

pub fn canonical(kind: FetchedKind, text: &[u8]) -> Vec<u8> {
    match kind {
        FetchedKind::Document => document(text),
        FetchedKind::Real => real(text).map_or_else(|| text.to_vec(), |value| value.to_bits().to_string().into_bytes()),
    }
}

/// The number that [`canonical::real`](super::canonical) has printed.
pub fn real(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let value: f64 = match text.strip_suffix('b') {
        Some(scaled) => scaled.parse::<f64>().ok()? * 2_f64.powi(-TINY_SHIFT),
        None => text.parse().ok()?,
    };
    Some(if is_negative { -value } else { value })
}

/// A JSON document's canonical text: the order of members and the spelling of numbers do not count. What is no JSON stays as it is.
fn document(text: &[u8]) -> Vec<u8> {
    match serde_json::from_slice::<Value>(text) {
        Ok(value) => {
            let mut out = Vec::with_capacity(text.len());
            write(&value, &mut out);
            out
        }
        Err(_) => text.to_vec(),
    }
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write(item, out);
                out.push(b',');
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            out.push(b'{');
            for (name, item) in sorted {
                out.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
                out.push(b':');
                write(item, out);
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Number(number) => out.extend_from_slice(number_text(number).as_bytes()),
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
}

/// 1.0 and 1 are one number; MySQL prints a double that is whole as 1.0.
fn number_text(number: &serde_json::Number) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    match number.as_f64() {
        Some(value) if value.fract() == 0.0 && value.abs() < EXACT => format!("{value:.0}"),
        Some(value) => format!("{value:e}"),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_documents() {
        let check = |one: &str, other: &str, equal: bool| {
            assert_eq!(document(one.as_bytes()) == document(other.as_bytes()), equal, "{one} {other}");
        };
        check(r#"{"b": 1, "aa": [1.0, 2e3]}"#, r#"{"aa":[1,2000],"b":1}"#, true);
        check(r#"{"a": "\u0041"}"#, r#"{"a":"A"}"#, true);
        check("18446744073709551615", "18446744073709551614", false);
        check("0.1", "0.10", true);
        check("[1,2]", "[2,1]", false);
        check("[[1],2]", "[[1,2]]", false);
        check("null", "\"null\"", false);
        check("1", "\"1\"", false);
        check("{\"a\":1}", "{\"a\":1", false);
    }

    #[test]
    fn numbers() {
        let check = |text: &str, expected: f64| assert_eq!(real(text.as_bytes()), Some(expected), "{text}");
        check("1.7976931348623157e308", f64::MAX);
        check("-1.5", -1.5);
        check("0b", 0.0);
        // The smallest of all, as MySQL prints it.
        check(&format!("{}b", 5e-324_f64 * 2_f64.powi(TINY_SHIFT)), 5e-324);
        check(&format!("-{}b", f64::MIN_POSITIVE * 2_f64.powi(TINY_SHIFT)), -f64::MIN_POSITIVE);
        assert_eq!(real(b"x"), None);
    }
}
