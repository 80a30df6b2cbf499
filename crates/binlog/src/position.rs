//! A place in a server's binary logs: the name of the file and the byte in it. The only such type of the workspace.
//!
//! It never names a file on this machine, and never opens one.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A file of the source, under the source's name for it, and an offset in that file.
///
/// # Order
/// The order is that of a source's log, which is the same for the relay log, for purging and for the low water:
///
/// 1. By the number that the name ends in, as a number: `binlog.999999` is before `binlog.1000000`.
///    Names without a number are before all others.
/// 2. Two names with the same number: by offset. The names differ when a copy of a file was renamed.
/// 3. Two names without a number: by name, then by offset. A series of such files is read in the order of their names.
///
/// Positions of two sources do not compare meaningfully. Neither do positions of one source before and after a `RESET`,
/// or before and after a change of `log_bin`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogPosition {
    /// The source's name of the file, as in `mysql-bin.000042`.
    pub file: Arc<str>,
    /// Bytes from the start of that file.
    pub offset: u64,
}

impl LogPosition {
    /// A position from its parts.
    pub fn new(file: impl Into<Arc<str>>, offset: u64) -> Self {
        Self { file: file.into(), offset }
    }

    /// The name without its last dot and what follows it: the same for all logs of a server.
    pub fn base_name(&self) -> &str {
        self.file.rsplit_once('.').map_or(&*self.file, |(base, _)| base)
    }

    /// The number that the name ends in.
    pub fn file_number(&self) -> Option<u64> {
        file_number(&self.file)
    }
}

impl PartialOrd for LogPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LogPosition {
    fn cmp(&self, other: &Self) -> Ordering {
        // The usual case is the same name: no number has to be parsed then.
        if Arc::ptr_eq(&self.file, &other.file) || self.file == other.file {
            return self.offset.cmp(&other.offset);
        }
        let (number, others) = (self.file_number(), other.file_number());
        let by_offset = self.offset.cmp(&other.offset);
        let by_name = self.file.cmp(&other.file);
        let within = if number.is_some() { by_offset.then(by_name) } else { by_name.then(by_offset) };
        number.cmp(&others).then(within)
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// A text that is not `FILE:OFFSET`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a log position: expected FILE:OFFSET, such as binlog.000007:4")]
pub struct BadPosition(pub String);

impl FromStr for LogPosition {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadPosition(text.to_owned());
        let (file, offset) = text.rsplit_once(':').ok_or_else(bad)?;
        if file.is_empty() {
            return Err(bad());
        }
        Ok(Self::new(file, offset.parse().map_err(|_| bad())?))
    }
}

/// Splits `mysql-bin.000042` in its base and its number; none when the name does not end in a dot and digits.
pub fn split_name(name: &str) -> Option<(&str, u64)> {
    let (base, digits) = name.rsplit_once('.')?;
    if base.is_empty() || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((base, digits.parse().ok()?))
}

/// The number that a log's name ends in.
pub fn file_number(name: &str) -> Option<u64> {
    split_name(name).map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str) -> LogPosition {
        text.parse().expect("a position")
    }

    #[test]
    fn order() {
        let check = |less: &str, more: &str| {
            assert!(position(less) < position(more), "{less} < {more}");
            assert!(position(more) > position(less), "{more} > {less}");
        };
        check("bin.000001:9", "bin.000001:10");
        check("bin.000001:900", "bin.000002:4");
        check("bin.000009:900", "bin.000010:4");
        check("bin.999999:900", "bin.1000000:4");
        check("a.b.000009:900", "a.b.000010:4");
        // A renamed copy keeps its number and its offsets.
        check("bin.000003:100", "a-copy.000003:200");
        check("a-copy.000003:100", "bin.000003:200");
        check("a-copy.000003:100", "bin.000003:100");
        // Files whose names have no number follow each other by name.
        check("one:900", "two:4");
        check("one.log:900", "two.log:4");
        check("one.+5:900", "two.+4:4");
        check("nothing:900", "bin.000001:4");
    }

    /// Any two different positions have one order, and it holds over three.
    #[test]
    fn order_is_total() {
        let all: Vec<LogPosition> = ["a", "b", "a.000001", "b.000001", "a.1", "b.2", "c.x"]
            .iter()
            .flat_map(|file| [4, 5, 900].map(|offset| LogPosition::new(*file, offset)))
            .collect();
        for a in &all {
            for b in &all {
                assert_eq!(a.cmp(b), b.cmp(a).reverse(), "{a} {b}");
                assert_eq!(a.cmp(b) == Ordering::Equal, a == b, "{a} {b}");
                for c in &all {
                    assert!(!(a < b && b < c) || a < c, "{a} < {b} < {c}");
                }
            }
        }
    }

    #[test]
    fn text() {
        assert_eq!(position("bin.000001:4").to_string(), "bin.000001:4");
        assert!("b.000001".parse::<LogPosition>().is_err());
        assert!(":4".parse::<LogPosition>().is_err());
        assert!("b.000001:x".parse::<LogPosition>().is_err());
    }
}
