//! A server's own replication, for `inspect`, `simulate`, `watch` and `rescue`: `status` is a replica's status in the words of every version, `statements` the SQL
//! that steers it, `questions` asks a server, `settings` the names of its settings and which to change, `names` the names of what a rescue leaves on the server, `procedures` what steers replication on Amazon RDS.
//!
//! It never decides what is done with the answers.

pub mod names;
pub mod procedures;
pub mod questions;
pub mod settings;
pub mod statements;
pub mod status;
