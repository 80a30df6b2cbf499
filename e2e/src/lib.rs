//! Heddle against real servers: starts throw-away MySQL and MariaDB instances, gives them work, runs the built
//! `heddle` binary between them and compares what both ends hold.
//!
//! The servers come from `scripts/servers`, which knows where each one lives. This crate never fetches anything and
//! never skips: a server that is not in the cache is an error that says how to get it.

#![allow(clippy::print_stderr, reason = "tests and benchmarks say what they do")]

pub mod bench;
pub mod case;
pub mod checksum;
pub mod chromium;
pub mod client;
pub mod crash;
pub mod docs;
pub mod galera;
pub mod group;
pub mod heddle;
pub mod hostile;
pub mod http;
pub mod http_proxy;
pub mod invariants;
pub mod keys;
pub mod lagging;
pub mod ledger;
pub mod logged;
pub mod made_table;
pub mod managed;
pub mod matrix;
pub mod mirror;
pub mod native;
pub mod network;
pub mod pair;
pub mod patience;
pub mod policies;
pub mod pool;
pub mod proxy;
pub mod random;
pub mod recorder;
pub mod refusal;
pub mod retagged;
pub mod retagged_runs;
pub mod semisync;
pub mod served;
pub mod server;
pub mod store_crash;
pub mod sysbench;
pub mod takeovers;
pub mod virtual_address;
pub mod workload;

pub use checksum::{Checksums, checksums};
pub use heddle::{Heddle, Run};
pub use native::{native_replica, wait_caught_up};
pub use patience::until;
pub use server::{Kind, Server};
pub use sysbench::{Load, Sysbench};

use std::path::PathBuf;

/// One test per line: name, what it does, a `Result`.
#[macro_export]
macro_rules! tests {
    ($($(#[$attribute:meta])* $name:ident: $body:expr;)*) => {
        $($(#[$attribute])* #[test] fn $name() { if let Err(error) = $body { panic!("{error:#}"); } })*
    };
}

/// The seed of a test's random moments and contents: `HEDDLE_SEED`, or its own. Says how to repeat it: `test` is what `cargo test` takes behind `--test`.
pub fn seed(default: u64, test: &str) -> u64 {
    let seed = std::env::var("HEDDLE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    eprintln!("repeat with: HEDDLE_SEED={seed} cargo test --workspace --test {test}");
    seed
}

/// The checkout's top folder.
pub fn repository() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}
