//! The source's log, as far as comparing needs it: places, how far the target is, which rows the log touches, and what follows for a row that differs.

pub mod follow;
pub mod place;
pub mod touches;
pub mod verdict;
