//! One round of a copy: tables are read, then the log is followed to the end of the last read. Which tables are then as at that end, and which are to be
//! read again.
//!
//! The log of a round is what lies between the end of the round before (of the first round: the first read's `low`) and the end of its last read.
//! A table that was read in chunks by key takes all rows of that log by [overwriting](Reading::Chunks): each change of the log sets its row to what the log has,
//! or removes it, whatever is there. At the end of the log each row is what its last change made it; a row without a change in the log is as it was read,
//! for it was the same all the time. A row that another one displaces meanwhile (a unique value that has moved between two reads) has a change in the log
//! itself, which brings it back. The proof by search is in `model.rs`.
//!
//! A table that was read as a whole, in one consistent read, takes no rows of the round's log: nothing may have changed it in the read's window.

use std::collections::BTreeMap;

use super::window::Side;

/// How a table was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// By key, at different times: the log overwrites its rows.
    Chunks,
    /// In one consistent read, which is the last of the round: at its end the table is as it was read, unless the log changes it in the read's window.
    Whole,
}

/// What the log of a round has of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Rows with all columns. The side is to the window of a whole read.
    Rows(Side),
    /// Rows of which the log has some columns only (`binlog_row_image`), or a part of a JSON value.
    PartialRows(Side),
    /// A statement that changes rows.
    Statement(Side),
    /// Its definition may have changed, or it may be another table.
    Definition,
    /// Rows of its parents whose change may change rows of it unseen: a foreign key with CASCADE or SET NULL.
    Cascade(Side),
}

/// The tables of a round. `T` names a table.
#[derive(Clone, Debug)]
pub struct Round<T> {
    tables: BTreeMap<T, Reading>,
    /// With the first finding that said so.
    again: BTreeMap<T, Finding>,
}

impl<T: Ord + Clone> Round<T> {
    pub fn new(tables: impl IntoIterator<Item = (T, Reading)>) -> Self {
        Self { tables: tables.into_iter().collect(), again: BTreeMap::new() }
    }

    /// What the log has of a table. One that is not in the round was not there when its tables were listed: a definition makes it one to be read.
    pub fn note(&mut self, table: &T, finding: Finding) {
        let must_be_read_again = match (self.tables.get(table), finding) {
            (_, Finding::Definition) => true,
            (None, _) => false,
            (Some(Reading::Chunks), Finding::Rows(_)) => false,
            (Some(Reading::Chunks), Finding::PartialRows(_) | Finding::Statement(_) | Finding::Cascade(_)) => true,
            (
                Some(Reading::Whole),
                Finding::Rows(side) | Finding::PartialRows(side) | Finding::Statement(side) | Finding::Cascade(side),
            ) => side == Side::Within,
        };
        if must_be_read_again && !self.again.contains_key(table) {
            self.again.insert(table.clone(), finding);
        }
    }

    /// Whether the rows that the log has of the table are applied, overwriting.
    pub fn takes_rows(&self, table: &T) -> bool {
        self.tables.get(table) == Some(&Reading::Chunks) && !self.again.contains_key(table)
    }

    /// Tables that are to be read again, with the reason. Those that were read as a whole join them if there are any: in a further round the log behind
    /// their read would have to be applied exactly.
    pub fn to_be_read_again(&self) -> BTreeMap<T, Option<Finding>> {
        let mut again: BTreeMap<T, Option<Finding>> =
            self.again.iter().map(|(table, finding)| (table.clone(), Some(*finding))).collect();
        if !again.is_empty() {
            let whole = self.tables.iter().filter(|(_, reading)| **reading == Reading::Whole);
            for (table, _) in whole {
                again.entry(table.clone()).or_insert(None);
            }
        }
        again
    }

    /// Whether all tables are as the source had them at the end of the round's log, once that is applied.
    pub fn is_settled(&self) -> bool {
        self.again.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_tables_are_read_again() {
        let tables = || Round::new([("chunks", Reading::Chunks), ("whole", Reading::Whole)]);
        for (table, finding, again) in [
            ("chunks", Finding::Rows(Side::Within), &[][..]),
            ("chunks", Finding::PartialRows(Side::Before), &["chunks", "whole"]),
            ("chunks", Finding::Statement(Side::Before), &["chunks", "whole"]),
            ("chunks", Finding::Cascade(Side::Before), &["chunks", "whole"]),
            ("whole", Finding::Rows(Side::Before), &[]),
            ("whole", Finding::Cascade(Side::Before), &[]),
            ("whole", Finding::Cascade(Side::Within), &["whole"]),
            ("whole", Finding::Rows(Side::Within), &["whole"]),
            ("whole", Finding::Statement(Side::Before), &[]),
            ("whole", Finding::Statement(Side::Within), &["whole"]),
            ("new", Finding::Rows(Side::Before), &[]),
            ("new", Finding::Definition, &["new", "whole"]),
        ] {
            let mut round = tables();
            round.note(&table, finding);
            let found: Vec<&str> = round.to_be_read_again().into_keys().collect();
            assert_eq!(found, again, "{table} {finding:?}");
            assert_eq!(round.is_settled(), again.is_empty());
            assert!(!round.takes_rows(&"whole"));
            assert_eq!(round.takes_rows(&"chunks"), !again.contains(&"chunks"));
        }
    }
}
