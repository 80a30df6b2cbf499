//! Prepared statements: the values are put into the text, which is then answered like any other statement.

use std::collections::BTreeMap;

use wire::server::ServerError;

/// Statements of one connection.
const STATEMENTS_MAX: usize = 100;
/// Their texts together.
const BYTES_MAX: usize = 1 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Statements {
    last: u32,
    all: BTreeMap<u32, Statement>,
}

#[derive(Debug, Default)]
struct Statement {
    /// What stands between the values.
    parts: Vec<String>,
    /// As they were sent last.
    types: Vec<[u8; 2]>,
}

impl Statements {
    /// Prepares a statement. Returns its number, and the number of its parameters.
    pub(super) fn prepare(&mut self, sql: &[u8]) -> Result<(u32, u16), ServerError> {
        let bytes: usize = self.all.values().flat_map(|statement| &statement.parts).map(String::len).sum();
        if self.all.len() >= STATEMENTS_MAX || bytes + sql.len() > BYTES_MAX {
            let text =
                format!("Can't create more than max_prepared_stmt_count statements (current value: {STATEMENTS_MAX})");
            return Err(ServerError::new(1461, "42000", text));
        }
        let sql = std::str::from_utf8(sql)
            .map_err(|_| ServerError::new(1300, "HY000", "Invalid utf8mb4 character string"))?;
        let parts = parts(sql);
        let many = || ServerError::new(1390, "HY000", "Prepared statement contains too many placeholders");
        let count = u16::try_from(parts.len().saturating_sub(1)).map_err(|_| many())?;
        self.last = self.last.wrapping_add(1).max(1);
        self.all.insert(self.last, Statement { parts, types: Vec::new() });
        Ok((self.last, count))
    }

    /// The text with these values: what follows the flags and the count of a request.
    pub(super) fn text(&mut self, number: u32, values: &[u8]) -> Result<String, ServerError> {
        let unknown = || {
            ServerError::new(
                1243,
                "HY000",
                format!("Unknown prepared statement handler ({number}) given to mysqld_stmt_execute"),
            )
        };
        let statement = self.all.get_mut(&number).ok_or_else(unknown)?;
        let wrong = || ServerError::new(1210, "HY000", "Incorrect arguments to mysqld_stmt_execute");
        statement.with(values).ok_or_else(wrong)
    }

    pub(super) fn close(&mut self, number: u32) {
        self.all.remove(&number);
    }

    pub(super) fn forget(&mut self) {
        self.all.clear();
    }
}

/// Cut at each `?` that stands for a value.
fn parts(sql: &str) -> Vec<String> {
    let (mut parts, mut part, mut quote) = (Vec::new(), String::new(), None);
    let mut chars = sql.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('?', None) => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            ('\'' | '"' | '`', None) => quote = Some(c),
            ('\\', Some('\'' | '"')) => {
                part.push(c);
                part.extend(chars.next());
                continue;
            }
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    parts
}

impl Statement {
    fn with(&mut self, values: &[u8]) -> Option<String> {
        let count = self.parts.len().saturating_sub(1);
        let mut text = self.parts.first()?.clone();
        if count == 0 {
            return Some(text);
        }
        let (nulls, rest) = values.split_at_checked(count.div_ceil(8))?;
        let (bound, mut rest) = rest.split_first()?;
        if *bound == 1 {
            let (types, values) = rest.split_at_checked(count * 2)?;
            self.types = types.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).collect();
            rest = values;
        }
        for (at, part) in self.parts.iter().skip(1).enumerate() {
            let is_null = nulls.get(at / 8).is_some_and(|bits| bits >> (at % 8) & 1 == 1);
            let value = if is_null { "NULL".to_owned() } else { literal(*self.types.get(at)?, &mut rest)? };
            text.push_str(&value);
            text.push_str(part);
        }
        Some(text)
    }
}

