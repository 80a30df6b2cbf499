//! Measures a server for the costs of the models: short loops of transactions, in a schema of their own that goes again. Unless it
//! is asked for, nothing of it is written to the server's binary log.

use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use sim::replica::{Applied, Costs, Model, Tags, Trace};
use wire::{ConnectOptions, Connection};

/// The schema that is made and dropped.
const SCHEMA: &str = "heddle_calibration";
const ROWS: u32 = 10_000;
/// Transactions of one loop, and rows of the larger ones.
const LOOP: u32 = 300;
const ROWS_EACH: u32 = 20;
/// Sessions at the same time, and transactions of each.
const SESSIONS: u32 = 16;
const LOOP_EACH: u32 = 60;
/// Loops of each kind, of which the middle one counts.
const REPEAT: usize = 3;
/// Transactions of the simulated loop that is compared with the measured one.
const SIMULATED: usize = 600;

/// What was measured, and what comes of it.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Measured {
    pub server: String,
    /// One transaction that changes one row, and one that changes twenty, inside of the server.
    pub one_row_us: f64,
    pub twenty_rows_us: f64,
    /// Between two commits of 4 and of 16 sessions that change one row each time.
    pub four_sessions_us: f64,
    pub sixteen_sessions_us: f64,
    /// One that changes one row, sent as statements, as Heddle does.
    pub statements_us: f64,
    /// A statement that does nothing.
    pub round_trip_us: f64,
    /// Commits are durable (`innodb_flush_log_at_trx_commit=1`).
    pub durable: bool,
    /// A replica's commits are in its binary log too, and that is synced (`sync_binlog=1`).
    pub synced_log: bool,
    /// So were those that were measured.
    pub logged: bool,
}

/// Runs the loops; `costs` gives what can not be measured from outside. `logged`: with the binary log.
pub fn measure(options: &ConnectOptions, costs: &Costs, logged: bool) -> Result<(Costs, Measured)> {
    let mut connection = open(options, logged)?;
    let mut measured = Measured { logged, ..about(&mut connection)? };
    let made = prepare(&mut connection);
    let timed = made.and_then(|()| time(&mut connection, options, &mut measured));
    let dropped =
        unlogged(&mut connection).and_then(|()| Ok(connection.rows(format!("DROP DATABASE IF EXISTS {SCHEMA}"))?));
    timed.context("--calibrate: it needs the right to create a schema, a table and a procedure")?;
    dropped.context("--calibrate: dropping what it made")?;
    Ok((derive(&measured, costs), measured))
}

fn open(options: &ConnectOptions, logged: bool) -> Result<Connection> {
    let mut connection = Connection::connect(options).context("--calibrate")?;
    if !logged {
        unlogged(&mut connection)?;
    } else {
        connection.rows("SET SESSION binlog_format = ROW").context("--calibrate-logged")?;
    }
    Ok(connection)
}

