//! A place in the source's binary log.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// File name as the source calls it, and a byte offset in it.
///
/// Ordered by the number at the end of the name first (`binlog.000009` < `binlog.000010`, and
/// `binlog.999999` < `binlog.1000000`), then by offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogPosition {
    pub file: Arc<str>,
    pub offset: u64,
}

impl LogPosition {
    pub fn new(file: &str, offset: u64) -> Self {
        Self { file: file.into(), offset }
    }

    /// What the servers put before the last dot of a log's name: the same for all logs of a server.
    pub fn base_name(&self) -> &str {
        self.file.rsplit_once('.').map_or(&*self.file, |(base, _)| base)
    }

    /// The number that the servers put behind the last dot of a log's name.
    pub fn file_number(&self) -> Option<u64> {
        self.file.rsplit_once('.').and_then(|(_, number)| number.parse().ok())
    }
}

impl PartialOrd for LogPosition {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LogPosition {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Nearly always: no number has to be read then.
        if Arc::ptr_eq(&self.file, &other.file) || self.file == other.file {
            return self.offset.cmp(&other.offset);
        }
        (self.file_number(), &self.file, self.offset).cmp(&(other.file_number(), &other.file, other.offset))
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

#[derive(Debug, thiserror::Error)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_number_then_offset() {
        let position = |text: &str| text.parse::<LogPosition>().unwrap();
        assert!(position("b.000009:900") < position("b.000010:4"));
        assert!(position("b.999999:4") < position("b.1000000:4"));
        assert!(position("b.000001:4") < position("b.000001:5"));
        assert!("b.000001".parse::<LogPosition>().is_err());
        assert!(":4".parse::<LogPosition>().is_err());
    }
}
