//! A disk that takes its time, for a server: a small library that is loaded before the server's own.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How much longer each fsync takes, in milliseconds: `bench/workloads/slow_disk.c`.
pub const FSYNC_MS: u32 = 2;
/// Likewise each read of a page.
pub const READ_MS: u32 = 1;

/// Compiles the library for slow syncs into `dir`; returns the server option that loads it.
pub fn option(dir: &Path) -> Result<String> {
    library(dir, "slow_fsync.so", FSYNC_MS, 0)
}

/// The same for slow reads.
pub fn reads(dir: &Path) -> Result<String> {
    library(dir, "slow_reads.so", 0, READ_MS)
}

fn library(dir: &Path, name: &str, fsync_ms: u32, read_ms: u32) -> Result<String> {
    let library: PathBuf = dir.join(name);
    let source = crate::repository().join("bench/workloads/slow_disk.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2"])
        .args([format!("-DFSYNC_US={}", fsync_ms * 1000), format!("-DREAD_US={}", read_ms * 1000)])
        .arg("-o")
        .args([&library, &source])
        .status()
        .context("starting the C compiler")?;
    ensure!(status.success(), "compiling {}", source.display());
    Ok(format!("--preload={}", library.display()))
}
