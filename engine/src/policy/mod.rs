//! What a transaction must wait for. One policy a file, each opening with the hazard that it prevents.
//!
//! A policy sees transactions in `seq` order and hears of commits only through the low water. It knows no
//! workers, no targets and no time.

#[cfg(test)]
mod conformance;
mod conservative;
mod database;
mod domain;
mod logical_clock;
mod minimal;
pub mod named;
mod optimistic;
mod serial;
mod server_tags;
#[cfg(test)]
mod tests;
mod writeset;

use smallvec::SmallVec;

pub use conservative::Conservative;
pub use database::Database;
pub use domain::Domain;
pub use logical_clock::LogicalClock;
pub use minimal::Minimal;
pub use named::{PolicyName, PolicyOptions};
pub use optimistic::Optimistic;
pub use serial::Serial;
pub use server_tags::ServerTags;
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
    /// It may run before what it might conflict with has committed, `after` and `after_transactions` apart: a conflict is
    /// found out by the target's locks and errors, rolled back and retried. Only with preserved order.
    pub speculative: bool,
    /// The target has it: an earlier run has committed it, ahead of others.
    pub committed: bool,
    /// For each row of the write set the last transaction that it must follow (0: none). Empty when the
    /// policy knows only about whole transactions. Lets the rows of a group that depend on nothing uncommitted
    /// be applied ahead of the others.
    pub row_after: SmallVec<[Seq; 4]>,
}

impl Placement {
    /// Of a transaction that nothing may run beside.
    fn alone(transaction: &Transaction) -> Option<Self> {
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
    /// Everything up to `seq` is committed on the target: what was remembered of it can be forgotten.
    fn low_water(&mut self, seq: Seq);
}
