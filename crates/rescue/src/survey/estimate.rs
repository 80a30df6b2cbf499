//! What a rescue would take: a sample of the source's log, and of how fast the replica changes rows. Nothing is changed: the rows are
//! in a temporary table.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use engine::survey::totals::Costs;
use engine::survey::{Cause, Definitions, Depth, Totals};
use wire::{ConnectOptions, Connection};

use crate::judge::LogSample;
use insight::inspect::live_server::{self, LiveServer};

/// How much of the source's log is looked at, at most.
const LOG_SAMPLE: Duration = Duration::from_secs(2);
const ROWS_EACH: usize = 500;
const STATEMENTS: usize = 10;
/// Loops, of which the fastest counts: others use the server.
const REPEAT: usize = 3;
/// What Heddle takes for a row of the source's, all of it (the server's row applier, commits, its own part), by what a row of an INSERT of many
/// rows takes. Measured with `bench/rescue`, see bench/results/benchmarks.md.
const HEDDLE_FACTOR: f64 = 2.1;

/// What a sample of the source's log says, and how fast Heddle would apply it.
pub struct Estimate {
    pub log: LogSample,
    /// Bytes of the source's log in a second.
    pub bytes_per_second: Result<u64>,
}

/// `file`: of the source's log, in which the replica is; `None`: the oldest that the source has.
pub fn measure(
    replica: &ConnectOptions,
    source: &ConnectOptions,
    file: Option<String>,
    server_id: u32,
) -> Result<Estimate> {
    let log = sample_log(source, file, server_id)?;
    let statements: u64 = [Cause::Statement, Cause::LoadData]
        .iter()
        .filter_map(|cause| log.barriers.get(cause).map(|blocker| blocker.count))
        .sum();
    let sample = LogSample {
        transactions: log.transactions,
        parallel: log.source.pseudo_group_size().or_else(|| log.groups.mean()),
        statement_share: statements as f64 / log.transactions.max(1) as f64,
    };
    Ok(Estimate { log: sample, bytes_per_second: rate(replica, &log) })
}

fn rate(replica: &ConnectOptions, log: &Totals) -> Result<u64> {
    let rows = log.traffic.rows().max(log.transactions);
    if rows == 0 {
        return Err(anyhow!("the source's log has no transactions yet"));
    }
    let row_s = sample_rows(replica)? * HEDDLE_FACTOR;
    let bytes_each = log.bytes as f64 / rows as f64;
    Ok((bytes_each / row_s) as u64)
}

fn sample_log(source: &ConnectOptions, file: Option<String>, server_id: u32) -> Result<Totals> {
    let live = LiveServer { options: source.clone(), start: file, offset: None, follow: false, server_id };
    let totals = Totals::new(Depth::Traffic, Costs::default());
    let found = live_server::sample(&live, Definitions::default(), totals, None, LOG_SAMPLE);
    Ok(found.context("a sample of the source's log")?.totals)
}

/// Seconds of one row.
fn sample_rows(replica: &ConnectOptions) -> Result<f64> {
    let replica = &mut Connection::connect(replica).context("replica")?;
    if replica.scalar("SELECT @@global.log_bin")?.as_deref() == Some("1") {
        // With binlog_format=STATEMENT it would be logged, under a GTID.
        replica.execute("SET SESSION sql_log_bin=0").context("SET SESSION sql_log_bin=0")?;
    }
    const TABLE: &str = "heddle_sample";
    let schema = replica
        .scalar("SELECT MAX(schema_name) FROM information_schema.schemata WHERE schema_name NOT IN ('mysql','sys','information_schema','performance_schema')")?
        .unwrap_or_else(|| "mysql".to_owned());
    let table = format!("{}.{TABLE}", apply::mysql::server::sql::identifier(&schema));
    let create = format!(
        "CREATE TEMPORARY TABLE {table} (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, KEY (k)) ENGINE=InnoDB"
    );
    replica.execute(create).context("a temporary table on the replica (CREATE TEMPORARY TABLES)")?;
    // It goes with the connection.
    time_inserts(replica, &table)
}

fn time_inserts(replica: &mut Connection, table: &str) -> Result<f64> {
    let text = "heddle".repeat(20);
    let mut best = f64::INFINITY;
    for round in 0..REPEAT {
        let statements: Vec<String> = (0..STATEMENTS)
            .map(|statement| {
                let first = (round * STATEMENTS + statement) * ROWS_EACH;
                let row = |id: usize| format!("({id},{},'{text}')", id * 7919 % 10_007);
                let rows: Vec<String> = (first..first + ROWS_EACH).map(row).collect();
                format!("INSERT INTO {table} VALUES {}", rows.join(","))
            })
            .collect();
        let began = Instant::now();
        for statement in statements {
            replica.execute(statement).context("rows in a temporary table")?;
        }
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(best / (STATEMENTS * ROWS_EACH) as f64)
}
