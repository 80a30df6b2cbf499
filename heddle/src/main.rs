//! Heddle: parallel replication for MySQL and MariaDB.
//!
//! `cli` what people type · `preflight` checks before a run · `backup` where a copy of the source was made · `replica` a server's own replication · `rescue`, `inspect`, `simulate`, `watch` the commands
//! that are more than one channel's run · `supervisor` several channels, a process each · `observe` what is seen while one runs · `top` the same in a terminal · `report` results as text,
//! JSON and HTML. Channels run in the crate `channel`, which applies through
//! `apply`; all decisions are in `engine`.

mod backup;
mod cli;
mod inspect;
mod observe;
mod preflight;
mod replica;
mod report;
mod rescue;
mod simulate;
mod supervisor;
mod top;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
