//! Rows that are read from a running server, and its log: which of the two says what a row is.
//!
//! A read sees the server between two places of its log: all up to `low` is in what it saw, nothing behind `high` is. What the log changes in between
//! may be in it or not. [`window`] places transactions, [`touched`] says which rows of a read are those of the log, [`settle`] puts the two together, and
//! [`round`] decides which tables a copy has to read again. The servers' answers that make a window: the copy crate.
//!
//! Nothing here reads rows or logs.

mod round;
mod settle;
mod touched;
mod window;

#[cfg(test)]
mod model;

pub use round::{Finding, Reading, Round};
pub use settle::{RowChange, settle};
pub use touched::{RowOrigin, Touched};
pub use window::{Low, Side, Window};
