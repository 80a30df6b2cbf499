//! Rules about what has to wait for what. One file each.

pub mod commit_order;
pub mod dependency;
pub mod hot_rows;
pub mod intermediate;
pub mod source_tags;
