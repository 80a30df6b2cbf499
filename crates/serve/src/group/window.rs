//! MariaDB, a log with several domains: groups wait here until enough of the log behind them is known. Pure.
//!
//! A replica with workers applies each domain by itself. If two transactions of different domains change the same rows, only the time between them keeps their order: the first one has
//! ended long before the second one is read. A group ends later than its first transactions would, so the second one could overtake it. So a group with a table that another domain
//! touches is sent as single transactions, as the source sends them.
//!
//! Foreign keys are not seen: rows that a cascade changes are in no event.

use std::collections::{HashMap, VecDeque};

use super::open_group::FormedGroup;
use super::statement::TableKey;

/// Tables whose domain is remembered.
const TABLES_MAX: usize = 100_000;

/// Who has touched a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Domain(u32),
    Several,
}

/// The tables that a transaction changes.
#[derive(Debug, Clone, Copy)]
pub(super) enum TouchedTables<'a> {
    Tables(&'a [TableKey]),
    /// A statement, or a transaction that was not read: any table.
    Unknown,
}

/// A group in both forms.
#[derive(Debug)]
pub(super) struct HeldGroup {
    pub domain: u32,
    pub tables: Vec<TableKey>,
    pub singles: Vec<u8>,
    pub group: Vec<u8>,
    pub formed: FormedGroup,
    /// The replica may have a part of it: it is sent as it was.
    pub is_again: bool,
}

#[derive(Debug)]
enum Item {
    Events(Vec<u8>),
    Group { held: HeldGroup, is_overtaken: bool },
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Self::Events(events) => events.len(),
            Self::Group { held, .. } => held.singles.len(),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Window {
    /// So much of the log must be known behind a group.
    behind_bytes: usize,
    items: VecDeque<Item>,
    bytes: usize,
    owners: HashMap<TableKey, Owner>,
}

impl Window {
    pub fn new(behind_bytes: usize) -> Self {
        Self { behind_bytes, items: VecDeque::new(), bytes: 0, owners: HashMap::new() }
    }

    /// Nothing is held.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The next transaction of the log. Its events, or its group's, are given later.
    pub fn touch(&mut self, domain: u32, touched: TouchedTables<'_>) {
        let TouchedTables::Tables(tables) = touched else {
            for item in &mut self.items {
                if let Item::Group { held, is_overtaken } = item {
                    *is_overtaken |= held.domain != domain;
                }
            }
            return;
        };
        if self.owners.len() + tables.len() > TABLES_MAX {
            self.owners.retain(|_, owner| *owner == Owner::Several);
        }
        for table in tables {
            let owner = self.owners.entry(*table).or_insert(Owner::Domain(domain));
            if *owner != Owner::Domain(domain) {
                *owner = Owner::Several;
            }
        }
    }

    /// Events that are sent as they are.
    pub fn events(&mut self, events: &[u8]) {
        self.bytes += events.len();
        match self.items.back_mut() {
            Some(Item::Events(last)) => last.extend_from_slice(events),
            _ => self.items.push_back(Item::Events(events.to_vec())),
        }
    }

    pub fn group(&mut self, held: HeldGroup) {
        self.bytes += held.singles.len();
        self.items.push_back(Item::Group { held, is_overtaken: false });
    }

    /// What can be sent now is added to these.
    pub fn release(&mut self, ready: &mut Vec<u8>, formed: &mut Vec<FormedGroup>) {
        while let Some(front) = self.items.front() {
            let behind = self.bytes - front.len();
            if matches!(front, Item::Group { held, .. } if !held.is_again) && behind < self.behind_bytes {
                return;
            }
            self.pop(true, ready, formed);
        }
    }

    /// All is sent. Of what follows nothing is known yet, so groups that have too little of the log behind them are sent as single transactions.
    pub fn release_all(&mut self, ready: &mut Vec<u8>, formed: &mut Vec<FormedGroup>) {
        self.release(ready, formed);
        while !self.items.is_empty() {
            self.pop(false, ready, formed);
        }
    }

