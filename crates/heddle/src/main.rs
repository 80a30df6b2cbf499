//! Heddle: parallel replication for MySQL and MariaDB.
//!
//! `cli` what people type · `preflight` the dry run · `backup` where a copy of the source was made · `supervisor` several channels, a process
//! each. What the other commands do is in crates of their own: `insight`, `watch`, `rescue`, `observe`, `serve`, `channel`.

mod backup;
mod cli;
mod preflight;
mod supervisor;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
