//! Heddle: parallel replication for MySQL and MariaDB.
//!
//! `cli` what people type · `source` where transactions come from · `runtime` threads and queues · `target` where they are
//! applied · `inspect` logs that are only read · `observe` what is seen meanwhile · `report` what is said at the end. All decisions are in the crate `engine`.

mod cli;
mod inspect;
mod observe;
mod preflight;
mod report;
mod rescue;
mod simulate;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
