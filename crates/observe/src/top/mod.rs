//! `heddle top`: channels in a terminal, as the dashboard shows them. It asks each channel's `--http` for its last frame and changes nothing.

pub mod client;
mod run;
mod screen;

pub use run::{has_terminal, once, watch};
