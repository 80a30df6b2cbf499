//! What the engine's policy says of each transaction of a trace, in a compact form.
//!
//! Placements depend on the stream alone, so one policy runs once for all numbers of workers.

use engine::Seq;
use engine::policy::CommitOrder;
use engine::policy::{PolicyOptions, PolicySpec, Setting, Watermark};
use engine::transaction::Transaction;

use super::stream::Stream;
use crate::replica::trace::Trace;

/// So far behind its newest transaction a policy is told that all is committed: a channel lets no more be above the low water.
const OUTSTANDING_MAX: u64 = 1_000_000;

/// One transaction's placement.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) struct TransactionPlacement {
    pub after: WaitPoint,
    /// Where its single predecessors end in [`Placements::predecessors`]; they begin where those of the one before end.
    end: u32,
    pub speculative: bool,
}

/// Numbers of transactions, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replica) enum WaitPoint {
    Committed(u32),
    CommitBegun(u32),
}

#[derive(Debug, Default)]
pub(in crate::replica) struct Placements {
    /// The policy knows for each row what it follows: rows that follow nothing uncommitted are applied ahead of the others.
    pub by_row: bool,
    placed: Vec<TransactionPlacement>,
    predecessors: Vec<u32>,
}

impl Placements {
    /// Of each transaction its placement and the single transactions that it follows.
    pub fn iter(&self) -> impl Iterator<Item = (TransactionPlacement, &[u32])> {
        let mut begin = 0;
        self.placed.iter().map(move |placed| {
            let end = placed.end as usize;
            let range = std::mem::replace(&mut begin, end)..end;
            (*placed, self.predecessors.get(range).unwrap_or_default())
        })
    }
}

pub(in crate::replica) fn place(trace: &Trace, policy: &PolicySpec, order: CommitOrder) -> Placements {
    let options = PolicyOptions::default();
    let mut policy = (policy.make)(&Setting { order, locks_rows: true, options: &options });
    let mut placements = Placements::default();
    placements.placed.reserve_exact(trace.transactions.len());
    let mut stream = Stream::new(trace);
    let mut low_water = LowWater::default();
    while let Some(transaction) = stream.next() {
        policy.low_water(low_water.before(transaction));
        let mut placement = policy.place(transaction);
        placement.after_transactions.sort_unstable();
        placement.after_transactions.dedup();
        placements.predecessors.extend(placement.after_transactions.iter().map(|&seq| number(seq)));
        placements.by_row |= !placement.row_after.is_empty();
        placements.placed.push(TransactionPlacement {
            after: match placement.after {
                Watermark::None => WaitPoint::Committed(0),
                Watermark::Committed(seq) => WaitPoint::Committed(number(seq)),
                Watermark::CommitBegun(seq) => WaitPoint::CommitBegun(number(seq)),
            },
            end: number(placements.predecessors.len() as u64),
            speculative: placement.speculative,
        });
    }
    placements
}

/// What a policy surely knows to be committed when it places a transaction.
#[derive(Debug, Default)]
pub(super) struct LowWater {
    last_barrier: Seq,
}

impl LowWater {
    pub fn before(&mut self, transaction: &Transaction) -> Seq {
        // Nothing behind a barrier starts before it has committed.
        let known = self.last_barrier.max(transaction.seq.saturating_sub(OUTSTANDING_MAX));
        if transaction.barrier.is_some() {
            self.last_barrier = transaction.seq;
        }
        known
    }
}

/// Streams are bounded: their numbers fit.
fn number(seq: u64) -> u32 {
    u32::try_from(seq).unwrap_or(u32::MAX)
}
