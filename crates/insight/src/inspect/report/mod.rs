//! What `heddle inspect` found, in the form that all its outputs are made from.

mod advice;
pub mod build;
pub mod causes;
pub mod findings;
pub mod html;
pub mod model;
pub mod search;
pub mod text;
pub mod verdict;

pub use model::InspectReport;
