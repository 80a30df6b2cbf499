//! How a log is written.

use engine::tags::{DependencyTracking, HISTORY_HASHES};

/// How the log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogParams {
    /// As `SELECT VERSION()` says it: MySQL 8.0 or later.
    pub server_version: String,
    pub server_id: u32,
    /// The server's UUID, the first half of every GTID.
    pub uuid: [u8; 16],
    /// A file that has become as large ends after the transaction at hand (`max_binlog_size`).
    pub file_bytes_max: u64,
    /// How the source finds out what may run in parallel.
    pub tracking: DependencyTracking,
    /// Rows that it remembers, `binlog_transaction_dependency_history_size`.
    pub history_rows_max: usize,
    /// Files are called this, a dot, and their number in six digits.
    pub base_name: String,
}

impl Default for LogParams {
    fn default() -> LogParams {
        LogParams {
            server_version: "8.0.36".to_owned(),
            server_id: 1,
            uuid: *b"\x4e\xdd\x1e\x00\x5e\xed\x11\xf0\x8a\x5e\x02\x42\xac\x11\x00\x02",
            file_bytes_max: 16 << 20,
            tracking: DependencyTracking::CommitOrder,
            history_rows_max: HISTORY_HASHES,
            base_name: "binlog".to_owned(),
        }
    }
}

impl LogParams {
    /// `8.0.36` → 80036, as GTID events say it.
    pub(super) fn server_version_id(&self) -> u32 {
        let number = |part: &str| part.chars().map_while(|c| c.to_digit(10)).fold(0, |n, digit| n * 10 + digit);
        self.server_version.split('.').take(3).fold(0, |id, part| id * 100 + number(part) % 100)
    }

    pub(super) fn file_name(&self, number: u64) -> String {
        format!("{}.{number:06}", self.base_name)
    }
}
