//! Tables and their keys, as the target has them or the log says, and the trait that asks for them.

mod catalogue;
mod table;

pub use catalogue::{Catalogue, CatalogueError};
pub use table::{
    BarrierReason, Column, ForeignKey, KeyPart, Leftovers, Table, TableId, TableOrderCause, TimedColumn, UniqueKey,
};