    fn pop(&mut self, is_known: bool, ready: &mut Vec<u8>, formed: &mut Vec<FormedGroup>) {
        let Some(item) = self.items.pop_front() else { return };
        self.bytes -= item.len();
        match item {
            Item::Events(events) => ready.extend_from_slice(&events),
            Item::Group { held, is_overtaken } => {
                let is_alone = is_known && !is_overtaken && !held.tables.iter().any(|table| self.is_shared(*table));
                if held.is_again || is_alone {
                    ready.extend_from_slice(&held.group);
                    formed.push(held.formed);
                } else {
                    ready.extend_from_slice(&held.singles);
                }
            }
        }
    }

    fn is_shared(&self, table: TableKey) -> bool {
        self.owners.get(&table) == Some(&Owner::Several)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(domain: u32, tables: &[&str], name: &str) -> HeldGroup {
        HeldGroup {
            domain,
            tables: tables.iter().map(|table| TableKey::of(table.as_bytes())).collect(),
            singles: format!("[{name} singly]").into_bytes(),
            group: format!("[{name}]").into_bytes(),
            formed: FormedGroup { gtids: Vec::new() },
            is_again: false,
        }
    }

    fn add(window: &mut Window, held: HeldGroup) {
        window.touch(held.domain, TouchedTables::Tables(&held.tables.clone()));
        window.group(held);
    }

    fn sent(window: &mut Window, all: bool) -> String {
        let (mut ready, mut formed) = (Vec::new(), Vec::new());
        if all {
            window.release_all(&mut ready, &mut formed);
        } else {
            window.release(&mut ready, &mut formed);
        }
        let text = String::from_utf8(ready).unwrap();
        assert_eq!(
            text.matches(']').count() - text.matches("singly").count() - text.matches("-]").count(),
            formed.len()
        );
        text
    }

    #[test]
    fn a_group_waits_for_what_follows() {
        let mut window = Window::new(20);
        add(&mut window, held(1, &["a"], "one"));
        assert_eq!(sent(&mut window, false), "");
        add(&mut window, held(2, &["b"], "two"));
        window.events(b"[-]");
        assert_eq!(sent(&mut window, false), "");
        add(&mut window, held(1, &["a"], "three"));
        assert_eq!(sent(&mut window, false), "[one]");
        // Nothing is known of what follows.
        assert_eq!(sent(&mut window, true), "[two singly][-][three singly]");
        assert_eq!(window.bytes, 0);
    }

    #[test]
    fn a_table_of_two_domains_is_in_no_group() {
        let mut window = Window::new(20);
        add(&mut window, held(1, &["a", "b"], "one"));
        add(&mut window, held(2, &["c"], "two"));
        add(&mut window, held(2, &["b"], "three"));
        add(&mut window, held(2, &["c"], "four"));
        add(&mut window, held(1, &["b"], "five"));
        add(&mut window, held(1, &["a"], "six"));
        add(&mut window, held(1, &["a"], "seven"));
        assert_eq!(sent(&mut window, false), "[one singly][two][three singly][four][five singly]");
        assert_eq!(sent(&mut window, true), "[six singly][seven singly]");
    }

    #[test]
    fn a_statement_may_touch_all() {
        let mut window = Window::new(10);
        add(&mut window, held(1, &["a"], "one"));
        add(&mut window, held(2, &["b"], "two"));
        window.touch(2, TouchedTables::Unknown);
        window.events(b"[-]");
        add(&mut window, held(1, &["a"], "three"));
        window.events(b"[-][-][-][-]");
        assert_eq!(sent(&mut window, false), "[one singly][two][-][three][-][-][-][-]");
    }

    #[test]
    fn what_the_replica_has_in_part_stays_as_it_was() {
        let mut window = Window::new(20);
        add(&mut window, HeldGroup { is_again: true, ..held(1, &["a"], "one") });
        add(&mut window, held(2, &["a"], "two"));
        assert_eq!(sent(&mut window, false), "[one]");
        assert_eq!(sent(&mut window, true), "[two singly]");
    }
}
