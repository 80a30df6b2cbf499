//! Measures a server for the costs of the models: short loops of transactions, and short runs of Heddle, in a schema of their own that goes again. Unless it
//! is asked for, nothing of it is written to the server's binary log.

mod fit;
mod own;
mod rows;
mod server;

pub use rows::Shape;

use std::time::Instant;

use anyhow::{Context, Result, bail};
use sim::replica::Costs;
use wire::{ConnectOptions, Connection};

use apply::mysql::{Logged, MySqlTarget};

/// The schema that is made and dropped.
const SCHEMA: &str = "heddle_calibration";
/// Rows of its tables.
const ROWS: u32 = 10_000;
/// Sessions at the same time.
const SESSIONS: u32 = 16;
/// Loops of each kind, of which the middle one counts.
const REPEAT: usize = 3;

/// What was measured, and what comes of it. Times are of one transaction.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Measured {
    pub server: String,
    /// One that changes one row, and one that changes twenty, by rows events.
    pub one_row_us: f64,
    pub twenty_rows_us: f64,
    /// One of nothing but bookkeeping, inside of the server.
    pub bookkeeping_us: f64,
    /// Between two commits of 4 and of 16 sessions that do that.
    pub four_sessions_us: f64,
    pub sixteen_sessions_us: f64,
    /// A statement that does nothing.
    pub round_trip_us: f64,
    /// Heddle without grouping, one row each, in order with 1 and 4 workers.
    pub heddle_us: f64,
    pub heddle_four_us: f64,
    /// In any order with 4 and 16.
    pub heddle_relaxed_four_us: f64,
    pub heddle_relaxed_sixteen_us: f64,
    /// With grouping: one row each with 1 and 4 workers; twenty; and one of ten rows that all change.
    pub grouped_us: f64,
    pub grouped_four_us: f64,
    pub grouped_twenty_rows_us: f64,
    pub grouped_merged_us: f64,
    /// Of a row's image, in bytes, and the share of inserts and deletes.
    pub image_bytes: usize,
    pub moved_share: f64,
    /// Commits are durable (`innodb_flush_log_at_trx_commit=1`).
    pub durable: bool,
    /// A replica's commits are in its binary log too, and that is synced (`sync_binlog=1`).
    pub synced_log: bool,
    /// So were those that were measured.
    pub logged: bool,
}

/// Whether the server can be reached: before the log is read, which may take long.
pub fn reach(options: &ConnectOptions) -> Result<()> {
    Connection::connect(options).map(|_| ()).context("--calibrate")
}

/// Runs the loops; `costs` gives what can not be measured from outside. `logged`: with the binary log.
pub fn measure(options: &ConnectOptions, costs: &Costs, shape: Shape, logged: bool) -> Result<(Costs, Measured)> {
    let mut control = Connection::connect(options).context("--calibrate")?;
    let mut measured = Measured {
        logged,
        image_bytes: shape.image_bytes,
        moved_share: shape.moved,
        ..about(&mut control).context("--calibrate")?
    };
    // A replica must get no transactions of its own.
    control.rows("SET SESSION sql_log_bin = 0").context("--calibrate")?;
    let timed = prepare(&mut control, shape).and_then(|()| time(options, shape, logged, &mut measured));
    let dropped = control.rows(format!("DROP DATABASE IF EXISTS {SCHEMA}"));
    timed.context(
        "--calibrate: it needs the rights that heddle replicate needs on a target, and to create a procedure",
    )?;
    dropped.context("--calibrate: dropping what it made")?;
    Ok((fit::derive(&measured, costs), measured))
}

fn about(connection: &mut Connection) -> Result<Measured> {
    let rows = connection.rows(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', \
         'log_slave_updates', 'log_replica_updates')",
    )?;
    let value = |name: &str| {
        let row = rows.iter().find(|row| row.text(0).ok().flatten() == Some(name));
        row.and_then(|row| row.text(1).ok().flatten()).unwrap_or_default().to_owned()
    };
    let updates = value("log_replica_updates") == "ON" || value("log_slave_updates") == "ON";
    Ok(Measured {
        server: value("version"),
        durable: value("innodb_flush_log_at_trx_commit") == "1",
        synced_log: value("log_bin") == "ON" && updates && value("sync_binlog") == "1",
        ..Measured::default()
    })
}

/// Tables to change, one for the server's sessions and one for Heddle, and a row of bookkeeping for each session, as replicas have it.
fn prepare(connection: &mut Connection, shape: Shape) -> Result<()> {
    let mut run =
        |sql: String| connection.rows(&sql).map(|_| ()).with_context(|| sql.chars().take(60).collect::<String>());
    run(format!("DROP DATABASE IF EXISTS {SCHEMA}"))?;
    run(format!("CREATE DATABASE {SCHEMA}"))?;
    run(format!("CREATE TABLE {SCHEMA}.progress (session INT PRIMARY KEY, position CHAR(60) NOT NULL) ENGINE=InnoDB"))?;
    run(format!(
        "CREATE PROCEDURE {SCHEMA}.work(number INT, first INT, transactions INT) BEGIN DECLARE n INT DEFAULT 0; WHILE n < transactions DO \
         START TRANSACTION; UPDATE {SCHEMA}.progress SET position = CONCAT('binlog.000001:', first + n) WHERE session = number; \
         COMMIT; SET n = n + 1; END WHILE; END"
    ))?;
    let sessions: Vec<String> = (0..SESSIONS).map(|number| format!("({number},'')")).collect();
    run(format!("INSERT INTO {SCHEMA}.progress VALUES {}", sessions.join(",")))?;
    for table in ["t", "u"] {
        run(format!("CREATE TABLE {SCHEMA}.{table} {}", Shape::columns()))?;
        const AT_ONCE: u32 = 1000;
        for first in (0..ROWS).step_by(AT_ONCE as usize) {
            let rows: Vec<String> =
                (first..first + AT_ONCE).map(|id| format!("({id},{},{})", id / 3, shape.text_sql())).collect();
            run(format!("INSERT INTO {SCHEMA}.{table} VALUES {}", rows.join(",")))?;
        }
    }
    Ok(())
}

fn time(options: &ConnectOptions, shape: Shape, logged: bool, measured: &mut Measured) -> Result<()> {
    let in_log = if logged { Logged::Yes } else { Logged::No };
    let target = MySqlTarget::connect_as_replica(options.clone(), "heddle-calibration", in_log);
    server::measure(&target.map_err(anyhow::Error::new)?, shape, measured)?;
    own::measure(options, shape, logged, measured)
}

fn us(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn middle(mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    Ok(in_turns(1, |_| run())?.into_iter().sum())
}

/// The middle one of several runs of each kind, in turns: what else the machine does meanwhile then meets all of them alike.
fn in_turns(kinds: usize, mut run: impl FnMut(usize) -> Result<f64>) -> Result<Vec<f64>> {
    let mut found = vec![Vec::new(); kinds];
    for _ in 0..REPEAT {
        for (kind, found) in found.iter_mut().enumerate() {
            found.push(run(kind)?);
        }
    }
    let middle = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(REPEAT / 2).copied()
    };
    match found.into_iter().map(middle).collect() {
        Some(middles) => Ok(middles),
        None => bail!("no loop was run"),
    }
}
