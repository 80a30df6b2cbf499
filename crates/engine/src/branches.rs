//! XA branches whose end stands a little later in the log: they need not be prepared on the target.
//!
//! To prepare a branch and to end it are commits of their own, which share nothing with others. When a replica is behind, the end is in the log
//! already. Until then nobody else can have touched the branch's rows: the source held their locks. So they are as well changed where the branch
//! ends, like those of any other transaction, and the transaction that prepared it changes nothing. In between the target keeps the rows beside
//! its progress ([`Branch::DeferredPart`]): who comes to a stop there prepares the branch after all.
//!
//! The hazards: an end that is not in the log yet (the branch must be prepared where it was, for whoever ends it); a DDL, or any
//! other barrier that changes something, between the two (its locks were not those of rows); rows that no key finds, or that can not be rolled back.
//!
//! Reads no log and applies nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Seq;
use crate::sql::{Class, DdlKind, Xid};
use crate::transaction::{
    BarrierCause, Body, Branch, DeferredBranch, EndedBranch, Item, RowsItem, Transaction, WriteSet,
};

/// How far an end is looked for.
const TRANSACTIONS_MAX: usize = 500;
const BYTES_MAX: u64 = 1 << 20;
/// Larger branches are prepared.
const BRANCH_BYTES_MAX: u64 = 64 << 10;

/// What becomes of branches by consecutive transactions that are applied together.
#[derive(Debug, Default)]
pub struct NetBranches<'a> {
    /// Those that are still open, each with the transaction that prepared it on the source.
    pub open: Vec<(&'a Transaction, &'a DeferredBranch)>,
    /// Those that were open before.
    pub ended: Vec<&'a EndedBranch>,
}

impl<'a> NetBranches<'a> {
    /// Ends of branches that were deferred before go first: the same name may be used again.
    pub fn of(transactions: impl IntoIterator<Item = &'a Transaction>) -> Self {
        let mut net = Self::default();
        for transaction in transactions {
            match transaction.branch.as_deref() {
                None => {}
                Some(Branch::Deferred(branch)) => net.open.push((transaction, branch)),
                Some(Branch::Ended(ended)) => match net.open.iter().position(|(_, branch)| branch.xid == ended.xid) {
                    Some(at) => drop(net.open.remove(at)),
                    None => net.ended.push(ended),
                },
            }
        }
        net
    }
}

/// Transactions, in the log's order, between their reading and what is made of them. `T` goes with each.
#[derive(Debug)]
pub struct Lookahead<T> {
    queue: VecDeque<(Transaction, T)>,
    bytes: u64,
}

/// What [`Lookahead::first`] says of the first transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadState {
    /// As it is.
    Passes,
    /// It prepares a branch that the transaction at this place ends.
    EndsAt(usize),
    /// Its end may still come.
    Waits,
}

/// What is known of the log behind the transactions that are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogTail {
    /// More is read.
    Comes,
    /// Nothing further can be read now.
    NotYet,
}

impl<T> Default for Lookahead<T> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Lookahead<T> {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn push(&mut self, transaction: Transaction, with: T) {
        self.bytes += transaction.bytes;
        self.queue.push_back((transaction, with));
    }

    /// What goes with the first.
    pub fn with_first(&self) -> Option<&T> {
        self.queue.front().map(|(_, with)| with)
    }

    /// `None`: there is none.
    pub fn first(&self, rest: LogTail) -> Option<HeadState> {
        let (first, _) = self.queue.front()?;
        let Some(xid) = deferrable(first) else { return Some(HeadState::Passes) };
        for (at, (transaction, _)) in self.queue.iter().enumerate().skip(1) {
            // Where it is read again is known when it has come.
            if let Body::Spilled { .. } = transaction.body {
                return Some(HeadState::Passes);
            }
            match transaction.barrier {
                None => {}
                Some(BarrierCause::Xa) => {
                    if let Some((_, ended)) = end(transaction)
                        && ended == xid
                    {
                        return Some(HeadState::EndsAt(at));
                    }
                }
                Some(_) if leaves_rows_alone(transaction) => {}
                Some(_) => return Some(HeadState::Passes),
            }
        }
        let is_full = self.queue.len() >= TRANSACTIONS_MAX || self.bytes >= BYTES_MAX;
        Some(if rest == LogTail::NotYet || is_full { HeadState::Passes } else { HeadState::Waits })
    }

