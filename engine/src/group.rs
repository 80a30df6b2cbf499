//! Consecutive transactions that are applied as one target transaction, and how many of them.
//!
//! What a replica pays for is per transaction and per statement, not per row: so the more it lags, the more
//! transactions share a commit. When it has caught up, a group is what came during the commit before it: lag does not pay for
//! throughput.

use std::sync::Arc;

use crate::Seq;
use crate::progress::{Mark, Marker};
use crate::transaction::Transaction;

/// Number of a group within a run; later groups have greater numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

#[derive(Debug)]
pub struct Group {
    pub id: GroupId,
    /// Consecutive in `seq`, at least one.
    pub transactions: Vec<Arc<Transaction>>,
    /// For each transaction what has to wait for earlier groups to commit.
    pub held: Vec<Held>,
    /// What the target remembers before the group, so that it can be applied in parts. Its `seq` is what the target has
    /// noted; its GTIDs and position are those right before the group, also when an earlier run with relaxed order has
    /// committed some in between.
    pub before: Mark,
    /// What the target remembers once the group is committed; its GTIDs and position are the source's after the
    /// last transaction. With relaxed order only `seq` counts.
    pub mark: Mark,
    /// Some of its transactions say something of [`Transaction::branch`].
    pub has_branches: bool,
}

impl Group {
    pub fn first(&self) -> Seq {
        self.transactions.first().map_or(0, |t| t.seq)
    }

    pub fn last(&self) -> Seq {
        self.transactions.last().map_or(0, |t| t.seq)
    }

    /// The group without its transactions up to `seq`, which are committed; nothing of it has to wait.
    pub fn after(&self, seq: Seq) -> Self {
        let mut marker = Marker::new(self.before.clone());
        let mut transactions = Vec::new();
        for transaction in &self.transactions {
            if transaction.seq > seq {
                transactions.push(Arc::clone(transaction));
            } else {
                let (gtid, end) = (transaction.gtid.clone(), transaction.end.clone());
                marker.push(transaction.seq, gtid, end, transaction.commit_time_us);
            }
        }
        let held = vec![Held::Nothing; transactions.len()];
        let before = marker.advance(seq).clone();
        let has_branches = self.has_branches;
        Self { id: self.id, transactions, held, before, mark: self.mark.clone(), has_branches }
    }

    /// Its transactions as groups of one, nothing of which has to wait.
    pub fn singles(&self) -> impl Iterator<Item = Group> + '_ {
        self.pieces(1)
    }

    /// The same as groups of at most so many transactions.
    pub fn pieces(&self, transactions_max: usize) -> impl Iterator<Item = Group> + '_ {
        let mut marker = Marker::new(self.before.clone());
        self.transactions.chunks(transactions_max.max(1)).map(move |transactions| {
            let mut last = 0;
            for transaction in transactions {
                let (gtid, end) = (transaction.gtid.clone(), transaction.end.clone());
                marker.push(transaction.seq, gtid, end, transaction.commit_time_us);
                last = transaction.seq;
            }
            Group {
                id: self.id,
                transactions: transactions.to_vec(),
                held: vec![Held::Nothing; transactions.len()],
                before: marker.mark().clone(),
                mark: marker.advance(last).clone(),
                has_branches: self.has_branches,
            }
        })
    }

    pub fn rows(&self) -> usize {
        self.transactions.iter().map(|t| t.write_set.rows.len()).sum()
    }

    /// Rows of a transaction that is too large to hold: it has no write set.
    pub fn spilled_rows(&self) -> u64 {
        self.transactions.iter().map(|t| t.body.spilled_rows()).sum()
    }

    /// It is one transaction that runs alone (DDL, XA, huge, statements), or several, with such a one first, that run in their order
    /// ([`Transaction::takes_others`]): no other group runs beside it.
    pub fn is_barrier(&self) -> bool {
        self.transactions.iter().any(|t| t.barrier.is_some())
    }
}

/// Which rows of a transaction depend on something that was not committed when its group was formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    Nothing,
    /// One flag for each row of the write set.
    Rows(Vec<bool>),
    Everything,
}

impl Held {
    pub fn row(&self, index: usize) -> bool {
        match self {
            Self::Nothing => false,
            Self::Rows(rows) => rows.get(index).copied().unwrap_or(true),
            Self::Everything => true,
        }
    }
}

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
/// Where rows are applied slowly a group holds fewer, see [`crate::pace`].
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
    /// Bounds the time that locks are held on the target; follows how long that was, see [`crate::pace`].
    pub rows_max: usize,
    pub bytes_max: u64,
    /// What a group takes at least, in rows or in bytes, that can not commit at once (preserved order); twice as much for each group that
    /// waits already. Less is left in the queue to become more, see [`crate::scheduler`].
    pub ahead_rows_min: usize,
    pub ahead_bytes_min: u64,
    /// Transactions that share a packet where each commits by itself ([`crate::scheduler::Config::apart`]), in the source's order; follows how
    /// long they take, see [`crate::pace`].
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
pub struct Taken {
    pub transactions: usize,
    pub rows: usize,
    pub bytes: u64,
}

/// Whether its commit is what a transaction mostly costs, so that it gains more from sharing a packet than from being applied ahead of its turn.
pub fn fits_packet(transaction: &Transaction) -> bool {
    transaction.write_set.rows.len() <= PACKET_ROWS_MAX && transaction.bytes <= PACKET_BYTES_MAX
}

impl Taken {
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
