//! What holds in every snapshot of a replica, whatever it applies at the same time; and a reader that looks all the while.
//!
//! Sums that each transaction keeps, a unique value that goes from row to row, and two numbers of which the first is always the one that is ahead:
//! the last holds only where a replica commits in its source's order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use wire::Connection;

use crate::served::connect;
use crate::server::{PASSWORD, Server};
use crate::workload::Workload;

const ACCOUNTS: usize = 20;
const BALANCE: i64 = 100;
const ROWS: usize = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Adds the tables and the sessions that keep the invariants, `transactions` each.
pub fn add(workload: &mut Workload, transactions: usize) {
    let schema = workload.schema.clone();
    let rows = |count: usize, value: &str| -> String {
        let rows: Vec<String> = (0..count).map(|id| format!("({id}, {value})")).collect();
        rows.join(", ")
    };
    workload.tables += &format!(
        "CREATE TABLE {schema}.bank (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB;\n\
         CREATE TABLE {schema}.walk (id INT PRIMARY KEY, u INT NULL UNIQUE) ENGINE=InnoDB;\n\
         CREATE TABLE {schema}.ahead (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB;\n\
         CREATE TABLE {schema}.behind (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB;\n\
         INSERT INTO {schema}.bank VALUES {};\nINSERT INTO {schema}.walk VALUES {};\nUPDATE {schema}.walk SET u = 7 WHERE id = 0;\n\
         INSERT INTO {schema}.ahead VALUES (1, 0);\nINSERT INTO {schema}.behind VALUES (1, 0);\n\
         CREATE TABLE {schema}.ready (id INT PRIMARY KEY) ENGINE=InnoDB;\n",
        rows(ACCOUNTS, &BALANCE.to_string()),
        rows(ROWS, "NULL"),
    );
    let session = |statements: &dyn Fn(usize) -> String| -> String {
        (0..transactions).map(|round| statements(round) + "\n").collect()
    };
    let transfer = |round: usize| {
        let (from, to) = (round * 7 % ACCOUNTS, (round * 11 + 3) % ACCOUNTS);
        format!(
            "START TRANSACTION; UPDATE {schema}.bank SET v = v - {round} WHERE id = {from}; \
             UPDATE {schema}.bank SET v = v + {round} WHERE id = {to}; COMMIT;"
        )
    };
    let step = |round: usize| {
        let (from, to) = (round % ROWS, (round + 1) % ROWS);
        format!(
            "START TRANSACTION; UPDATE {schema}.walk SET u = NULL WHERE id = {from}; UPDATE {schema}.walk SET u = 7 WHERE id = {to}; COMMIT;"
        )
    };
    let follow = |round: usize| {
        let n = round + 1;
        format!("UPDATE {schema}.ahead SET n = {n}; UPDATE {schema}.behind SET n = {n};")
    };
    workload.sessions.extend([session(&transfer), session(&step), session(&follow)]);
}

/// In which order a replica commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    OfTheSource,
    Any,
}

/// As a replica is set now: MariaDB's always commit in their source's order.
pub fn order_of(replica: &Server) -> Result<Order> {
    if replica.kind.is_mariadb() {
        return Ok(Order::OfTheSource);
    }
    let rows = replica.rows(
        "SHOW VARIABLES WHERE Variable_name IN ('replica_preserve_commit_order', 'slave_preserve_commit_order')",
    )?;
    let on = rows.iter().any(|row| row.get(1).is_some_and(|value| value == "ON" || value == "1"));
    Ok(if on { Order::OfTheSource } else { Order::Any })
}

/// Reads a replica until it is asked what it saw.
#[derive(Debug)]
pub struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Reader {
    /// Of what [`add`] made in the schema.
    pub fn start(replica: &Server, schema: &str, order: Order) -> Reader {
        let stop = Arc::new(AtomicBool::new(false));
        let (port, schema, told) = (replica.port, schema.to_owned(), Arc::clone(&stop));
        Reader { stop, thread: thread::spawn(move || read(port, &schema, order, &told)) }
    }

    /// How many snapshots it saw; an error for the first in which something did not hold, and where it saw none.
    pub fn end(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.join().map_err(|_| anyhow!("the reader's thread ended"))??;
        ensure!(seen > 0, "the reader saw no snapshot");
        Ok(seen)
    }
}

/// Once more after it is told to end, so that it has seen the last one.
fn read(port: u16, schema: &str, order: Order, stop: &AtomicBool) -> Result<u64> {
    let (mut connection, mut seen) = (None, 0);
    loop {
        let last = stop.load(Ordering::Relaxed);
        match snapshot(&mut connection, port, schema) {
            Ok(Some(values)) => {
                holds(&values, order).with_context(|| format!("snapshot {seen} of {schema}"))?;
                seen += 1;
            }
            Ok(None) => {}
            // A replica that was killed.
            Err(_) => connection = None,
        }
        if last {
            return Ok(seen);
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Sum, rows that have the value, and the two numbers; `None` before the tables are there and filled.
fn snapshot(connection: &mut Option<Connection>, port: u16, schema: &str) -> Result<Option<[i64; 4]>> {
    let connection = match connection {
        Some(connection) => connection,
        none => none.insert(connect(port, PASSWORD)?),
    };
    let sql = format!(
        "SELECT SUM(v), (SELECT COUNT(u) FROM {schema}.walk), (SELECT n FROM {schema}.ahead), (SELECT n FROM {schema}.behind) \
         FROM {schema}.bank WHERE (SELECT COUNT(*) FROM {schema}.ready) = 0"
    );
    match connection.rows(sql) {
        Ok(rows) => match rows.as_slice() {
            [row] => Ok(Some([row.required(0)?, row.required(1)?, row.required(2)?, row.required(3)?])),
            other => bail!("{} rows", other.len()),
        },
        // No such table or schema yet.
        Err(error) if error.code().is_some_and(|code| matches!(code, 1146 | 1049)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn holds(&[sum, values, ahead, behind]: &[i64; 4], order: Order) -> Result<()> {
    ensure!(sum == ACCOUNTS as i64 * BALANCE, "the accounts have {sum}");
    ensure!(values == 1, "{values} rows have the one value");
    ensure!(order == Order::Any || ahead == behind || ahead == behind + 1, "{behind} was committed before {ahead}");
    Ok(())
}
