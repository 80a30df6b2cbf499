//! Runs every case against the real servers named by HEDDLE_TEST_MARIADB_URL and HEDDLE_TEST_MYSQL_URL: an
//! administrator's URL, such as mysql://root@127.0.0.1:3306. The servers need log_bin, max_allowed_packet=64M,
//! local_infile=1, MySQL also gtid_mode=ON; they must run on this machine. A case is skipped, with the reason, when
//! its server is not named. Arguments are parts of case names to run.
//!
//! Never asserts on time; the throughput case prints its measurement.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::unnecessary_wraps,
    reason = "a test that fails may panic, and says how it went; all cases have one type"
)]

mod dump;
mod login;
mod statements;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use support::{Skip, TestServer};

type Case = (&'static str, fn(&TestServer) -> Result<(), Skip>);

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let cases: Vec<Case> = [statements::CASES, login::CASES, dump::CASES].concat();
    let (mut passed, mut failed, mut skipped) = (0, Vec::new(), 0);
    for (flavour, variable) in [("mariadb", "HEDDLE_TEST_MARIADB_URL"), ("mysql", "HEDDLE_TEST_MYSQL_URL")] {
        let server = std::env::var(variable).ok().map(|url| TestServer::new(&url));
        for (name, case) in &cases {
            let name = format!("{flavour}::{name}");
            if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
                continue;
            }
            let outcome = match &server {
                None => Ok(Err(Skip(format!("{variable} is not set")))),
                Some(server) => catch_unwind(AssertUnwindSafe(|| case(server))),
            };
            match outcome {
                Ok(Ok(())) => {
                    println!("test {name} ... ok");
                    passed += 1;
                }
                Ok(Err(Skip(reason))) => {
                    println!("test {name} ... ignored, {reason}");
                    skipped += 1;
                }
                Err(_) => {
                    println!("test {name} ... FAILED");
                    failed.push(name);
                }
            }
        }
    }
    println!("\n{passed} passed; {} failed; {skipped} ignored", failed.len());
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("failed: {}", failed.join(", "));
        ExitCode::FAILURE
    }
}
