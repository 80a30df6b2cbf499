//! Tags that are worked out here by MySQL's rules: what the source's own would be with another tracking.
//!
//! The hazard: a source with `COMMIT_ORDER` says that T2 follows T1 because its sessions were slow, although they touch other
//! rows; and an intermediate server that applied with one thread says that everything follows everything. With the rows'
//! keys it can be said anew. By MySQL's rules that has limits, which the exact `writeset` policy does not have:
//!
//! ```text
//! T1 row 7   T2 row 8   T3 ALTER TABLE   T4 row 9   T5 row 7
//! writeset-tags       T1 T2 side by side; T3 a barrier; T4 and T5 after T3: a DDL empties the history
//! writeset-session    and besides, what one session did keeps its order
//! commit-order        what the source's clock says, with other numbers: T2 after T1 if T1 had committed
//! ```
//!
//! A source without a clock is taken as one that commits one transaction after the other: then `commit-order` is `serial`.

use std::sync::Arc;

use super::{Placement, Policy, PolicyDescription, PolicySpec, Requirements, Setting, Watermark, WriteSets};
use crate::Seq;
use crate::tags::{DependencyTracking, Parent, Rules, SourceClock, Subject, Tracker};
use crate::transaction::Transaction;

pub(super) static COMMIT_ORDER: PolicySpec = PolicySpec {
    name: "commit-order",
    about: PolicyDescription {
        summary: "The source's clock alone, by MySQL's rules",
        needs: "a source that tags or groups its commits; serial otherwise",
        guarantees: "what had committed on the source before another was prepared comes first",
        blocked_by: "few sessions on the source, fast commits there",
    },
    requires: Requirements::NONE,
    make: |setting| ServerTags::boxed(DependencyTracking::CommitOrder, setting),
};

pub(super) static WRITESET: PolicySpec = PolicySpec {
    name: "writeset-tags",
    about: PolicyDescription {
        summary: "Tags from write sets, by MySQL's rules and limits",
        needs: "row format; keys of the tables",
        guarantees: "the tags that MySQL would give with WRITESET, its fallbacks included",
        blocked_by: "log rotation, a full history (--writeset-history), DDL, tables that foreign keys refer to",
    },
    requires: Requirements { write_sets: WriteSets::Server, ..Requirements::NONE },
    make: |setting| ServerTags::boxed(DependencyTracking::Writeset, setting),
};

pub(super) static WRITESET_SESSION: PolicySpec = PolicySpec {
    name: "writeset-session",
    about: PolicyDescription {
        summary: "The same, and sessions keep their order",
        needs: "row format; keys of the tables; a MySQL source, whose log names sessions",
        guarantees: "as writeset-tags, and the order inside each session of the source",
        blocked_by: "as writeset-tags; few sessions",
    },
    requires: Requirements { write_sets: WriteSets::Server, ..Requirements::NONE },
    make: |setting| ServerTags::boxed(DependencyTracking::WritesetSession, setting),
};

#[derive(Debug)]
pub struct ServerTags {
    rules: Rules,
    clock: SourceClock,
    tracker: Option<Tracker>,
    file: Option<Arc<str>>,
}

impl ServerTags {
    pub fn new(rules: Rules) -> Self {
        Self { rules, clock: SourceClock::default(), tracker: None, file: None }
    }

    fn boxed(tracking: DependencyTracking, setting: &Setting<'_>) -> Box<dyn Policy> {
        let options = setting.options;
        Box::new(Self::new(Rules { tracking, generation: options.generation, history_max: options.history_max }))
    }
}

impl Policy for ServerTags {
    fn name(&self) -> &'static str {
        match self.rules.tracking {
            DependencyTracking::CommitOrder => COMMIT_ORDER.name,
            DependencyTracking::Writeset => WRITESET.name,
            DependencyTracking::WritesetSession => WRITESET_SESSION.name,
        }
    }

    fn place(&mut self, transaction: &Transaction) -> Placement {
        let seq = transaction.seq;
        let tracker = self.tracker.get_or_insert_with(|| Tracker::new(self.rules, seq));
        let rotated = self.file.as_ref().is_some_and(|file| **file != *transaction.start.file);
        if rotated {
            tracker.rotate();
        }
        if rotated || self.file.is_none() {
            self.file = Some(Arc::clone(&transaction.start.file));
        }
        let commit_parent = match self.clock.next(transaction) {
            Parent::Known(parent) => parent,
            Parent::Untagged => seq - 1,
        };
        let tagged = tracker.next(commit_parent, &Subject::of(transaction));
        let barrier = Placement::barrier(transaction);
        barrier.unwrap_or_else(|| Placement { after: Watermark::Committed(tagged.parent), ..Placement::default() })
    }

    fn low_water(&mut self, seq: Seq) {
        self.clock.forget_to(seq);
    }
}
