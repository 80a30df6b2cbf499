//! Tables of the engine BLACKHOLE, into which rows go and are gone.
//!
//! To its own applier MySQL says of every row there that it is found; to a `BINLOG` statement it says 1032. So changes and deletions of such rows are left
//! out: there is nothing to change. Inserts are made, and are in the target's binary log.

use std::sync::atomic::{AtomicBool, Ordering};

use binlog::TableMap;

/// That a table is one.
#[derive(Debug, Default)]
pub struct Blackhole {
    told: AtomicBool,
}

impl Blackhole {
    /// What is to be said of it, the first time.
    pub fn first_warning(&self, map: &TableMap) -> Option<String> {
        (!self.told.swap(true, Ordering::Relaxed)).then(|| {
            format!(
                "{}.{} is a BLACKHOLE table on the target: changes and deletions of its rows are left out, and are not in the target's binary log",
                map.schema, map.table
            )
        })
    }
}
