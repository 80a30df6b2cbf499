//! What a transaction must wait for. One policy a file, each opening with the hazard that it prevents.
//!
//! A policy sees transactions in `seq` order and hears of commits only through the low water. It knows no
//! workers, no targets and no time.

mod serial;
#[cfg(test)]
mod tests;
mod writeset;

use smallvec::SmallVec;

pub use serial::Serial;
pub use writeset::WriteSetPolicy;

use crate::Seq;
use crate::transaction::{BarrierCause, Transaction};

/// An independent ordered stream (a schema, a MariaDB domain).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(pub u32);

/// Up to where everything has to have got before a transaction may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watermark {
    #[default]
    None,
    /// All transactions up to this one are committed.
    Committed(Seq),
    /// All transactions up to this one have begun to commit (they hold every lock that they will need).
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
    /// It may run before what it might conflict with has committed: a conflict is rolled back and retried.
    pub speculative: bool,
    /// For each row of the write set the last transaction that it must follow (0: none). Empty when the
    /// policy knows only about whole transactions. Lets the rows of a group that depend on nothing uncommitted
    /// be applied ahead of the others.
    pub row_after: SmallVec<[Seq; 4]>,
}

pub trait Policy: Send {
    /// As in `--policy`.
    fn name(&self) -> &'static str;
    /// Called once for each transaction, in `seq` order without gaps.
    fn place(&mut self, transaction: &Transaction) -> Placement;
    /// Everything up to `seq` is committed on the target: what was remembered of it can be forgotten.
    fn low_water(&mut self, seq: Seq);
}
