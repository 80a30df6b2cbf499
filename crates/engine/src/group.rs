//! Consecutive transactions that one worker applies as one target transaction: what the scheduler hands over.

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
    pub deferred: Vec<DeferredPart>,
    /// What the target remembers before the group, so that it can be applied in parts. Its `seq` is what the target has
    /// recorded; its GTIDs and position are those right before the group, also when an earlier run with relaxed order has
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

    /// The transaction whose GTID a target transaction of all of them has: the last, but for those that only defer an XA branch. These are executed
    /// where the branch is prepared, or ends.
    pub fn named_by(&self) -> Option<&Transaction> {
        let named_by = self.transactions.iter().rfind(|transaction| !transaction.defers_branch());
        named_by.or(self.transactions.last()).map(|transaction| &**transaction)
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
        let deferred = vec![DeferredPart::Nothing; transactions.len()];
        let before = marker.advance(seq).clone();
        let has_branches = self.has_branches;
        Self { id: self.id, transactions, deferred, before, mark: self.mark.clone(), has_branches }
    }

    /// Its transactions as groups of one, nothing of which has to wait.
    pub fn singles(&self) -> impl Iterator<Item = Group> + '_ {
        self.pieces(1)
    }

    /// How many of its transactions are tried together once more when all of them together have failed.
    pub fn piece(&self) -> usize {
        const PIECE_TRANSACTIONS: usize = 100;
        if self.is_barrier() { 1 } else { PIECE_TRANSACTIONS }
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
                deferred: vec![DeferredPart::Nothing; transactions.len()],
                before: marker.mark().clone(),
                mark: marker.advance(last).clone(),
                has_branches: self.has_branches,
            }
        })
    }

    pub fn rows(&self) -> usize {
        self.transactions.iter().map(|t| t.write_set.rows.len()).sum()
    }

    /// It is a barrier (DDL, XA, huge, statements), or several transactions, a barrier first, that run in their order
    /// ([`Transaction::takes_others`], [`Transaction::is_definition`]): no other group runs beside it.
    pub fn is_barrier(&self) -> bool {
        self.transactions.iter().any(|t| t.barrier.is_some())
    }
}

/// Which rows of a transaction depend on something that was not committed when its group was formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeferredPart {
    Nothing,
    /// One flag for each row of the write set.
    Rows(Vec<bool>),
    Everything,
}

impl DeferredPart {
    pub fn row(&self, index: usize) -> bool {
        match self {
            Self::Nothing => false,
            Self::Rows(rows) => rows.get(index).copied().unwrap_or(true),
            Self::Everything => true,
        }
    }
}
