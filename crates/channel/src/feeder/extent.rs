//! Which of the log's transactions a run applies: from where the channel is to where the user wants it to end, without those that are
//! committed already.

use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidSet, GtidState};
use engine::Seq;
use engine::failure::{Culprit, Failure, FailureKind};
use engine::progress::Mark;
use engine::transaction::Transaction;

use crate::stop_condition::StopCondition;

pub struct Extent {
    until: StopCondition,
    /// What is applied already; moves on with what is handed over.
    applied: Mark,
    committed_ranges: Vec<(Seq, Seq)>,
    /// Loses each transaction that has come by.
    executed: GtidSet,
    /// End once this one has been handed over.
    last_seq: Option<Seq>,
    /// A transaction that this server logged first stops the channel.
    not_from: Option<u32>,
    skips: Vec<Culprit>,
}

/// What the target has already when the run begins.
pub struct InitialProgress {
    pub applied: Mark,
    /// Committed by an earlier run with relaxed order, above its low water.
    pub committed_ranges: Vec<(Seq, Seq)>,
    /// The same, recorded by nothing but their GTIDs.
    pub executed: GtidSet,
}

impl Extent {
    pub fn new(until: StopCondition, known: InitialProgress, not_from: Option<u32>) -> Self {
        let InitialProgress { applied, committed_ranges, executed } = known;
        Self { until, applied, committed_ranges, executed, last_seq: None, not_from, skips: Vec::new() }
    }

    /// These are left out, as an operator wants it.
    pub fn without(mut self, skips: Vec<Culprit>) -> Self {
        self.skips = skips;
        self
    }

    /// Whether it is to be left out: it has the number, and the GTID, or without one the position.
    pub fn is_skipped(&self, transaction: &Transaction) -> bool {
        self.skips.iter().any(|skip| skip.seq == transaction.seq) && {
            let this = transaction.culprit();
            let is_this = |skip: &&Culprit| {
                skip.seq == this.seq
                    && skip.gtid == this.gtid
                    && (!this.gtid.is_empty() || skip.position == this.position)
            };
            self.skips.iter().any(|skip| is_this(&skip))
        }
    }

    /// Ends once nothing is missing below what an earlier run has committed.
    pub fn only_gaps(mut self) -> Self {
        self.last_seq = Some(self.committed_ranges.iter().map(|&(_, last)| last).max().unwrap_or(0));
        self
    }

    /// The last transaction that was handed over.
    pub fn seq(&self) -> Seq {
        self.applied.seq
    }

    /// Whether the source sends it again, because it starts earlier than asked.
    pub fn is_applied(&self, transaction: &Transaction) -> bool {
        let is_behind = |applied: &LogPosition| transaction.start >= *applied;
        match &transaction.gtid {
            // Without gtid_strict_mode a MariaDB's sequence numbers can go back: what comes later in its log is new all the same.
            Some(Gtid::MariaDb { .. }) if self.applied.position.as_ref().is_some_and(is_behind) => false,
            Some(gtid) if self.applied.gtids != GtidState::None => self.applied.gtids.contains(gtid),
            _ => self.applied.position.as_ref().is_some_and(|applied| !is_behind(applied)),
        }
    }

    /// Whether it lies behind the end.
    pub fn ends_before(&self, transaction: &Transaction) -> bool {
        self.until.is_before(transaction)
    }

    /// Whether everything that was asked for has been handed over.
    pub fn is_over(&self) -> bool {
        self.until.is_reached(self.applied.position.as_ref(), &self.applied.gtids) || self.is_last()
    }

    /// The same, when the log has been read up to `end`, between two transactions.
    pub fn is_over_at(&self, end: &LogPosition) -> bool {
        self.until.is_reached(Some(end), &self.applied.gtids) || self.is_last()
    }

    fn is_last(&self) -> bool {
        self.last_seq.is_some_and(|last| self.applied.seq >= last) && self.executed.is_empty()
    }

    /// The transaction is the next to be handed over: gives it its number, or says why the channel has to stop.
    pub fn accept(&mut self, transaction: &mut Transaction) -> Result<(), Failure> {
        if self.not_from == Some(transaction.server_id) {
            return Err(Failure::new(
                FailureKind::Refused,
                "the source sends a transaction that began on the target itself: they replicate in a ring",
            )
            .at(transaction.place())
            .remedy(
                "open the ring first: a native applier goes past what its own server has logged, heddle does not",
            ));
        }
        if let Some(gtid) = &transaction.gtid {
            if let Err(why) = self.until.check_kind(gtid) {
                let failure = Failure::new(FailureKind::Refused, why).at(transaction.place());
                return Err(failure.remedy("MySQL's are UUID:1-9, MariaDB's DOMAIN-SERVER-NUMBER"));
            }
            if let Err(mixed) = self.applied.gtids.add(gtid) {
                let failure = Failure::new(FailureKind::Refused, mixed.to_string()).at(transaction.place());
                return Err(failure.remedy("use another --channel for another source"));
            }
        }
        transaction.seq = self.applied.seq + 1;
        self.applied.seq = transaction.seq;
        self.applied.position = Some(transaction.end.clone());
        Ok(())
    }

    /// Whether the target has executed it, recorded by its GTID alone. A barrier finds out by itself what became of it.
    pub fn is_executed(&mut self, transaction: &Transaction) -> bool {
        let Some(Gtid::MySql { uuid, tag, gno }) = &transaction.gtid else { return false };
        if !self.will_be_executed(transaction) {
            return false;
        }
        let mut this = GtidSet::default();
        this.add(uuid, tag.as_deref().unwrap_or_default(), *gno);
        self.executed.subtract(&this);
        transaction.barrier.is_none()
    }

    /// Whether [`Extent::is_executed`] will say so of it. It has not come by.
    pub fn will_be_executed(&self, transaction: &Transaction) -> bool {
        let Some(Gtid::MySql { uuid, tag, gno }) = &transaction.gtid else { return false };
        self.executed.contains(uuid, tag.as_deref().unwrap_or_default(), *gno)
    }

    /// Whether an earlier run has committed it, above its low water.
    pub fn is_committed(&self, seq: Seq) -> bool {
        self.committed_ranges.iter().any(|&(first, last)| (first..=last).contains(&seq))
    }

    /// What is wrong with a log that ends here, between two transactions. `read_to`: as far as it was read.
    pub fn missed(&self, read_to: Option<&LogPosition>) -> Option<Failure> {
        let missed = self.until.missed(read_to.or(self.applied.position.as_ref()), &self.applied.gtids)?;
        Some(Failure::new(FailureKind::Refused, format!("the log ends before {missed}")).remedy(
            "everything in it is applied; give the rest of the log and run the same command again, or, if the end was mistaken, leave it out",
        ))
    }

    /// The log ends in the middle of a transaction.
    pub fn cut_off(&self) -> Failure {
        Failure::new(FailureKind::Refused, "the log ends in the middle of a transaction")
            .at(self.applied.position.as_ref().map_or_else(String::new, |position| format!("after {position}")))
            .remedy("everything before it is applied; give the rest of the log (a newer copy) and run the same command again")
    }
}