/// A value in the binary protocol, as a literal. `None`: it is not all there, or of a kind that no known client sends.
fn literal([kind, flags]: [u8; 2], rest: &mut &[u8]) -> Option<String> {
    let unsigned = flags & 0x80 != 0;
    Some(match kind {
        1 => {
            let byte = take::<1>(rest)?;
            if unsigned { u8::from_le_bytes(byte).to_string() } else { i8::from_le_bytes(byte).to_string() }
        }
        2 | 13 => {
            let bytes = take::<2>(rest)?;
            if unsigned { u16::from_le_bytes(bytes).to_string() } else { i16::from_le_bytes(bytes).to_string() }
        }
        3 | 9 => {
            let bytes = take::<4>(rest)?;
            if unsigned { u32::from_le_bytes(bytes).to_string() } else { i32::from_le_bytes(bytes).to_string() }
        }
        8 => {
            let bytes = take::<8>(rest)?;
            if unsigned { u64::from_le_bytes(bytes).to_string() } else { i64::from_le_bytes(bytes).to_string() }
        }
        4 => f32::from_le_bytes(take(rest)?).to_string(),
        5 => f64::from_le_bytes(take(rest)?).to_string(),
        6 => "NULL".to_owned(),
        15 | 246 | 249..=254 => {
            let length = length(rest)?;
            let (text, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            let text = std::str::from_utf8(text).ok()?;
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
        }
        _ => return None,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (value, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*value)
}

/// In front of a text.
fn length(rest: &mut &[u8]) -> Option<usize> {
    match take::<1>(rest)? {
        [short @ 0..=250] => Some(short.into()),
        [252] => take::<2>(rest).map(|bytes| u16::from_le_bytes(bytes).into()),
        [253] => take::<3>(rest).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]) as usize),
        [254] => take::<8>(rest).and_then(|bytes| u64::from_le_bytes(bytes).try_into().ok()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn values_become_literals() {
        let mut statements = Statements::default();
        let (number, count) = statements.prepare(b"SELECT '?', `?` FROM t WHERE a=? AND b=? AND c = ?").unwrap();
        assert_eq!(count, 3);
        let mut values = vec![0b100, 1, 0xfe, 0, 3, 0, 6, 0];
        values.extend_from_slice(b"\x05a'b\\c");
        values.extend_from_slice(&(-7_i32).to_le_bytes());
        let text = "SELECT '?', `?` FROM t WHERE a='a''b\\\\c' AND b=-7 AND c = NULL";
        assert_eq!(statements.text(number, &values).unwrap(), text);
        // The types stay from before.
        values.drain(1..8);
        values.insert(1, 0);
        assert_eq!(statements.text(number, &values).unwrap(), text);
        assert_eq!(statements.text(number, &values[..3]).unwrap_err().code, 1210);
        statements.close(number);
        assert_eq!(statements.text(number, &values).unwrap_err().code, 1243);
    }

    #[test]
    fn there_is_a_limit() {
        let mut statements = Statements::default();
        for _ in 0..STATEMENTS_MAX {
            assert_eq!(statements.prepare(b"SELECT 1").unwrap().1, 0);
        }
        assert_eq!(statements.prepare(b"SELECT 1").unwrap_err().code, 1461);
        statements.forget();
        assert!(statements.prepare(b"SELECT 1").is_ok());
        assert_eq!(statements.prepare(&vec![b' '; BYTES_MAX]).unwrap_err().code, 1461);
    }

    #[test]
    fn any_bytes() {
        let mut random = rand::rngs::StdRng::seed_from_u64(48);
        let mut statements = Statements::default();
        let (number, _) = statements.prepare(b"SELECT ?, ?, ?").unwrap();
        for _ in 0..2_000 {
            let mut bytes = vec![0; random.random_range(0..60)];
            random.fill(&mut bytes[..]);
            let _ = statements.text(number, &bytes);
        }
    }
}
