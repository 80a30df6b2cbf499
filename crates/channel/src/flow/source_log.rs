//! The source's files with their lengths, as the source said: how much of its log a channel has not received. For forecasts; nobody decides by it.

use binlog::LogPosition;

/// The source's log at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLog(Vec<LogPosition>);

impl SourceLog {
    /// Files with their lengths, oldest first.
    pub fn new(files: Vec<LogPosition>) -> Self {
        Self(files)
    }

    /// Bytes of the log behind `at`; 0 behind its end. `None`: it has not this file.
    pub fn bytes_after(&self, at: &LogPosition) -> Option<u64> {
        let Some(first) = self.0.iter().position(|file| file.file == at.file) else {
            let last = self.0.last()?.file_number();
            // It was begun since.
            return (at.file_number() > last).then_some(0);
        };
        let left: u64 = self.0.get(first..)?.iter().map(|file| file.offset).sum();
        Some(left.saturating_sub(at.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_several_files() {
        let of = |files: &[(&str, u64)]| {
            SourceLog(files.iter().map(|(file, length)| LogPosition::new(*file, *length)).collect())
        };
        let log = of(&[("b.000001", 100), ("b.000002", 200), ("b.000003", 50)]);
        let check = |file, offset, bytes| assert_eq!(log.bytes_after(&LogPosition::new(file, offset)), bytes);
        check("b.000003", 50, Some(0));
        check("b.000003", 90, Some(0));
        check("b.000001", 60, Some(40 + 200 + 50));
        check("b.000004", 4, Some(0));
        check("b.000000", 4, None);
        assert_eq!(of(&[]).bytes_after(&LogPosition::new("b.000001", 4)), None);
    }
}
