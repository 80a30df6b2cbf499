//! What the source defines: its tables, their foreign keys, and what comes behind the rows: views, triggers, routines, events.
//!
//! Foreign keys are made when all rows are there: until then rows come in any order, and nothing cascades on the target.

mod programs;
mod relations;
mod split;
mod tables;

pub use programs::{create as create_programs, read as read_programs};
pub use relations::Relations;
pub use split::split;
pub use tables::{SourceTable, create_schema, list, schemas, show_create};
