//! Tables of the engine BLACKHOLE, into which rows go and are gone.
//!
//! To its own applier MySQL says of every row there that it is found; to a `BINLOG` statement it says 1032. So changes and deletions of such rows are left
//! out: there is nothing to change. Inserts are made, and are in the target's binary log.

/// That a table is one.
#[derive(Clone, Copy, Debug)]
pub struct Blackhole;
