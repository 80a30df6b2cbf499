//! `heddle rescue --via serve`: a replica whose account for Heddle may only steer replication catches up by its own applier, and follows its source again.
//!
//! Random moments come from a seed; `HEDDLE_SEED=N` repeats a run, `HEDDLE_RESCUE_INTERRUPTIONS=N` sets how many there are in one test.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::heddle::Heddle;
use e2e::heddle::{Run, heddle};
use e2e::lagging::{By, Lagging, MEANWHILE, outcome};
use e2e::managed::{COMMON, configure_by_procedure, create_administrator, create_procedures};
use e2e::native::{start_native, stop_applier};
use e2e::served::certificate;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, PASSWORD, free_port};
use e2e::sysbench;
use e2e::until;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const STEERS: &str = "steers";
/// By which the replica logs in to its source, where it is not the tests' own.
const REPLICATES: &str = "replicates";

/// What Heddle's account on the replica may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Account {
    /// May see and steer replication, and nothing else: no row event, no variable, no table.
    Steers,
    /// The administrator of RDS, who steers by procedures.
    Rds,
}

struct Stand {
    lagging: Lagging,
    settings: String,
    url: String,
    listen: String,
    _tls: tempfile::TempDir,
    cert: String,
    key: String,
}

impl Stand {
    fn start(kind: Kind, account: Account, options: &[&str]) -> Result<Self> {
        let lagging = Lagging::start(kind, By::Gtid, options)?;
        match account {
            Account::Steers => Self::create_account(&lagging)?,
            Account::Rds => Self::as_on_rds(&lagging)?,
        }
        lagging.caught_up()?;
        let tls = tempfile::tempdir()?;
        certificate(tls.path())?;
        let url = lagging.replica.url().replace("heddle@", &format!("{STEERS}@"));
        let settings = lagging.settings()?;
        let file = |name: &str| tls.path().join(name).display().to_string();
        let (cert, key) = (file("cert.pem"), file("key.pem"));
        Ok(Self { lagging, settings, url, listen: format!("127.0.0.1:{}", free_port()?), _tls: tls, cert, key })
    }

    fn as_on_rds(lagging: &Lagging) -> Result<()> {
        let (source, replica) = (&lagging.source, &lagging.replica);
        let by = if source.kind.to_string() == "mysql-8.0.15" { "WITH mysql_native_password BY" } else { "BY" };
        source.execute(&format!(
            "CREATE USER {REPLICATES}@'%' IDENTIFIED {by} '{PASSWORD}'; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {REPLICATES}@'%'"
        ))?;
        lagging.caught_up()?;
        // On both, so that they are compared as equal.
        create_administrator(source, STEERS, COMMON)?;
        create_administrator(replica, STEERS, COMMON)?;
        create_procedures(replica)?;
        configure_by_procedure(source, replica, REPLICATES)
    }

    fn create_account(lagging: &Lagging) -> Result<()> {
        let kind = lagging.source.kind;
        let rights = if kind.is_mariadb() {
            "PROCESS, REPLICATION SLAVE ADMIN, SLAVE MONITOR, REPLICATION MASTER ADMIN"
        } else {
            "PROCESS, REPLICATION CLIENT, REPLICATION SLAVE, REPLICATION_SLAVE_ADMIN"
        };
        // It has no TLS, which the other way to log in needs.
        let by = if kind.to_string() == "mysql-8.0.15" { "WITH mysql_native_password BY" } else { "BY" };
        lagging.source.execute(&format!(
            "CREATE USER {STEERS}@'%' IDENTIFIED {by} '{PASSWORD}'; GRANT {rights} ON *.* TO {STEERS}@'%'"
        ))?;
        if !kind.is_mariadb() {
            lagging.source.execute(&format!("GRANT SELECT ON performance_schema.* TO {STEERS}@'%'"))?;
        }
        Ok(())
    }

    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments =
            self.lagging.arguments(&self.url, &["--source-user", "heddle", "--via", "serve", "--listen", &self.listen]);
        arguments.extend(["--tls-cert", &self.cert, "--tls-key", &self.key]);
        arguments.extend(more);
        arguments
    }

    fn rescue(&self, more: &[&str]) -> Result<Run> {
        heddle(&self.arguments(more))
    }

    fn begin(&self) -> Result<Heddle> {
        Heddle::start(&self.arguments(&[]))
    }

    fn points_to_heddle(&self) -> Result<bool> {
        Ok(self.lagging.settings()? != self.settings)
    }
}

