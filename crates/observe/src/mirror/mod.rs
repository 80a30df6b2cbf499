//! A mirror in words: `text` for people, `log` a line now and then. It asks no server.

pub mod log;
pub mod text;