/// A replica must get no transactions of its own.
fn unlogged(connection: &mut Connection) -> Result<()> {
    connection.rows("SET SESSION sql_log_bin = 0").context("--calibrate")?;
    Ok(())
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

/// A table to change, a row of bookkeeping for each session, as replicas have it, and loops.
fn prepare(connection: &mut Connection) -> Result<()> {
    let logged = connection.row("SELECT @@session.sql_log_bin")?;
    unlogged(connection)?;
    for sql in [
        format!("DROP DATABASE IF EXISTS {SCHEMA}"),
        format!("CREATE DATABASE {SCHEMA}"),
        format!(
            "CREATE TABLE {SCHEMA}.t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL DEFAULT '', KEY (k)) ENGINE=InnoDB"
        ),
        format!("CREATE TABLE {SCHEMA}.progress (session INT PRIMARY KEY, position CHAR(60) NOT NULL) ENGINE=InnoDB"),
        format!(
            "CREATE PROCEDURE {SCHEMA}.fill() BEGIN DECLARE n INT DEFAULT 0; START TRANSACTION; WHILE n < {ROWS} DO \
             INSERT INTO {SCHEMA}.t (id, k) VALUES (n, n); SET n = n + 1; END WHILE; SET n = 0; WHILE n < {SESSIONS} DO \
             INSERT INTO {SCHEMA}.progress VALUES (n, ''); SET n = n + 1; END WHILE; COMMIT; END"
        ),
        // Each session has rows of its own; `first` makes each change one.
        format!(
            "CREATE PROCEDURE {SCHEMA}.work(session_number INT, first INT, transactions INT, rows_each INT) BEGIN \
             DECLARE n INT DEFAULT 0; DECLARE r INT; WHILE n < transactions DO START TRANSACTION; SET r = 0; WHILE r < rows_each DO \
             UPDATE {SCHEMA}.t SET c = CONCAT('c', first + n) WHERE id = session_number + {SESSIONS} * ((n * 79 + r * 31) % {each}); \
             SET r = r + 1; END WHILE; \
             UPDATE {SCHEMA}.progress SET position = first + n WHERE session = session_number; COMMIT; SET n = n + 1; END WHILE; END",
            each = ROWS / SESSIONS
        ),
        format!("CALL {SCHEMA}.fill()"),
    ] {
        connection.rows(&sql).with_context(|| sql.chars().take(60).collect::<String>())?;
    }
    if logged.is_some_and(|row| row.text(0).ok().flatten() == Some("1")) {
        connection.rows("SET SESSION sql_log_bin = 1")?;
    }
    Ok(())
}

fn time(connection: &mut Connection, options: &ConnectOptions, measured: &mut Measured) -> Result<()> {
    // Every loop writes values that no other has written: a row that stays the same costs next to nothing.
    let mut first = 0;
    let mut next = || {
        first += LOOP;
        first
    };
    let work = |connection: &mut Connection, first: u32, transactions: u32, rows_each: u32| -> Result<f64> {
        let began = Instant::now();
        connection.rows(format!("CALL {SCHEMA}.work(0, {first}, {transactions}, {rows_each})"))?;
        Ok(us(began) / f64::from(transactions))
    };
    work(connection, next(), LOOP, 1).context("a first round")?;
    measured.one_row_us = middle(|| work(connection, next(), LOOP, 1)).context("one row each")?;
    measured.twenty_rows_us = middle(|| work(connection, next(), LOOP / 3, ROWS_EACH)).context("twenty rows each")?;
    measured.round_trip_us = middle(|| {
        let began = Instant::now();
        (0..LOOP).try_for_each(|_| connection.rows("DO 0").map(|_| ()))?;
        Ok(us(began) / f64::from(LOOP))
    })?;
    measured.statements_us = middle(|| statements(connection, next())).context("statements")?;
    let mut sessions: Vec<Connection> =
        (0..SESSIONS).map(|_| open(options, measured.logged)).collect::<Result<_>>().context("several sessions")?;
    measured.sixteen_sessions_us = middle(|| together(&mut sessions, next())).context("several sessions")?;
    sessions.truncate(4);
    measured.four_sessions_us = middle(|| together(&mut sessions, next())).context("several sessions")?;
    Ok(())
}

fn us(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn middle(mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut found: Vec<f64> = (0..REPEAT).map(|_| run()).collect::<Result<_>>()?;
    found.sort_by(f64::total_cmp);
    found.get(REPEAT / 2).copied().context("no loop was run")
}

/// Microseconds of one transaction in two packets, as Heddle sends them.
fn statements(connection: &mut Connection, first: u32) -> Result<f64> {
    let began = Instant::now();
    for n in first..first + LOOP {
        let id = SESSIONS * (n * 79 % (ROWS / SESSIONS));
        let sql = format!(
            "BEGIN;UPDATE {SCHEMA}.t SET c = 'c{n}' WHERE id = {id};UPDATE {SCHEMA}.progress SET position = '{n}' WHERE session = 0"
        );
        connection.query_statements(sql, 3)?;
        connection.rows("COMMIT")?;
    }
    Ok(us(began) / f64::from(LOOP))
}

/// Microseconds between two commits of all sessions.
fn together(sessions: &mut [Connection], first: u32) -> Result<f64> {
    let start = Barrier::new(sessions.len() + 1);
    let count = sessions.len() as u32;
    let start = &start;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(sessions)
            .map(|(number, connection): (u32, _)| {
                scope.spawn(move || {
                    start.wait();
                    connection.rows(format!("CALL {SCHEMA}.work({number}, {first}, {LOOP_EACH}, 1)"))
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        for thread in threads {
            match thread.join() {
                Ok(done) => done.map(|_| ())?,
                Err(_) => bail!("a session's thread has panicked"),
            }
        }
        Ok(us(began) / f64::from(count * LOOP_EACH))
    })
}

/// Of a transaction that Heddle applies by itself, its own processor time: `bench/catch-up --sections settings` has it.
const OWN_US: f64 = 100.0;

/// What a row costs is the difference of the first two times. What a transaction costs beside is its own processor time and syncs. Sessions at the same
/// time share the syncs, but not the processors; so there is one split of the two with which the model comes nearest to what was measured with
/// four and with sixteen sessions.
fn derive(measured: &Measured, defaults: &Costs) -> Costs {
    let row_us = ((measured.twenty_rows_us - measured.one_row_us) / f64::from(ROWS_EACH - 1)).max(1.0);
    // The row of bookkeeping is a transaction's.
    let fixed = (measured.one_row_us - row_us).max(1.0);
    let scale = row_us / defaults.row_us;
    let syncs_log = measured.synced_log && measured.logged;
    let syncs = f64::from(u8::from(measured.durable) + u8::from(syncs_log));
    let commit_us = (defaults.commit_us * scale).min(fixed / 10.0);
    let with = |transaction_us: f64| {
        let each = if syncs > 0.0 { (fixed - commit_us - transaction_us) / syncs } else { 0.0 };
        Costs {
            row_us,
            transaction_us,
            sync_us: if measured.durable { each } else { 0.0 },
            log_sync_us: if syncs_log { each } else { 0.0 },
            dispatch_us: defaults.dispatch_us * scale,
            commit_us,
            group_us: defaults.group_us * scale,
            group_row_us: defaults.group_row_us * scale,
            merged_row_us: defaults.merged_row_us * scale,
            ..*defaults
        }
    };
    let mut costs = if syncs > 0.0 { split(measured, fixed - commit_us, with) } else { with(fixed - commit_us) };
    // What a native applier does not have: statements to read, and what is done on Heddle's side.
    let statements = measured.statements_us - measured.one_row_us - 2.0 * measured.round_trip_us;
    costs.round_trip_us = measured.round_trip_us;
    costs.heddle_us = statements.max(0.0) + OWN_US * scale;
    if measured.synced_log && !measured.logged {
        // Not measured: taken to be like the engine's.
        costs.log_sync_us = costs.sync_us;
    }
    costs
}

/// Splits that are tried.
const STEPS: u32 = 100;

/// The split of `fixed` with which simulated sessions come nearest to those that were measured.
fn split(measured: &Measured, fixed: f64, with: impl Fn(f64) -> Costs) -> Costs {
    let free = Trace { transactions: vec![Applied { rows: 1, ..Applied::default() }; SIMULATED], ..Trace::default() };
    let model = Model::LogicalClock { tags: Tags::Source, ordered: true };
    let off = |costs: &Costs| {
        // Sessions of their own need no one to hand out work.
        let costs = Costs { dispatch_us: 0.0, ..*costs };
        let error = |sessions: usize, wanted: f64| {
            let us = model.run(&free, &costs, sessions).seconds * 1e6 / SIMULATED as f64;
            (us / wanted.max(1e-3)).ln().abs()
        };
        error(4, measured.four_sessions_us) + error(SESSIONS as usize, measured.sixteen_sessions_us)
    };
    let tried = (1..=STEPS).map(|step| with(fixed * f64::from(step) / f64::from(STEPS)));
    let best = tried.map(|costs| (off(&costs), costs)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(|| with(fixed), |(_, costs)| costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_to_what_was_measured() {
        for durable in [false, true] {
            let measured = Measured {
                one_row_us: 930.0,
                twenty_rows_us: 1500.0,
                four_sessions_us: 400.0,
                sixteen_sessions_us: 200.0,
                durable,
                ..Measured::default()
            };
            let costs = derive(&measured, &Costs::default());
            assert!((costs.row_us - 30.0).abs() < 1e-9);
            assert!((costs.transaction_us + costs.row_us + costs.commit_us + costs.syncs_us() - 930.0).abs() < 1e-9);
            assert_eq!(costs.sync_us > 0.0, durable);
        }
    }

    #[test]
    fn processor_time_and_syncs_are_told_apart() {
        let defaults = Costs { cores: 2, ..Costs::default() };
        for (transaction_us, sync_us) in [(100.0, 700.0), (300.0, 300.0), (500.0, 100.0)] {
            let costs = Costs {
                transaction_us,
                sync_us,
                log_sync_us: 0.0,
                row_us: defaults.row_us,
                dispatch_us: 0.0,
                ..defaults
            };
            let free =
                Trace { transactions: vec![Applied { rows: 1, ..Applied::default() }; SIMULATED], ..Trace::default() };
            let model = Model::LogicalClock { tags: Tags::Source, ordered: true };
            let between = |costs: &Costs, sessions| model.run(&free, costs, sessions).seconds * 1e6 / SIMULATED as f64;
            let one_row_us = transaction_us + sync_us + defaults.row_us + defaults.commit_us;
            let measured = Measured {
                one_row_us,
                twenty_rows_us: one_row_us + 19.0 * defaults.row_us,
                four_sessions_us: between(&costs, 4),
                sixteen_sessions_us: between(&costs, 16),
                durable: true,
                ..Measured::default()
            };
            let found = Costs { dispatch_us: 0.0, ..derive(&measured, &defaults) };
            assert!((found.transaction_us / transaction_us - 1.0).abs() < 0.1, "{costs:?}: {found:?}");
            for sessions in [2, 4, 8, 16, 32] {
                let ratio = between(&found, sessions) / between(&costs, sessions);
                assert!((0.8..1.25).contains(&ratio), "{sessions} sessions: {ratio}; {costs:?}: {found:?}");
            }
        }
    }

    #[test]
    fn a_binary_log_that_was_not_measured_is_a_second_sync() {
        let measured = Measured {
            one_row_us: 900.0,
            four_sessions_us: 400.0,
            twenty_rows_us: 1300.0,
            sixteen_sessions_us: 150.0,
            durable: true,
            ..Measured::default()
        };
        let of = |synced_log, logged| derive(&Measured { synced_log, logged, ..measured.clone() }, &Costs::default());
        let (without, guessed, both) = (of(false, false), of(true, false), of(true, true));
        assert_eq!((without.log_sync_us, guessed.log_sync_us), (0.0, without.sync_us));
        assert_eq!(both.sync_us, both.log_sync_us);
    }
}
