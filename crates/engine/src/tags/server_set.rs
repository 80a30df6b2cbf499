//! One transaction's write set as a MySQL server makes it: not ours, which is exact.
//!
//! The differences: a foreign key's value counts as written, also when it does not change; tables without a key that
//! identifies their rows give nothing at all; and a table that others refer to makes the whole set useless. The hashes
//! are not the server's numbers: they are equal when the server's are, and that is what counts.

/// What a server's tracker sees of a transaction's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSet {
    /// Of each image of each row: every unique key without NULLs, every foreign key. May repeat.
    pub hashes: Vec<u64>,
    /// A row of a table without a primary key (or a unique key of whole columns without NULLs).
    pub missing_keys: bool,
    /// A row of a table that foreign keys refer to.
    pub referenced: bool,
    /// A value or a table whose keys are not known here: the server would have had a hash.
    pub unknown: bool,
}

/// What of a foreign key is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignKeyHashes {
    /// Each column by itself, NULLs left out; a column of several foreign keys counts for the last.
    ByColumn,
    /// The columns together, NULLs left out of it: so all rows without a reference share one hash.
    ByKey,
}
