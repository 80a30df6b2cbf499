//! The options of the comparison.

use anyhow::{Result, ensure};
use e2e::bench::arguments::{each, list};
use e2e::bench::slow_disk;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};
use std::path::{Path, PathBuf};

pub struct Arguments {
    pub transactions: u64,
    pub grouped: u64,
    pub sessions: u32,
    pub workers: Vec<u16>,
    pub kinds: Vec<Kind>,
    pub workloads: String,
    /// Options of the replicas.
    pub options: Vec<String>,
    pub keep: Option<PathBuf>,
    pub output: PathBuf,
}

/// `dir`: for what a slow disk needs.
pub fn arguments(dir: &Path) -> Result<Arguments> {
    let mut parsed = Arguments {
        transactions: 3_000,
        grouped: 10,
        sessions: 16,
        workers: vec![4, 16],
        kinds: vec![MYSQL_9_7, MARIADB_10_11],
        workloads: String::new(),
        options: Vec::new(),
        keep: None,
        output: e2e::repository().join("bench/results/simulation.md"),
    };
    each(|name, value| {
        match name {
            "--transactions" => parsed.transactions = value.parse()?,
            "--grouped" => parsed.grouped = value.parse()?,
            "--sessions" => parsed.sessions = value.parse()?,
            "--workers" => parsed.workers = list(value)?,
            "--servers" => parsed.kinds = list(value)?,
            "--workloads" => value.clone_into(&mut parsed.workloads),
            "--disk" => {
                ensure!(value == "slow", "known is slow");
                parsed.options.push(slow_disk::option(dir)?);
            }
            "--keep" => parsed.keep = Some(value.into()),
            "--output" => parsed.output = value.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    ensure!(!parsed.workers.is_empty(), "--workers needs a number");
    Ok(parsed)
}
