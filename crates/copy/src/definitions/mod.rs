//! What the source defines: its tables, their foreign keys, and what comes behind the rows: views, triggers, routines, events.
//!
//! Foreign keys are made when all rows are there: until then rows come in any order, and nothing cascades on the target.

mod generated_columns;
mod obstacles;
mod part;
mod program_settings;
mod programs;
mod relations;
mod split;
mod tables;
mod target_names;

pub use generated_columns::GeneratedColumns;
pub use obstacles::not_known;
pub use part::CopyPart;
pub use programs::{
    create as create_programs, in_one_character_set, read as read_programs, renamed as renamed_program,
};
pub use relations::Relations;
pub use split::{constraint_name, split};
pub use tables::{SourceTable, TargetSequences, create_schema, is_read_in_chunks, list, schemas, show_create};
pub use target_names::{TargetNames, TargetStatement};
