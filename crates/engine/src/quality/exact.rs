//! What exact dependencies leave to run in parallel: width, the longest chain, and why it is so long.
//!
//! The stream is looked at in windows of consecutive transactions, each as if all before it were committed: what is
//! farther apart than a window holds up no replica, and memory stays bounded. In a window a transaction follows the last
//! writer of each key that it touches, the readers of each key that it writes, whole-table uses of its tables, and
//! barriers. With as many workers as it takes, it starts when the last of those ends; the end of the last one is the
//! window's critical path. Two measures: `levels`, in transactions, and time, by the costs that the caller states.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::HeavyHitters;
use crate::schema::TableId;
use crate::transaction::{TableAccess, TableUse};

/// Transactions of a window.
pub const WINDOW_TRANSACTIONS: usize = 65_536;
/// A window ends early when it has so many keys.
pub const WINDOW_KEYS_MAX: usize = 1 << 20;
/// A transaction that takes so long holds up others by itself, in microseconds; so does one that takes so many times what the middle one of
/// its window does, and not less than the minimum.
pub const LARGE_US: u64 = 1_000_000;
pub const LARGE_TIMES: u64 = 50;
pub const LARGE_MIN_US: u64 = 10_000;
/// Keys of which chains are kept: see [`HeavyHitters`].
const HOT_KEYS: usize = 4_096;
/// Tables for which the critical path's share is kept.
const TABLES_MAX: usize = 10_000;

/// Why a transaction starts no earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Link {
    /// It waits for nobody.
    #[default]
    Free,
    /// For the last writer (or a reader) of this key.
    Key(u64),
    /// For the writer of a parent's key that it refers to.
    Reference(u64),
    /// For a use of this table that no key describes.
    Table(TableId),
    /// Nothing runs beside a barrier: it is one, or follows one, of this (the caller's) kind.
    Barrier(u8),
    /// In sums only: a transaction that is large for its window ([`LARGE_US`], [`LARGE_TIMES`]), whatever it waits for.
    Large,
}

/// One transaction as this sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TouchedRows<'a> {
    /// Keys written, before and after; may repeat.
    pub writes: &'a [u64],
    /// Keys of parents referred to.
    pub reads: &'a [u64],
    pub tables: &'a [TableUse],
    /// The caller's kind of barrier.
    pub barrier: Option<u8>,
    /// Estimated time of its execution.
    pub cost_us: u64,
}

/// Where a transaction came to stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainPosition {
    /// Number in the window, from 1.
    pub number: u32,
    /// Number of the last transaction that it follows; 0 for none in the window.
    pub parent: u32,
    /// Length of the longest chain that ends with it, in transactions.
    pub level: u32,
    pub link: Link,
}

/// A key's part in chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HotKey {
    /// Time on critical paths of transactions that waited for this key, as writers or as children.
    pub critical_us: u64,
    /// Of that, as children.
    pub reference_us: u64,
}

/// Sums over windows.
#[derive(Clone, Debug)]
pub struct ExactTotals {
    pub windows: u64,
    pub transactions: u64,
    /// Sum of the windows' longest chains, in transactions.
    pub levels: u64,
    /// Sum of all costs.
    pub work_us: u64,
    /// Sum of the windows' critical paths.
    pub critical_us: u64,
    /// Most transactions of one window that stand at the same level.
    pub width_max: u64,
    /// Time on the critical path by reason; keys and references under hash 0, tables under number 0.
    pub critical_by: BTreeMap<Link, u64>,
    /// The same for single tables that are ordered as a whole.
    pub critical_by_table: BTreeMap<TableId, u64>,
    /// Keys that more than one transaction of a window wrote: the number of those transactions (of windows where it was
    /// one alone, none), and time on the critical path.
    pub hot: HeavyHitters<HotKey>,
}

impl ExactTotals {
    /// Transactions that could run beside each other on average.
    pub fn width(&self) -> Option<f64> {
        (self.levels > 0).then(|| self.transactions as f64 / self.levels as f64)
    }

