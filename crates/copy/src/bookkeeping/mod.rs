//! What the target remembers of a copy under way: in the schema of Heddle's own tables, so that a copy goes on after any end of the process.
//!
//! `copies` a row for each channel whose rows are not all there · `copy_tables` its tables · `copy_ranges` parts of tables, and how far each is placed.
//! `epoch` is the number of the process that copies: whoever places rows holds the row's lock for reading, so that one that has lost the copy places none.

mod ranges;
mod state;
mod tables;

pub use ranges::{
    RangeRecord, TableRecord, TableStatus, forget_table, ranges_of, record_frontier, set_ranges, set_table, tables_of,
};
pub use state::{CopyPlace, CopyState, Phase};
pub use tables::{COPY_TABLES, create};
