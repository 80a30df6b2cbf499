//! What a workload is like: numbers only.

/// What the workload is like. Values of 0 where at least one is needed count as 1, shares above 100 as 100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    pub seed: u64,
    /// Transactions of the sessions, all in all; those that create and fill the tables come before them.
    pub transactions: u64,
    pub sessions: u32,
    /// Schemas with five tables each; session n works in schema n modulo this.
    pub schemas: u16,
    /// Rows in each table of accounts.
    pub accounts: u64,
    /// Share of transactions that choose their rows by Zipf's law, and of which a quarter hit a counter.
    pub hot_percent: u8,
    /// Share of transactions with dozens of rows and a long time between statements.
    pub long_percent: u8,
    /// Of the engine's log and of the binary log, each.
    pub fsync_us: u64,
    /// Mean time of a statement.
    pub statement_us: u64,
    /// Mean time between transactions of a session.
    pub think_us: u64,
    /// Microseconds since 1970 at which it all begins.
    pub start_us: u64,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            seed: 1,
            transactions: 20_000,
            sessions: 32,
            schemas: 1,
            accounts: 20_000,
            hot_percent: 20,
            long_percent: 1,
            fsync_us: 1_000,
            statement_us: 200,
            think_us: 2_000,
            // 2026-01-01 00:00:00 UTC
            start_us: 1_767_225_600_000_000,
        }
    }
}
