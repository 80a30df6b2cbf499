//! Measures how parallel a log is by the source's tags, and by the new ones.

use engine::quality::Intervals;
use engine::retag::{NewTag, Tag, Totals};
use serde::{Deserialize, Serialize};

/// Counts and parallelism of tagged transactions.
#[derive(Debug, Clone, Default)]
pub struct TagMeasures {
    /// Transactions with a tag.
    pub transactions: u64,
    /// Transactions whose tag differs from the source's.
    pub changed: u64,
    pub causes: Totals,
    source: Tags,
    new: Tags,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tags {
    /// MySQL.
    intervals: Intervals,
    /// MariaDB: groups of transactions with the same commit id.
    groups: u64,
}

/// How many transactions can run in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parallelism {
    MySql {
        amil: f64,
        pseudo_group_size: f64,
    },
    /// Transactions with the same commit id, on average.
    MariaDb {
        group_size: f64,
    },
}

impl TagMeasures {
    /// MySQL's numbers begin again with each file.
    pub fn begin_file(&mut self) {
        self.source.intervals.rotate();
        self.new.intervals.rotate();
    }

    pub fn add(&mut self, tag: &NewTag) {
        self.transactions += 1;
        self.changed += u64::from(tag.is_changed());
        self.causes.add(tag.cause);
        match tag.tag {
            Tag::LogicalClock { sequence_number, source, last_committed } => {
                // Without tags one runs after the other.
                self.source.intervals.add(source.unwrap_or(sequence_number - 1), sequence_number);
                self.new.intervals.add(last_committed, sequence_number);
            }
            Tag::CommitGroup { source, new } => {
                self.source.groups += u64::from(source.begins);
                self.new.groups += u64::from(new.begins);
            }
        }
    }

    /// The parallelism of the source's tags. `None`: it has none.
    pub fn source(&self) -> Option<Parallelism> {
        self.source.parallelism(self.transactions)
    }

    /// The parallelism of the new tags.
    pub fn retagged(&self) -> Option<Parallelism> {
        self.new.parallelism(self.transactions)
    }
}

impl Tags {
    fn parallelism(&self, transactions: u64) -> Option<Parallelism> {
        if self.groups > 0 {
            return Some(Parallelism::MariaDb { group_size: transactions as f64 / self.groups as f64 });
        }
        let (amil, pseudo_group_size) = self.intervals.amil().zip(self.intervals.pseudo_group_size())?;
        Some(Parallelism::MySql { amil, pseudo_group_size })
    }
}
