//! A source that has made a workload, and the state before it that every contender starts from.

use crate::checksum::{Checksums, contents};
use crate::native::gtids;
use crate::server::{Kind, Server};
use crate::sysbench::{self, Load, Script};
use anyhow::{Context, Result};
use std::path::PathBuf;

/// A commit that was answered survives a power failure: on every server, native or heddle's.
pub const DURABLE: [&str; 5] = [
    "--sync-binlog=1",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=1G",
    "--innodb-flush-method=O_DIRECT",
    "--max-allowed-packet=1G",
];

/// What the source does.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub title: &'static str,
    pub script: Script<'static>,
    pub load: Load,
}

#[derive(Debug)]
pub struct Stage {
    pub source: Server,
    /// Stopped; its data folder is what a contender gets a copy of.
    pub start: Server,
    /// What a contender has already: for `gtid_purged`, `gtid_slave_pos` or `--start-gtid`.
    pub gtids: String,
    /// The binary log files that hold the workload and nothing else.
    pub logs: Vec<PathBuf>,
    /// What the source holds after the workload.
    pub wanted: Checksums,
    pub transactions: u64,
}

impl Stage {
    pub fn new(kind: Kind, workload: &Workload) -> Result<Self> {
        let start = Server::start(kind, &DURABLE)?;
        sysbench::prepare(&start, workload.script, workload.load)?;
        let before = gtids(&start)?;
        let old_logs = start.binary_logs()?;
        start.stop()?;
        let source = Server::start_from(kind, &DURABLE, Some(&start.data()))?;
        sysbench::run(&source, workload.script, workload.load)?;
        source.execute("FLUSH BINARY LOGS")?;
        let mut logs = source.binary_logs()?;
        logs.pop();
        let logs = logs.split_off(old_logs.len());
        let wanted = contents(&source).context("what the source holds")?;
        Ok(Self { source, start, gtids: before, logs, wanted, transactions: workload.load.events })
    }
}