    /// The transaction that comes next, and the branch that it prepares, if that can be deferred.
    pub fn branch(&self) -> Option<(&Transaction, &Xid)> {
        let (first, _) = self.queue.front()?;
        deferrable(first).map(|xid| (first, xid))
    }

    pub fn pop(&mut self) -> Option<(Transaction, T)> {
        let first = self.queue.pop_front();
        self.bytes -= first.as_ref().map_or(0, |(first, _)| first.bytes);
        first
    }

    /// Has the transaction that ends the branch at `at` change the first one's rows, if `may` agrees, who is shown it with these rows (and may
    /// key it).
    pub fn defer<E>(&mut self, at: usize, may: impl FnOnce(&mut Transaction) -> Result<bool, E>) -> Result<(), E> {
        let Some((first, xid)) = self.branch() else { return Ok(()) };
        let (server_id, bytes, xid, gtid) = (first.server_id, first.bytes, xid.clone(), first.gtid.clone());
        let rows = |item: &Item| if let Item::Rows(rows) = item { Some(rows.clone()) } else { None };
        let rows: Vec<RowsItem> = first.items().iter().filter_map(rows).collect();
        let Some((last, _)) = self.queue.get_mut(at) else { return Ok(()) };
        let commits = end(last).is_some_and(|(commits, _)| commits);
        let statement = std::mem::replace(&mut last.body, Body::Items(rows.iter().cloned().map(Item::Rows).collect()));
        last.barrier = None;
        let agreed = may(last);
        let is_plain = last.barrier.is_none() && matches!(agreed, Ok(true));
        last.write_set = WriteSet::default();
        if !is_plain {
            last.body = statement;
            last.barrier = Some(BarrierCause::Xa);
            return agreed.map(drop);
        }
        last.branch = Some(Box::new(Branch::Ended(EndedBranch { xid: xid.clone(), prepared_by: gtid })));
        if commits {
            last.bytes += bytes;
            self.bytes += bytes;
        } else {
            last.body = Body::Items(Vec::new());
        }
        if let Some((first, _)) = self.queue.front_mut() {
            first.body = Body::Items(Vec::new());
            first.barrier = None;
            let branch = DeferredBranch { xid, server_id, rows, ends_after: at as Seq };
            first.branch = Some(Box::new(Branch::Deferred(Arc::new(branch))));
        }
        Ok(())
    }
}

/// The branch that the transaction prepares, if it is of few rows and nothing else.
fn deferrable(transaction: &Transaction) -> Option<&Xid> {
    if transaction.barrier != Some(BarrierCause::Xa) || transaction.bytes > BRANCH_BYTES_MAX {
        return None;
    }
    let mut xid = None;
    let mut rows = 0;
    for item in transaction.items() {
        match item {
            Item::Rows(_) => rows += 1,
            Item::Statement(statement) => match statement.class.class {
                Class::XaStart { .. } | Class::XaEnd => xid = statement.class.xid.as_ref(),
                _ => return None,
            },
        }
    }
    xid.filter(|_| rows > 0)
}

/// Whether the transaction changes neither rows nor definitions, and only locks a table. MySQL logs `OPTIMIZE TABLE` when it has let go of its locks, so a branch that came
/// after it may stand before it in the log: if that was prepared, the two would wait for each other.
fn leaves_rows_alone(transaction: &Transaction) -> bool {
    let [Item::Statement(statement)] = transaction.items() else { return false };
    matches!(statement.class.class, Class::Ddl { kind: DdlKind::Optimize | DdlKind::Analyze })
}

