//! A disk whose fsync takes longer, for a server: a small library that is loaded before the server's own.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How much longer each fsync takes, in milliseconds: `bench/workloads/slow_fsync.c`.
pub const FSYNC_MS: u32 = 2;

/// Compiles the library into `dir`; returns the server option that loads it.
pub fn option(dir: &Path) -> Result<String> {
    let library: PathBuf = dir.join("slow_fsync.so");
    let source = crate::repository().join("bench/workloads/slow_fsync.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .status()
        .context("starting the C compiler")?;
    ensure!(status.success(), "compiling {}", source.display());
    Ok(format!("--preload={}", library.display()))
}