    /// How many times faster than one after the other, with any number of workers, by the costs that were stated.
    pub fn speedup_max(&self) -> Option<f64> {
        (self.critical_us > 0).then(|| self.work_us as f64 / self.critical_us as f64)
    }
}

/// The uses of one key in the window, as numbers from 1; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
struct KeyUse {
    written: u32,
    readers: Mark,
    /// Transactions that wrote it.
    writers: u32,
}

/// Of several transactions the last, and the one that ends last.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    last: u32,
    latest: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct TableMarks {
    written_all: Mark,
    read_all: Mark,
    touched: Mark,
    written_any: Mark,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    finish_us: u64,
    cost_us: u64,
    /// The one that ends last of those that it follows.
    after: u32,
    level: u32,
    link: Link,
}

#[derive(Debug)]
pub struct ExactModel {
    window: usize,
    keys_max: usize,
    keys: HashMap<u64, KeyUse, FixedState>,
    /// Keys with more than one writer.
    repeated: Vec<u64>,
    tables: HashMap<TableId, TableMarks, FixedState>,
    /// Node 0 stands for "none".
    nodes: Vec<Node>,
    level_counts: Vec<u32>,
    /// The one of all that ends last.
    latest: u32,
    barrier: u32,
    barrier_kind: u8,
    totals: ExactTotals,
}

impl Default for ExactModel {
    fn default() -> Self {
        Self::new(WINDOW_TRANSACTIONS, WINDOW_KEYS_MAX)
    }
}

/// What one transaction follows, as far as it was looked at.
#[derive(Clone, Copy, Default)]
struct Gathered {
    after: u32,
    finish_us: u64,
    level: u32,
    parent: u32,
    link: Link,
    /// How many write the key of `link`.
    writers: u32,
}

impl Gathered {
    /// Of several keys for which it follows the same one, that is the reason which most write.
    #[inline]
    fn follow_key(&mut self, number: u32, own: u32, link: Link, writers: u32, nodes: &[Node]) {
        let before = self.after;
        self.follow(number, own, link, nodes);
        if self.after != before {
            self.writers = writers;
        } else if self.after == number && matches!(self.link, Link::Key(_)) && writers > self.writers {
            (self.link, self.writers) = (link, writers);
        }
    }

    #[inline]
    fn follow(&mut self, number: u32, own: u32, link: Link, nodes: &[Node]) {
        if number == 0 || number == own {
            return;
        }
        let Some(node) = nodes.get(number as usize) else { return };
        self.parent = self.parent.max(number);
        self.level = self.level.max(node.level);
        if node.finish_us > self.finish_us || self.after == 0 {
            self.finish_us = node.finish_us;
            self.after = number;
            self.link = link;
        }
    }

    #[inline]
    fn follow_mark(&mut self, mark: Mark, own: u32, link: Link, nodes: &[Node]) {
        self.follow(mark.latest, own, link, nodes);
        if mark.last != mark.latest {
            self.follow(mark.last, own, link, nodes);
        }
    }
}

impl Mark {
    #[inline]
    fn note(&mut self, own: u32, nodes: &[Node]) {
        let finish = |number: u32| nodes.get(number as usize).map_or(0, |node| node.finish_us);
        self.last = own;
        if self.latest == 0 || finish(own) >= finish(self.latest) {
            self.latest = own;
        }
    }
}

impl ExactModel {
    /// `window` in transactions, `keys_max` in keys.
    pub fn new(window: usize, keys_max: usize) -> Self {
        Self {
            window: window.clamp(1, u32::MAX as usize - 1),
            keys_max: keys_max.max(1),
            keys: HashMap::default(),
            repeated: Vec::new(),
            tables: HashMap::default(),
            nodes: vec![Node::default()],
            level_counts: Vec::new(),
            latest: 0,
            barrier: 0,
            barrier_kind: 0,
            totals: ExactTotals {
                windows: 0,
                transactions: 0,
                levels: 0,
                work_us: 0,
                critical_us: 0,
                width_max: 0,
                critical_by: BTreeMap::new(),
                critical_by_table: BTreeMap::new(),
                hot: HeavyHitters::new(HOT_KEYS),
            },
        }
    }

