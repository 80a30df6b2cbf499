//! One transaction after the other, as a replica without parallel replication.
//!
//! Prevents every hazard there is: T2 reads or writes what T1 wrote → T2 starts when T1 has committed.
//! Costs all parallelism; grouping still works, since a group is one transaction on the target.

use super::{Placement, Policy, PolicyDescription, PolicySpec, Requirements, Watermark};
use crate::Seq;
use crate::transaction::Transaction;

pub(super) static SPEC: PolicySpec = PolicySpec {
    name: "serial",
    about: PolicyDescription {
        summary: "One after the other",
        needs: "nothing",
        guarantees: "one after the other, as a replica without parallel replication",
        blocked_by: "every transaction",
    },
    requires: Requirements::NONE,
    make: |_| Box::new(SerialPolicy),
};

#[derive(Debug, Default)]
pub struct SerialPolicy;

impl Policy for SerialPolicy {
    fn name(&self) -> &'static str {
        SPEC.name
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        Placement {
            after: Watermark::Committed(transaction.seq - 1),
            barrier: transaction.barrier,
            ..Placement::default()
        }
    }

    fn low_water(&mut self, _seq: Seq) {}
}
