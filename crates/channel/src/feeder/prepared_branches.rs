//! Which XA branches are prepared on the target while a transaction of the log is applied. Known from the log alone.

use std::collections::HashSet;

use engine::sql::{Class, Xid};
use engine::transaction::{BarrierCause, Body, Item, Transaction};

#[derive(Debug, Default)]
pub struct PreparedBranches {
    open: HashSet<Xid>,
    /// A branch was too large to be held in memory: when it ends is not known.
    unnamed: bool,
}

impl PreparedBranches {
    /// `open`: those that an earlier run has left.
    pub fn new(open: impl IntoIterator<Item = Xid>) -> Self {
        Self { open: open.into_iter().collect(), unnamed: false }
    }

    pub fn is_open(&self, xid: &Xid) -> bool {
        self.open.contains(xid)
    }

    pub fn is_any(&self) -> bool {
        self.unnamed || !self.open.is_empty()
    }

    /// The transaction is the next in the log.
    pub fn record(&mut self, transaction: &Transaction) {
        if transaction.barrier != Some(BarrierCause::Xa) {
            return;
        }
        if let Body::Spilled { .. } = transaction.body {
            self.unnamed = true;
        }
        for item in transaction.items() {
            let Item::Statement(statement) = item else { continue };
            let Some(xid) = &statement.class.xid else { continue };
            match statement.class.class {
                Class::XaStart { .. } | Class::XaEnd => {
                    self.open.insert(xid.clone());
                }
                Class::XaCommit { .. } | Class::XaRollback => {
                    self.open.remove(xid);
                }
                _ => {}
            }
        }
    }
}