fn rescued(kind: Kind, account: Account, options: &[&str]) -> Result<()> {
    let stand = Stand::start(kind, account, options)?;
    let lagging = &stand.lagging;
    lagging.fall_behind(6)?;
    let look = stand.rescue(&["--dry-run"])?.successful()?;
    ensure!(outcome(&look)? == "looked" && !stand.points_to_heddle()?, "--dry-run did something: {look}");
    let by_procedures = look.stderr.contains("heddle calls the service's procedures");
    ensure!(by_procedures == (account == Account::Rds), "{look}");
    start_native(&lagging.replica)?;
    let load = sysbench::start(&lagging.source, "oltp_write_only", MEANWHILE)?;
    let run = stand.rescue(&["--anyway"])?.successful()?;
    ensure!(outcome(&run)? == "handed_back", "{run}");
    let changed = run.summary()?.get("changed_settings").and_then(|list| list.as_array().map(Vec::len));
    ensure!(changed == Some(0), "settings have changed: {run}");
    load.wait()?;
    lagging.as_before(&stand.settings).with_context(|| run.to_string())?;
    // Once more: there is nothing to catch up with.
    let healthy = stand.rescue(&[])?.successful()?;
    ensure!(outcome(&healthy)? == "looked" && !stand.points_to_heddle()?, "{healthy}");
    let again = stand.rescue(&["--anyway"])?.successful()?;
    ensure!(outcome(&again)? == "handed_back", "{again}");
    lagging.as_before(&stand.settings).with_context(|| again.to_string())?;
    let nothing = stand.rescue(&["--abort"])?.successful()?;
    ensure!(outcome(&nothing)? == "looked", "{nothing}");
    Ok(())
}

/// Heddle and the replica are killed at random moments; then it goes on, or is aborted.
fn interrupted(kind: Kind, account: Account, options: &[&str]) -> Result<()> {
    let stand = Stand::start(kind, account, options)?;
    let mut random = StdRng::seed_from_u64(e2e::seed(rand::random_range(0..1 << 31), "rescue_via_serve interrupted"));
    let rounds = std::env::var("HEDDLE_RESCUE_INTERRUPTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    for round in 0..rounds {
        stand.lagging.fall_behind(3)?;
        start_native(&stand.lagging.replica)?;
        let load = sysbench::start(&stand.lagging.source, "oltp_write_only", MEANWHILE)?;
        for _ in 0..random.random_range(1..4) {
            let mut running = stand.begin()?;
            // One before may have brought it so far that there is nothing to do any more.
            until("it points to heddle", || Ok(stand.points_to_heddle()? || running.has_ended()?))?;
            if running.has_ended()? {
                running.wait()?.successful()?;
                break;
            }
            // Then it catches up, is pointed back, and seen to run.
            thread::sleep(Duration::from_millis(random.random_range(0..1_500)));
            if random.random_bool(0.4) {
                eprintln!("  the replica is killed, too");
                stand.lagging.replica.kill()?;
                stand.lagging.replica.restart(&[])?;
            }
            running.kill()?;
            running.wait()?;
        }
        let is_pointed = stand.points_to_heddle()?;
        let more: &[&str] = if round % 2 == 0 { &[] } else { &["--abort"] };
        eprintln!("  points to heddle: {is_pointed}; {more:?}");
        let run = stand.rescue(more)?.successful()?;
        ensure!(outcome(&run)? == "handed_back" || !is_pointed, "{run}");
        load.wait()?;
        stand.lagging.as_before(&stand.settings).with_context(|| run.to_string())?;
    }
    Ok(())
}

