//! The report of one channel: its fields, its text, and what became of earlier advice. Pure.

pub mod follow_up;
pub mod model;
pub mod text;

pub use model::Report;