    /// The next transaction. Begins a new window when the one under way is full.
    pub fn place(&mut self, touched: &TouchedRows<'_>) -> ChainPosition {
        self.place_and_tell(touched, |_| {})
    }

    /// [`ExactModel::place`], and `follows` is told every transaction of the window that it follows directly, by number; some
    /// of them more than once. Whoever follows a barrier is told of it alone, and a barrier of all before it by
    /// [`ChainPosition::parent`].
    pub fn place_and_tell(&mut self, touched: &TouchedRows<'_>, mut follows: impl FnMut(u32)) -> ChainPosition {
        if self.nodes.len() > self.window || self.keys.len() >= self.keys_max {
            self.end_window();
        }
        let own = self.nodes.len() as u32;
        let mut gathered = Gathered::default();
        match touched.barrier {
            Some(kind) => {
                gathered.follow(self.latest, own, Link::Barrier(kind), &self.nodes);
                // Also where nothing is before it: it is what holds up the others.
                gathered.link = Link::Barrier(kind);
                gathered.parent = own - 1;
                gathered.level = self.level_counts.len() as u32;
            }
            None => {
                gathered.follow(self.barrier, own, Link::Barrier(self.barrier_kind), &self.nodes);
                if self.barrier != 0 {
                    follows(self.barrier);
                }
                self.follow_tables(touched, own, &mut gathered, &mut follows);
                self.follow_keys(touched, own, &mut gathered, &mut follows);
            }
        }
        let level = gathered.level + 1;
        self.nodes.push(Node {
            finish_us: gathered.finish_us + touched.cost_us,
            cost_us: touched.cost_us,
            after: gathered.after,
            level,
            link: gathered.link,
        });
        if self.level_counts.len() < level as usize {
            self.level_counts.resize(level as usize, 0);
        }
        if let Some(count) = self.level_counts.get_mut(level as usize - 1) {
            *count += 1;
        }
        let mut latest = Mark { last: self.latest, latest: self.latest };
        latest.note(own, &self.nodes);
        self.latest = latest.latest;
        match touched.barrier {
            // What is remembered of keys and tables stays: who follows those before the barrier follows the barrier.
            Some(kind) => (self.barrier, self.barrier_kind) = (own, kind),
            None => self.note_uses(touched, own),
        }
        self.totals.transactions += 1;
        self.totals.work_us += touched.cost_us;
        ChainPosition { number: own, parent: gathered.parent, level, link: gathered.link }
    }

    fn follow_tables(
        &self,
        touched: &TouchedRows<'_>,
        own: u32,
        gathered: &mut Gathered,
        follows: &mut impl FnMut(u32),
    ) {
        for table_use in touched.tables {
            let Some(marks) = self.tables.get(&table_use.table) else { continue };
            let link = Link::Table(table_use.table);
            let earlier: [Mark; 2] = match table_use.access {
                TableAccess::Keys => [marks.written_all, marks.read_all],
                TableAccess::ReadAll => [marks.written_any, Mark::default()],
                TableAccess::WriteAll => [marks.touched, Mark::default()],
            };
            for mark in earlier {
                gathered.follow_mark(mark, own, link, &self.nodes);
                [mark.last, mark.latest].into_iter().filter(|&number| number != 0).for_each(&mut *follows);
            }
        }
    }

    fn follow_keys(
        &mut self,
        touched: &TouchedRows<'_>,
        own: u32,
        gathered: &mut Gathered,
        follows: &mut impl FnMut(u32),
    ) {
        for &hash in touched.writes {
            let key = self.keys.entry(hash).or_default();
            if key.written == own {
                continue;
            }
            if key.written != 0 {
                gathered.follow_key(key.written, own, Link::Key(hash), key.writers, &self.nodes);
                follows(key.written);
            }
            if key.readers.last != 0 {
                gathered.follow_mark(key.readers, own, Link::Key(hash), &self.nodes);
                follows(key.readers.last);
                follows(key.readers.latest);
            }
            key.writers += 1;
            if key.writers == 2 {
                self.repeated.push(hash);
            }
            (key.written, key.readers) = (own, Mark::default());
        }
        for &hash in touched.reads {
            if let Some(key) = self.keys.get(&hash)
                && key.written != 0
                && key.written != own
            {
                gathered.follow(key.written, own, Link::Reference(hash), &self.nodes);
                follows(key.written);
            }
        }
    }

