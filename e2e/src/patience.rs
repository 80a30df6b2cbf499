//! Waiting for what has to happen, without a time that a test asserts on.

use anyhow::{Result, ensure};
use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// A busy machine is slow: this only ends what would never end.
const PATIENCE: Duration = Duration::from_secs(120);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Looks until it is so. `what`: the thing that is waited for, named where it never comes.
pub fn until(what: impl Display, is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    until_within(PATIENCE, what, is_so)
}

/// The same for what nobody waits for so long.
pub fn until_within(patience: Duration, what: impl Display, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !is_so()? {
        ensure!(started.elapsed() < patience, "not within {patience:?}: {what}");
        thread::sleep(BETWEEN_LOOKS);
    }
    Ok(())
}
