//! Measures a server for the costs of the models: short loops inside of it, in a schema of their own that goes again. Nothing
//! of it is written to the server's binary log.

use std::time::Instant;

use anyhow::{Context, Result};
use sim::replica::Costs;
use wire::{ConnectOptions, Connection};

/// The schema that is made and dropped.
const SCHEMA: &str = "heddle_calibration";
const ROWS: u32 = 10_000;
/// Transactions of one loop, and rows of the larger ones.
const LOOP: u32 = 400;
const ROWS_EACH: u32 = 20;
/// Loops of each kind, of which the fastest counts: others may use the server.
const REPEAT: u32 = 3;

/// What was measured, and what comes of it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Measured {
    pub server: String,
    /// One transaction that changes one row, and one that changes twenty.
    pub one_row_us: f64,
    pub twenty_rows_us: f64,
    /// Commits are durable (`innodb_flush_log_at_trx_commit=1`).
    pub durable: bool,
}

/// Runs the loops; `costs` gives what can not be measured from outside.
pub fn measure(options: &ConnectOptions, costs: &Costs) -> Result<(Costs, Measured)> {
    let mut connection = Connection::connect(options).context("--calibrate")?;
    let mut text = |sql: &str| -> Result<String> {
        let rows = connection.rows(sql).context("--calibrate")?;
        Ok(rows.first().and_then(|row| row.text(0).ok().flatten()).unwrap_or_default().to_owned())
    };
    let server = text("SELECT @@version")?;
    let durable = text("SELECT @@global.innodb_flush_log_at_trx_commit")? == "1";
    let made = prepare(&mut connection);
    let measured = made.and_then(|()| {
        Ok((
            timed(&mut connection, 1).context("one row each")?,
            timed(&mut connection, ROWS_EACH).context("twenty rows each")?,
        ))
    });
    let dropped = connection.rows(format!("DROP DATABASE IF EXISTS {SCHEMA}"));
    let (one, many) =
        measured.context("--calibrate: it needs the right to create a schema, a table and a procedure")?;
    dropped.context("--calibrate: dropping what it made")?;
    let measured = Measured { server, one_row_us: one, twenty_rows_us: many, durable };
    Ok((derive(&measured, costs), measured))
}

/// From two times: what a row costs is their difference; what a transaction costs beside is sync and bookkeeping, of which
/// the second is taken to relate to a row's cost as by default.
fn derive(measured: &Measured, defaults: &Costs) -> Costs {
    let row_us = ((measured.twenty_rows_us - measured.one_row_us) / f64::from(ROWS_EACH - 1)).max(1.0);
    let fixed = (measured.one_row_us - row_us).max(1.0);
    let scale = row_us / defaults.row_us;
    let bookkeeping = (defaults.transaction_us * scale).min(fixed);
    let (transaction_us, sync_us) =
        if measured.durable { (bookkeeping, (fixed - bookkeeping).max(0.0)) } else { (fixed, 0.0) };
    Costs {
        row_us,
        transaction_us,
        sync_us,
        dispatch_us: defaults.dispatch_us * scale,
        commit_us: defaults.commit_us * scale,
        group_us: defaults.group_us * scale,
        group_row_us: defaults.group_row_us * scale,
        ..*defaults
    }
}

fn prepare(connection: &mut Connection) -> Result<()> {
    for sql in [
        // A replica must get no transactions of its own.
        "SET SESSION sql_log_bin = 0".to_owned(),
        format!("DROP DATABASE IF EXISTS {SCHEMA}"),
        format!("CREATE DATABASE {SCHEMA}"),
        format!(
            "CREATE TABLE {SCHEMA}.t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL DEFAULT '', KEY (k)) ENGINE=InnoDB"
        ),
        format!(
            "CREATE PROCEDURE {SCHEMA}.fill() BEGIN DECLARE n INT DEFAULT 0; START TRANSACTION; WHILE n < {ROWS} DO \
             INSERT INTO {SCHEMA}.t (id, k) VALUES (n, n); SET n = n + 1; END WHILE; COMMIT; END"
        ),
        format!(
            "CREATE PROCEDURE {SCHEMA}.work(rows_each INT) BEGIN DECLARE n INT DEFAULT 0; DECLARE r INT; WHILE n < {LOOP} DO \
             START TRANSACTION; SET r = 0; WHILE r < rows_each DO \
             UPDATE {SCHEMA}.t SET c = CONCAT('c', n) WHERE id = (n * 7919 + r * 104729) % {ROWS}; SET r = r + 1; END WHILE; \
             COMMIT; SET n = n + 1; END WHILE; END"
        ),
        format!("CALL {SCHEMA}.fill()"),
    ] {
        connection.rows(&sql).with_context(|| sql.chars().take(60).collect::<String>())?;
    }
    Ok(())
}

/// Microseconds of one transaction.
fn timed(connection: &mut Connection, rows_each: u32) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..REPEAT {
        let began = Instant::now();
        connection.rows(format!("CALL {SCHEMA}.work({rows_each})"))?;
        best = best.min(began.elapsed().as_secs_f64() * 1e6 / f64::from(LOOP));
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_to_what_was_measured() {
        for durable in [false, true] {
            let measured = Measured { server: String::new(), one_row_us: 930.0, twenty_rows_us: 1500.0, durable };
            let costs = derive(&measured, &Costs::default());
            assert!((costs.row_us - 30.0).abs() < 1e-9);
            assert!((costs.transaction_us + costs.row_us + costs.sync_us - 930.0).abs() < 1e-9);
            assert_eq!(costs.sync_us > 0.0, durable);
        }
    }
}
