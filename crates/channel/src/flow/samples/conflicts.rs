//! How parallel the transactions are as the policy places them, and which rows they wait for most. Counted as they are placed; nothing is decided by it.

use std::time::{Duration, Instant};

use apply::row_text;
use engine::compact::{Images, whole_event};
use engine::policy::{Placement, Watermark};
use engine::quality::{Intervals, KeyedTags};
use engine::transaction::{Item, Row, Transaction};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Rows that are counted at once.
const ROWS_MAX: usize = 256;
/// A row that was waited for so often is put into words.
const NAMED_FROM: u64 = 4;
/// What was waited for longer ago than twice this is forgotten, if others have come since.
const PERIOD: Duration = Duration::from_secs(5);

/// Of the last seconds.
#[derive(Debug, Default)]
pub struct Conflicts {
    keyed: KeyedTags,
    this: Period,
    last: Period,
    began: Option<Instant>,
}

#[derive(Debug, Default)]
struct Period {
    transactions: u64,
    waiting: u64,
    rows: HashMap<u64, RowWaits, FixedState>,
}

#[derive(Debug, Default)]
struct RowWaits {
    times: u64,
    /// Table and key.
    row: String,
}

/// What observers see of it.
#[derive(Clone, Debug, Default)]
pub struct ConflictsSample {
    /// Of tags by keys, whatever the source wrote.
    pub exact: Intervals,
    /// Of the transactions of the last seconds, how many wait for an earlier one that was not committed: 0 to 1.
    pub waiting_share: f64,
    /// The row that most of them wait for.
    pub hot: Option<HotRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HotRow {
    /// `update of shop.orders key (id=17)`
    pub row: String,
    /// Of the transactions of the last seconds, how many wait for it.
    pub share: f64,
}

impl Conflicts {
    pub fn placed(&mut self, transaction: &Transaction, placement: &Placement) {
        let watermark = match placement.after {
            Watermark::None => 0,
            Watermark::Committed(seq) | Watermark::CommitBegun(seq) => seq,
        };
        let after = placement.after_transactions.iter().copied().max().unwrap_or(0).max(watermark);
        self.keyed.add(transaction);
        self.this.transactions += 1;
        if after == 0 {
            return;
        }
        self.this.waiting += 1;
        let rows = placement.row_after.iter().zip(&transaction.write_set.rows);
        if let Some((_, row)) = rows.max_by_key(|(after, _)| **after).filter(|(after, _)| **after > 0) {
            self.this.waits_for(transaction, row);
        }
    }

    /// The numbers of the last seconds. Begins a new period when it is time.
    pub fn seen(&mut self, now: Instant) -> ConflictsSample {
        // While nothing is read, what was read last may still be waiting.
        if now.saturating_duration_since(*self.began.get_or_insert(now)) >= PERIOD && self.this.transactions > 0 {
            self.last = std::mem::take(&mut self.this);
            self.began = Some(now);
        }
        let exact = self.keyed.intervals();
        let transactions = self.this.transactions + self.last.transactions;
        if transactions == 0 {
            return ConflictsSample { exact, ..ConflictsSample::default() };
        }
        let share = |count: u64| count as f64 / transactions as f64;
        let times = |hash: &u64, period: &Period| period.rows.get(hash).map_or(0, |waited| waited.times);
        let all = self
            .this
            .rows
            .iter()
            .map(|one| (one, &self.last))
            .chain(self.last.rows.iter().map(|one| (one, &self.this)));
        let named = all.filter(|((_, waited), _)| !waited.row.is_empty());
        let hottest = named.map(|((hash, waited), other)| (waited.times + times(hash, other), &waited.row));
        let hot = hottest
            .max_by_key(|(times, _)| *times)
            .map(|(times, row)| HotRow { row: row.clone(), share: share(times) });
        ConflictsSample { exact, waiting_share: share(self.this.waiting + self.last.waiting), hot }
    }
}

impl Period {
    fn waits_for(&mut self, transaction: &Transaction, row: &Row) {
        let hashes = transaction.write_set.unique_hashes(row);
        let Some(&hash) = hashes.iter().find(|&&hash| hash != 0) else { return };
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&hash) {
            self.rows.retain(|_, waited| {
                waited.times /= 2;
                waited.times > 0
            });
        }
        let waited = self.rows.entry(hash).or_default();
        waited.times += 1;
        if waited.times >= NAMED_FROM && waited.row.is_empty() {
            waited.row = describe(transaction, row).unwrap_or_default();
        }
    }
}

fn describe(transaction: &Transaction, row: &Row) -> Option<String> {
    let Item::Rows(item) = transaction.items().get(row.item as usize)? else { return None };
    let image = |range: &std::ops::Range<u32>| item.event.rows.get(range.start as usize..range.end as usize);
    let images = Images { before: image(&row.before)?, after: image(&row.after)? };
    Some(row_text::describe(&whole_event(item).with_row(images)))
}
