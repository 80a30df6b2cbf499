//! Kinds of removals that are left out, so that the target keeps what the source has lost. Never decides which tables are taken.

use std::fmt;

/// One kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    DropTable,
    /// `TRUNCATE`, and partitions that are emptied or dropped.
    Truncate,
    DropDatabase,
    /// Rows.
    Delete,
}

impl Removal {
    pub const ALL: [Self; 4] = [Self::DropTable, Self::Truncate, Self::DropDatabase, Self::Delete];

    pub const fn name(self) -> &'static str {
        match self {
            Self::DropTable => "drop-table",
            Self::Truncate => "truncate",
            Self::DropDatabase => "drop-database",
            Self::Delete => "delete",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removals(u8);

impl Removals {
    pub fn contains(self, kind: Removal) -> bool {
        self.0 & kind.bit() != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The target may have rows that the source's table has lost, and goes on to get rows of the same table.
    pub fn keep_rows(self) -> bool {
        self.contains(Removal::Delete) || self.contains(Removal::Truncate)
    }
}

impl FromIterator<Removal> for Removals {
    fn from_iter<T: IntoIterator<Item = Removal>>(kinds: T) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | kind.bit()))
    }
}

/// As the option's value.
impl fmt::Display for Removals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            Removal::ALL.into_iter().filter(|kind| self.contains(*kind)).map(Removal::name).collect();
        f.write_str(&names.join(","))
    }
}
