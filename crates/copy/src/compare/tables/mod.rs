//! What is compared: definitions of both servers, what of two tables belongs together, one form for each pair of columns. Pure, but for reading the definitions.

pub mod canonical;
pub mod definition;
pub mod fetched_values;
pub mod plan;
