//! What a run has to say that ends with an error.

use anyhow::{Result, ensure};

use crate::heddle::Run;

/// A table for those who need no other.
pub const TABLE: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(50))";

/// The run failed, said all of this, and what to do.
pub fn refused(run: &Run, texts: &[&str]) -> Result<()> {
    for text in texts {
        run.failed_with(text)?;
    }
    ensure!(matches!(run.status.code(), Some(1 | 2 | 75)), "not an exit of its own: {run}");
    ensure!(!run.stderr.contains("panicked"), "{run}");
    Ok(())
}

/// As [`refused`], with advice.
pub fn refused_with_remedy(run: &Run, texts: &[&str]) -> Result<()> {
    refused(run, texts)?;
    ensure!(run.stderr.contains("what to do:"), "no advice: {run}");
    Ok(())
}
