//! Reports and benchmarks as HTML and SVG: escaping, tables, tiles, charts for a page, pictures that stand alone.
//!
//! Everything is a function of its arguments that returns text. Pages need no scripts and no network. No report's words and no
//! numbers of ours are here: the reports beside their subjects and the benchmarks bring them.

mod axis;
pub mod html;
mod lines;
pub mod picture;
mod text;

pub use axis::Axis;
pub use lines::{Line, lines};
pub use text::{escape, thousands};
