//! A policy's answer for one transaction, and the trait that every policy implements.
//!
//! Only types: nothing here decides what a transaction waits for.

use smallvec::SmallVec;

use crate::Seq;
use crate::transaction::{BarrierCause, Transaction};

/// An independent ordered stream (a schema, a MariaDB domain).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(pub u32);

/// How far the channel has to be before a transaction may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watermark {
    #[default]
    None,
    /// All transactions up to this one are committed.
    Committed(Seq),
    /// All transactions up to this one have committed or are about to: all their rows are applied, and they hold every
    /// lock that they will need.
    CommitBegun(Seq),
}

/// The answer of a policy.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    pub after: Watermark,
    /// Single transactions that must have committed before, beyond `after`. Not sorted, may repeat.
    pub after_transactions: SmallVec<[Seq; 4]>,
    pub lane: Lane,
    /// Nothing may run beside it.
    pub barrier: Option<BarrierCause>,
    /// It may run before what it might conflict with has committed, `after` and `after_transactions` apart. The target's locks
    /// and errors show a conflict; the transaction is then rolled back and retried. Only with preserved order.
    pub speculative: bool,
    /// The target has it: an earlier run has committed it, ahead of others.
    pub committed: bool,
    /// For each row of the write set the last transaction that it must follow (0: none). Empty when the
    /// policy knows only about whole transactions. Lets the rows of a group that depend on nothing uncommitted
    /// be applied ahead of the others.
    pub row_after: SmallVec<[Seq; 4]>,
}

impl Placement {
    /// Of a barrier: it starts when all before it have committed. `None` if the transaction is not one.
    pub fn barrier(transaction: &Transaction) -> Option<Self> {
        let barrier = Some(transaction.barrier?);
        Some(Self { after: Watermark::Committed(transaction.seq - 1), barrier, ..Self::default() })
    }
}

pub trait Policy: Send {
    /// As in `--policy`.
    fn name(&self) -> &'static str;
    /// Whether the source says what the policy goes by; if not, why. Asked before [`Policy::place`].
    fn accepts(&self, _transaction: &Transaction) -> Result<(), &'static str> {
        Ok(())
    }
    /// Called once for each transaction, in `seq` order without gaps.
    fn place(&mut self, transaction: &Transaction) -> Placement;
    /// Everything up to `seq` is committed on the target: the policy can forget what it remembers of it.
    fn low_water(&mut self, seq: Seq);
}
