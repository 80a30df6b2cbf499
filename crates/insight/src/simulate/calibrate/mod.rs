//! Measures a server for the costs of the models: short loops of transactions, and short runs of Heddle, in a schema of their own that goes again. Unless it
//! is asked for, nothing of it is written to the server's binary log.

mod calibration;
mod fit;
mod own;
mod rows;
mod server;

pub use calibration::Calibration;
pub use rows::Shape;

use anyhow::{Context, Result};
use sim::replica::Costs;
use wire::{ConnectOptions, Connection};

use apply::mysql::{BinlogChoice, MySqlTarget};

use self::calibration::{ROWS, SCHEMA, SESSIONS};

/// Whether the server can be reached: before the log is read, which may take long.
pub fn reach(options: &ConnectOptions) -> Result<()> {
    Connection::connect(options).map(|_| ()).context("--calibrate")
}

/// Runs the loops; `costs` gives what can not be measured from outside. `logged`: with the binary log.
pub fn measure(options: &ConnectOptions, costs: &Costs, shape: Shape, logged: bool) -> Result<(Costs, Calibration)> {
    let mut control = Connection::connect(options).context("--calibrate")?;
    let mut measured = Calibration {
        logged,
        image_bytes: shape.image_bytes,
        moved_share: shape.moved,
        ..about(&mut control).context("--calibrate")?
    };
    // A replica must get no transactions of its own.
    control.execute("SET SESSION sql_log_bin = 0").context("--calibrate")?;
    let timed = prepare(&mut control, shape).and_then(|()| time(options, shape, logged, &mut measured));
    let dropped = control.execute(format!("DROP DATABASE IF EXISTS {SCHEMA}"));
    timed.context(
        "--calibrate: it needs the rights that heddle replicate needs on a target, and to create a procedure",
    )?;
    dropped.context("--calibrate: dropping what it made")?;
    Ok((fit::derive(&measured, costs), measured))
}

fn about(connection: &mut Connection) -> Result<Calibration> {
    let rows = connection.rows(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', \
         'log_slave_updates', 'log_replica_updates')",
    )?;
    let value = |name: &str| {
        let row = rows.iter().find(|row| row.text(0).ok().flatten() == Some(name));
        row.and_then(|row| row.text(1).ok().flatten()).unwrap_or_default().to_owned()
    };
    let updates = value("log_replica_updates") == "ON" || value("log_slave_updates") == "ON";
    Ok(Calibration {
        server: value("version"),
        durable: value("innodb_flush_log_at_trx_commit") == "1",
        synced_log: value("log_bin") == "ON" && updates && value("sync_binlog") == "1",
        ..Calibration::default()
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

fn time(options: &ConnectOptions, shape: Shape, logged: bool, measured: &mut Calibration) -> Result<()> {
    let in_log = if logged { BinlogChoice::Yes } else { BinlogChoice::No };
    let target = MySqlTarget::connect_as_replica(options.clone(), "heddle-calibration", in_log);
    server::measure(&target.map_err(anyhow::Error::new)?, shape, measured)?;
    own::measure(options, shape, logged, measured)
}
