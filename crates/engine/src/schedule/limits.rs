//! How many transactions a group may hold.
//!
//! What a replica pays for is per transaction and per statement, not per row. So the more it lags, the more
//! transactions share a commit. When it has caught up, a group is what came during the commit before it: lag does not pay for
//! throughput.

use crate::transaction::Transaction;

/// `--grouping`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// One target transaction for each of the source's.
    Off,
    /// As many as wait, up to the limits.
    Auto,
    /// At most this many.
    UpTo(usize),
}

/// The most that share a target transaction with `--grouping auto`. Larger groups share more: what a commit costs, and changes of rows that
/// are changed again and again. Beyond this little is gained; what readers of the target see moves on a group at a time.
pub const TRANSACTIONS_MAX: usize = 10_000;
/// Where rows are applied slowly a group holds fewer, see [`super::pace`].
pub const ROWS_MAX: usize = 40_000;
const BYTES_MAX: u64 = 8 << 20;
/// The most transactions that share a packet where each commits by itself.
pub const PACKET_MAX: usize = 16;
/// In the source's order only smaller ones do: others are better applied ahead of their turn, beside the commits before them.
const PACKET_ROWS_MAX: usize = 8;
const PACKET_BYTES_MAX: u64 = 16 << 10;

/// The most that one group may hold. The first transaction is always taken.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub transactions_max: usize,
    /// Where statements begin the group; follows how long these took, too.
    pub statements_max: usize,
    /// Bounds the time that locks are held on the target; follows how long that was, see [`super::pace`].
    pub rows_max: usize,
    pub bytes_max: u64,
    /// What a group takes at least, in rows or in bytes, that can not commit at once (preserved order); twice as much for each group that
    /// waits already. Less is left in the queue to become more, see [`super::Scheduler`].
    pub ahead_rows_min: usize,
    pub ahead_bytes_min: u64,
    /// Transactions that share a packet where each commits by itself ([`super::Commits::Each`]), in the source's order; follows how
    /// long they take, see [`super::pace`].
    pub packet_max: usize,
}

impl Limits {
    pub fn new(grouping: Grouping) -> Self {
        let transactions_max = match grouping {
            Grouping::Off => 1,
            Grouping::Auto => TRANSACTIONS_MAX,
            Grouping::UpTo(most) => most.max(1),
        };
        Self {
            transactions_max,
            statements_max: transactions_max,
            rows_max: ROWS_MAX,
            bytes_max: BYTES_MAX,
            ahead_rows_min: 32,
            ahead_bytes_min: 64 << 10,
            packet_max: PACKET_MAX,
        }
    }
}

/// Counts what a group that is being formed has taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupSize {
    pub transactions: usize,
    pub rows: usize,
    pub bytes: u64,
}

/// Whether its commit is what a transaction mostly costs, so that it gains more from sharing a packet than from being applied ahead of its turn.
pub fn fits_packet(transaction: &Transaction) -> bool {
    transaction.write_set.rows.len() <= PACKET_ROWS_MAX && transaction.bytes <= PACKET_BYTES_MAX
}

impl GroupSize {
    pub fn has_room(&self, transaction: &Transaction, limits: &Limits) -> bool {
        self.transactions == 0
            || (self.transactions < limits.transactions_max
                && self.rows + transaction.write_set.rows.len() <= limits.rows_max
                && self.bytes + transaction.bytes <= limits.bytes_max)
    }

    /// Whether any other transaction may have room.
    pub fn may_grow(&self, limits: &Limits) -> bool {
        self.transactions < limits.transactions_max && self.rows < limits.rows_max && self.bytes < limits.bytes_max
    }

    /// Whether it is worth applying before it can be committed. `in_line`: groups, at least one, whose commits come before it.
    pub fn is_worth_ahead(&self, limits: &Limits, in_line: usize) -> bool {
        let times = 1 << in_line.clamp(1, 32).saturating_sub(1);
        self.rows as u64 >= (limits.ahead_rows_min as u64).saturating_mul(times)
            || self.bytes >= limits.ahead_bytes_min.saturating_mul(times)
    }

    pub fn add(&mut self, transaction: &Transaction) {
        self.transactions += 1;
        self.rows += transaction.write_set.rows.len();
        self.bytes += transaction.bytes;
    }
}