/// The branch that the transaction ends, and whether by committing it.
fn end(transaction: &Transaction) -> Option<(bool, &Xid)> {
    let [Item::Statement(statement)] = transaction.items() else { return None };
    let commits = match statement.class.class {
        Class::XaCommit { one_phase: false } => true,
        Class::XaRollback => false,
        _ => return None,
    };
    statement.class.xid.as_ref().map(|xid| (commits, xid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{DeferredPart, Group, GroupId};
    use crate::progress::Mark;
    use crate::testing::{Log, RowChange, TestTable, insert, int};

    fn table() -> TestTable {
        TestTable::new(1, "t", "id:int v:int", &[&[0]])
    }

    fn row(id: i32) -> RowChange {
        insert(vec![int(id), int(0)])
    }

    fn ahead(log: &Log) -> Lookahead<()> {
        let mut lookahead = Lookahead::default();
        for transaction in log.assemble().unwrap() {
            lookahead.push(transaction, ());
        }
        lookahead
    }

    /// As the feeder does it.
    fn pass(log: &Log, no_more: bool, agrees: bool) -> Vec<Transaction> {
        let mut lookahead = ahead(log);
        let mut passed = Vec::new();
        while let Some(first) = lookahead.first(if no_more { LogTail::NotYet } else { LogTail::Comes }) {
            match first {
                HeadState::Waits => break,
                HeadState::Passes => {}
                HeadState::EndsAt(at) => lookahead.defer(at, |_| Ok::<_, ()>(agrees)).unwrap(),
            }
            passed.push(lookahead.pop().unwrap().0);
        }
        assert!(!no_more || lookahead.is_empty() && lookahead.bytes == 0);
        passed
    }

    /// How many rows each has, and what it is to a branch.
    fn passed(log: &Log, no_more: bool, agrees: bool) -> Vec<(usize, &'static str)> {
        let shown = |transaction: &Transaction| {
            let rows = transaction.items().iter().filter(|item| matches!(item, Item::Rows(_))).count();
            let is = match (transaction.branch.as_deref(), transaction.barrier) {
                (Some(Branch::Deferred(_)), None) => "kept",
                (Some(Branch::Ended(_)), None) => "ended",
                (None, None) => "rows",
                (None, Some(BarrierCause::Xa)) => "xa",
                (None, Some(_)) => "alone",
                (Some(_), Some(_)) => "a branch that is kept, alone",
            };
            (rows, is)
        };
        pass(log, no_more, agrees).iter().map(shown).collect()
    }

    #[test]
    fn rows_come_with_the_commit() {
        let t = table();
        let mut log = Log::mysql();
        log.branch("x", &[(&t, row(1)), (&t, row(2))]).branch("y", &[(&t, row(3))]).transaction(&[(&t, row(4))]);
        log.gtid().query("XA COMMIT 'x'").gtid().query("XA ROLLBACK 'y'");
        let kept = [(0, "kept"), (0, "kept"), (1, "rows"), (2, "ended"), (0, "ended")];
        assert_eq!(passed(&log, false, true), kept);
        assert_eq!(passed(&log, true, false), [(2, "xa"), (1, "xa"), (1, "rows"), (0, "xa"), (0, "xa")]);
    }

    #[test]
    fn a_name_is_used_again() {
        let t = table();
        let mut log = Log::mysql();
        for id in 1..3 {
            log.branch("x", &[(&t, row(id))]).gtid().query("XA COMMIT 'x'");
        }
        log.branch("x", &[(&t, row(3))]);
        let kept = [(0, "kept"), (1, "ended"), (0, "kept"), (1, "ended")];
        assert_eq!(passed(&log, false, true), kept);
        assert_eq!(passed(&log, true, true)[4..], [(1, "xa")]);
    }

    #[test]
    fn what_is_prepared_all_the_same() {
        let t = table();
        let mut log = Log::mysql();
        log.branch("ends behind a definition", &[(&t, row(1))]).gtid().query("CREATE TABLE u (id INT)");
        log.gtid().query("XA COMMIT 'ends behind a definition'");
        log.branch("nothing", &[]).gtid().query("XA COMMIT 'nothing'");
        log.branch("large", &[]);
        assert_eq!(passed(&log, true, true), [(1, "xa"), (0, "alone"), (0, "xa"), (0, "xa"), (0, "xa"), (0, "xa")]);
        let mut log = Log::mysql();
        let rows: Vec<_> = (0..2000).map(|id| (&t, row(id))).collect();
        log.branch("large", &rows).gtid().query("XA COMMIT 'large'");
        assert_eq!(passed(&log, false, true), [(2000, "xa"), (0, "xa")]);
    }

    #[test]
    fn an_end_is_not_waited_for_for_ever() {
        let t = table();
        let mut log = Log::mysql();
        log.branch("x", &[(&t, row(0))]);
        for id in 1..TRANSACTIONS_MAX as i32 - 1 {
            log.transaction(&[(&t, row(id))]);
        }
        assert_eq!(passed(&log, false, true), []);
        log.transaction(&[(&t, row(-1))]).gtid().query("XA COMMIT 'x'");
        assert_eq!(passed(&log, false, true)[0], (0, "kept"));
        let mut lookahead = Lookahead::default();
        for transaction in log.assemble().unwrap().into_iter().take(TRANSACTIONS_MAX) {
            lookahead.push(transaction, ());
        }
        assert_eq!(lookahead.first(LogTail::Comes), Some(HeadState::Passes));
    }

    #[test]
    fn a_table_is_optimized_before_the_end() {
        let t = table();
        for (sql, at_the_start) in [
            ("OPTIMIZE TABLE t", "kept"),
            ("ANALYZE TABLE t", "kept"),
            ("TRUNCATE TABLE t", "xa"),
            ("ALTER TABLE t FORCE", "xa"),
        ] {
            let mut log = Log::mysql();
            log.branch("x", &[(&t, row(1))]).gtid().query(sql).gtid().query("XA COMMIT 'x'");
            assert_eq!(passed(&log, true, true)[0].1, at_the_start, "{sql}");
        }
    }

    #[test]
    fn an_end_says_who_prepared_the_branch() {
        let t = table();
        let mut log = Log::mysql();
        log.branch("x", &[(&t, row(1))]).transaction(&[(&t, row(2))]).branch("y", &[(&t, row(3))]);
        log.gtid().query("XA COMMIT 'x'").gtid().query("XA ROLLBACK 'y'");
        let transactions = pass(&log, true, true);
        let ends_after = |at: usize| match transactions[at].branch.as_deref() {
            Some(Branch::Deferred(branch)) => branch.ends_after,
            _ => 0,
        };
        assert_eq!([ends_after(0), ends_after(2)], [3, 2]);
        let prepared_by = |at: usize| match transactions[at].branch.as_deref() {
            Some(Branch::Ended(ended)) => ended.prepared_by.clone(),
            _ => None,
        };
        assert!(transactions[0].gtid.is_some());
        assert_eq!([prepared_by(3), prepared_by(4)], [transactions[0].gtid.clone(), transactions[2].gtid.clone()]);
    }

    #[test]
    fn a_group_is_named_by_the_last_that_does_more_than_defer() {
        let t = table();
        let mut log = Log::mysql();
        log.branch("x", &[(&t, row(1))]).transaction(&[(&t, row(2))]).branch("y", &[(&t, row(3))]);
        log.gtid().query("XA COMMIT 'x'").gtid().query("XA ROLLBACK 'y'");
        let transactions: Vec<Arc<Transaction>> = pass(&log, true, true).into_iter().map(Arc::new).collect();
        let named_by = |range: std::ops::Range<usize>| {
            let transactions = transactions[range].to_vec();
            let deferred = vec![DeferredPart::Nothing; transactions.len()];
            let (before, mark) = (Mark::default(), Mark::default());
            let group = Group { id: GroupId(1), transactions, deferred, before, mark, has_branches: true };
            group.named_by().and_then(|named_by| named_by.gtid.clone())
        };
        let gtid = |at: usize| transactions[at].gtid.clone();
        let named = [named_by(0..3), named_by(0..1), named_by(2..3), named_by(0..5)];
        assert_eq!(named, [gtid(1), gtid(0), gtid(2), gtid(4)]);
    }

    #[test]
    fn net_of_a_group() {
        let t = table();
        let mut log = Log::mysql();
        for id in 1..4 {
            log.branch("x", &[(&t, row(id))]).gtid().query("XA COMMIT 'x'");
        }
        let transactions = pass(&log, true, true);
        let net = |range: std::ops::Range<usize>| {
            let net = NetBranches::of(&transactions[range]);
            (net.open.len(), net.ended.len())
        };
        assert_eq!([net(0..2), net(0..3), net(1..2), net(1..5), net(2..3)], [(0, 0), (1, 0), (0, 1), (1, 1), (1, 0)]);
    }
}