    /// Reads and tables: only now, as one transaction may use a table in several ways.
    fn note_uses(&mut self, touched: &TouchedRows<'_>, own: u32) {
        for &hash in touched.reads {
            self.keys.entry(hash).or_default().readers.note(own, &self.nodes);
        }
        for table_use in touched.tables {
            let marks = self.tables.entry(table_use.table).or_default();
            marks.touched.note(own, &self.nodes);
            match table_use.access {
                TableAccess::Keys => marks.written_any.note(own, &self.nodes),
                TableAccess::ReadAll => marks.read_all.note(own, &self.nodes),
                TableAccess::WriteAll => {
                    marks.written_all.note(own, &self.nodes);
                    marks.written_any.note(own, &self.nodes);
                }
            }
        }
    }

    fn end_window(&mut self) {
        if self.nodes.len() <= 1 {
            return;
        }
        let large_us = self.large_us();
        let Self { keys, repeated, totals, .. } = self;
        for hash in repeated.drain(..) {
            let writers = keys.get(&hash).map_or(0, |key| u64::from(key.writers));
            totals.hot.add(hash, writers);
        }
        keys.clear();
        self.tables.clear();
        totals.windows += 1;
        totals.levels += self.level_counts.len() as u64;
        totals.width_max = totals.width_max.max(self.level_counts.iter().copied().max().unwrap_or(0).into());
        let mut at = self.latest;
        totals.critical_us += self.nodes.get(at as usize).map_or(0, |node| node.finish_us);
        while let Some(node) = self.nodes.get(at as usize).filter(|_| at != 0) {
            let reason = match node.link {
                Link::Free | Link::Key(_) | Link::Reference(_) | Link::Table(_) if node.cost_us >= large_us => {
                    Link::Large
                }
                Link::Key(hash) => {
                    if let Some(counter) = totals.hot.get_mut(hash) {
                        counter.value.critical_us += node.cost_us;
                    }
                    Link::Key(0)
                }
                Link::Reference(hash) => {
                    if let Some(counter) = totals.hot.get_mut(hash) {
                        counter.value.critical_us += node.cost_us;
                        counter.value.reference_us += node.cost_us;
                    }
                    Link::Reference(0)
                }
                Link::Table(table) => {
                    if totals.critical_by_table.len() < TABLES_MAX || totals.critical_by_table.contains_key(&table) {
                        *totals.critical_by_table.entry(table).or_default() += node.cost_us;
                    }
                    Link::Table(TableId(0))
                }
                reason => reason,
            };
            *totals.critical_by.entry(reason).or_default() += node.cost_us;
            at = node.after;
        }
        self.nodes.truncate(1);
        self.level_counts.clear();
        (self.latest, self.barrier) = (0, 0);
    }

    /// The keys of the windows so far, without the one under way.
    pub fn hot(&self) -> &HeavyHitters<HotKey> {
        &self.totals.hot
    }

    /// From which time on a transaction is large in this window.
    fn large_us(&self) -> u64 {
        let own = self.nodes.get(1..).unwrap_or_default();
        if own.iter().all(|node| node.cost_us < LARGE_MIN_US) {
            return LARGE_US;
        }
        let mut costs: Vec<u64> = own.iter().map(|node| node.cost_us).collect();
        let middle = costs.len() / 2;
        let (_, &mut median, _) = costs.select_nth_unstable(middle);
        (LARGE_TIMES * median).clamp(LARGE_MIN_US, LARGE_US)
    }

    /// Ends the window under way and gives the sums so far; what comes after begins a new window.
    pub fn totals(&mut self) -> &ExactTotals {
        self.end_window();
        &self.totals
    }
}

#[cfg(test)]
mod tests;