/// What can not be, with the reason; nothing is changed.
#[test]
fn refused() -> Result<()> {
    let stand = Stand::start(MYSQL_9_7, Account::Steers, &[])?;
    let replica = &stand.lagging.replica;
    stop_applier(replica)?;
    replica.execute("STOP REPLICA; CHANGE REPLICATION SOURCE TO REQUIRE_ROW_FORMAT = 1, SOURCE_DELAY = 60")?;
    let run = stand.rescue(&[])?;
    run.failed_with("REQUIRE_ROW_FORMAT is YES")?;
    run.failed_with("stay 60 s behind")?;
    replica
        .execute("CHANGE REPLICATION SOURCE TO REQUIRE_ROW_FORMAT = 0, SOURCE_DELAY = 0, SOURCE_AUTO_POSITION = 0")?;
    stand.rescue(&[])?.failed_with("by file and position")?;
    let all = stand.arguments(&[]);
    let without_tls = all.split(|argument| *argument == "--tls-cert").next().unwrap_or_default();
    heddle(without_tls)?.failed_with("give a certificate")?;
    heddle(&["rescue", &stand.url, "--via", "serve", "--listen", "0.0.0.0:3307"])?.failed_with("--advertise")?;
    heddle(&["rescue", &stand.url, "--via", "serve"])?.failed_with("--listen")
}

/// Without --via Heddle would have to hold the applier, which no procedure can; nor by position, where nothing says how to come back.
fn refused_on_rds(kind: Kind) -> Result<()> {
    let stand = Stand::start(kind, Account::Rds, &[])?;
    stand.lagging.fall_behind(1)?;
    let run = heddle(&stand.lagging.arguments(&stand.url, &["--source-user", "heddle"]))?;
    run.failed_with("--via serve")?;
    ensure!(outcome(&run)? == "refused", "{run}");
    start_native(&stand.lagging.replica)?;
    stand.lagging.as_before(&stand.settings)
}

const TWO: &[&str] = &["--replica-parallel-workers=2", "--replica-preserve-commit-order=OFF"];
const FOUR: &[&str] = &["--slave-parallel-threads=4", "--slave-parallel-mode=optimistic"];

e2e::tests! {
    mysql_rescued: rescued(MYSQL_9_7, Account::Steers, &[]);
    mariadb_rescued: rescued(MARIADB_10_11, Account::Steers, FOUR);
    mysql_interrupted: interrupted(MYSQL_9_7, Account::Steers, TWO);
    mariadb_interrupted: interrupted(MARIADB_10_11, Account::Steers, &[]);
    mysql_on_rds_refused: refused_on_rds(MYSQL_9_7);
    mariadb_on_rds_refused: refused_on_rds(MARIADB_10_11);
    mysql_on_rds_rescued: rescued(MYSQL_9_7, Account::Rds, &[]);
    mariadb_on_rds_rescued: rescued(MARIADB_10_11, Account::Rds, FOUR);
    #[ignore = "scripts/nightly"] mysql_on_rds_interrupted: interrupted(MYSQL_9_7, Account::Rds, TWO);
    #[ignore = "scripts/nightly"] mariadb_on_rds_interrupted: interrupted(MARIADB_10_11, Account::Rds, &[]);
    #[ignore = "scripts/nightly"] mysql_8_0_rescued: rescued("mysql-8.0.15".parse().expect("a kind"), Account::Steers, &[]);
    #[ignore = "scripts/nightly"] mariadb_11_8_rescued: rescued("mariadb-11.8".parse().expect("a kind"), Account::Steers, &[]);
    #[ignore = "scripts/nightly"] mysql_8_0_on_rds_rescued: rescued("mysql-8.0.15".parse().expect("a kind"), Account::Rds, &[]);
    #[ignore = "scripts/nightly"] mysql_8_0_46_on_rds_rescued: rescued("mysql-8.0.46".parse().expect("a kind"), Account::Rds, &[]);
    #[ignore = "scripts/nightly"] mysql_8_4_on_rds_rescued: rescued("mysql-8.4".parse().expect("a kind"), Account::Rds, &[]);
    #[ignore = "scripts/nightly"] mariadb_10_6_on_rds_rescued: rescued("mariadb-10.6".parse().expect("a kind"), Account::Rds, &[]);
    #[ignore = "scripts/nightly"] mariadb_11_8_on_rds_rescued: rescued("mariadb-11.8".parse().expect("a kind"), Account::Rds, &[]);
}
