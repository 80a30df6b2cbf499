//! The logical clock that a MySQL source writes into its log: `last_committed` and `sequence_number`.
//!
//! By the server's `binlog_transaction_dependency_tracking`: the time of prepare, and besides the rows with the server's bounded
//! history, and besides the sessions. The log's rotation starts the numbers again at 1. It shares no code with
//! [`engine::tags::Tracker`], so that each can test the other.

use std::collections::HashMap;

use engine::tags::DependencyTracking;

use crate::schema::TableIndex;
use crate::value::Key;
use crate::workload::{Body, Statement, Transaction};

/// What a GTID event says. Transactions whose ranges (`last_committed`, `sequence_number`) overlap may run in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tags {
    pub last_committed: u64,
    pub sequence_number: u64,
}

/// Gives each transaction its tags, in commit order.
#[derive(Debug)]
pub struct Tagger {
    tracking: DependencyTracking,
    /// Rows to remember.
    history_rows_max: usize,
    /// Transactions in the files before this one.
    rotated_at: u64,
    last_seq: u64,
    history: HashMap<(TableIndex, Key), u64>,
    /// What rows that are not in the history may depend on.
    history_start: u64,
    /// The last transaction of each session in this file.
    sessions: HashMap<u32, u64>,
}

impl Tagger {
    pub fn new(tracking: DependencyTracking, history_rows_max: usize) -> Tagger {
        Tagger {
            tracking,
            history_rows_max,
            rotated_at: 0,
            last_seq: 0,
            history: HashMap::new(),
            history_start: 0,
            sessions: HashMap::new(),
        }
    }

    /// The next transaction's tags.
    pub fn tag(&mut self, transaction: &Transaction) -> Tags {
        self.last_seq = transaction.seq;
        let sequence_number = transaction.seq.saturating_sub(self.rotated_at);
        let mut last_committed = transaction.commit_parent.saturating_sub(self.rotated_at);
        if self.tracking != DependencyTracking::CommitOrder {
            let of_session = self.sessions.insert(transaction.session, sequence_number).unwrap_or_default();
            match &transaction.body {
                Body::Rows(statements) => {
                    let rows: Vec<(TableIndex, Key)> = statements.iter().flat_map(Statement::rows).collect();
                    let full = self.history.len() + rows.len() > self.history_rows_max;
                    let mut parent = self.history_start;
                    for row in rows {
                        if let Some(last) = self.history.get_mut(&row) {
                            if *last < sequence_number {
                                parent = parent.max(*last);
                            }
                            *last = sequence_number;
                        } else if !full {
                            self.history.insert(row, sequence_number);
                        }
                    }
                    if self.tracking == DependencyTracking::WritesetSession {
                        parent = parent.max(of_session);
                    }
                    last_committed = last_committed.min(parent);
                    if full {
                        self.forget(sequence_number);
                    }
                }
                Body::Ddl { .. } => self.forget(sequence_number),
            }
        }
        Tags { last_committed, sequence_number }
    }

    /// A new log file begins.
    pub fn rotate(&mut self) {
        self.rotated_at = self.last_seq;
        self.sessions.clear();
        // As the server does, although 0 would do.
        self.forget(1);
    }

    fn forget(&mut self, start: u64) {
        self.history.clear();
        self.history_start = start;
    }
}
