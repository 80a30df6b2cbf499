//! A table as it is read: which columns, by which key, in which statements, and its values as literals for another server.
//!
//! Rows are compared and ordered by the server alone: the next chunk begins behind the last row as the server ordered it.

mod definition;
mod key;
mod literal;
mod query;
mod size;

pub(crate) use definition::is_generated;
pub use definition::{ChunkColumn, TableDefinition, TableName, is_transactional};
pub use key::{ChunkKey, KeyColumn};
pub(crate) use key::{IndexColumn, IndexPart, UniqueIndex, unique_indexes};
pub use literal::{ValueKind, key_literal, put_literal};
pub use query::{ChunkQuery, KeyBound};
pub use size::ChunkSize;
