//! Where an event is in its source: the name of the source's binary log file and the byte in it.
//!
//! It never names a file on this machine: that is a [`Place`](crate::Place).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A position in the source's binary logs, ordered by the number that the file name ends in, then by offset.
///
/// Positions of two sources, or of one source before and after RESET, do not compare meaningfully.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogPosition {
    /// The source's name of the file, as in `mysql-bin.000042`.
    pub file: Arc<str>,
    /// Bytes from the start of that file.
    pub offset: u64,
}

impl LogPosition {
    /// A position from its parts.
    pub fn new(file: impl Into<Arc<str>>, offset: u64) -> Self {
        LogPosition { file: file.into(), offset }
    }

    /// The number that the file name ends in.
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
        if self.file == other.file {
            return self.offset.cmp(&other.offset);
        }
        // By number, not by text: 1000000 follows 999999. The name last, so that only equal values are equal.
        (self.file_number().cmp(&other.file_number()))
            .then_with(|| self.offset.cmp(&other.offset))
            .then_with(|| self.file.cmp(&other.file))
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// Splits `mysql-bin.000042` in its base and its number; none when the name does not end in a dot and digits.
pub fn split_name(name: &str) -> Option<(&str, u64)> {
    let (base, digits) = name.rsplit_once('.')?;
    if base.is_empty() || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((base, digits.parse().ok()?))
}

/// The number that a log's name ends in.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    split_name(name).map(|(_, number)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order() {
        let check = |less: (&str, u64), more: (&str, u64)| {
            assert!(LogPosition::new(less.0, less.1) < LogPosition::new(more.0, more.1), "{less:?} < {more:?}");
        };
        check(("bin.000001", 9), ("bin.000001", 10));
        check(("bin.000001", 900), ("bin.000002", 4));
        check(("bin.999999", 900), ("bin.1000000", 4));
        check(("a.b.000009", 900), ("a.b.000010", 4));
        check(("nothing", 900), ("bin.000001", 4));
    }
}
