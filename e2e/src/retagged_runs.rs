//! Random workloads through `heddle serve` to an unmodified replica: tags made anew and groups, each time with other workers and modes.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::invariants::{self, Reader, order_of};
use crate::native::{gtids, statement, wait_caught_up};
use crate::patience::until;
use crate::retagged::{self, same};
use crate::served::{Ask, By, Served, attach};
use crate::server::{Kind, Server, free_port};
use crate::workload::{Size, Workload};

/// Workloads for one start of servers.
const A_START: u64 = 25;
const TRANSACTIONS: usize = 60;
const WORKERS: [u32; 6] = [1, 2, 4, 8, 16, 64];
const MODES: [&str; 5] = ["conservative", "optimistic", "aggressive", "minimal", "none"];

/// Ways to serve: MySQL's groups also with tags made anew beside them.
const WAYS: [&str; 3] = ["--retag writeset", "--retag writeset --group auto", "--group 40"];
/// No groups for these replicas.
const WAYS_WITHOUT_GROUPS: [&str; 1] = ["--retag writeset"];

/// A source, its replica, and Heddle between them.
struct Chain {
    source: Server,
    replica: Server,
    served: Served,
    way: &'static str,
    mirror: tempfile::TempDir,
}

impl Chain {
    fn start(source: Kind, replica: Kind, seed: u64) -> Result<Self> {
        // A MySQL source whose own tags allow little; small files, so that tags go across many.
        let narrow = "--binlog-transaction-dependency-history-size=1";
        let history = source.major() >= 8 && !source.is_mariadb();
        let mut of_source = vec!["--max-binlog-size=262144"];
        of_source.extend(history.then_some(narrow));
        let by_tags = ["--slave-parallel-type=LOGICAL_CLOCK"];
        let of_replica: &[&str] = if is_old_mysql(replica) { &by_tags } else { &[] };
        let (source, replica) = Server::start_two((source, &of_source), (replica, of_replica))?;
        let ways: &[&'static str] =
            if replica.kind.to_string().starts_with("mysql-5") { &WAYS_WITHOUT_GROUPS } else { &WAYS };
        let way = ways.choose(&mut StdRng::seed_from_u64(seed / A_START)).copied().unwrap_or(WAYS[0]);
        let mirror = tempfile::tempdir()?;
        let served = Served::start(source.port, &folder(&mirror), free_port()?, &words(way))?;
        attach(&replica, Ask::new(served.port, By::Gtid))?;
        Ok(Chain { source, replica, served, way, mirror })
    }

    fn restarted(self) -> Result<Self> {
        let served = self.served.restarted(&self.source, &folder(&self.mirror), &words(self.way))?;
        Ok(Chain { served, ..self })
    }
}

fn folder(mirror: &tempfile::TempDir) -> PathBuf {
    mirror.path().join("mirror")
}

fn words(way: &'static str) -> Vec<&'static str> {
    way.split(' ').collect()
}

fn is_old_mysql(kind: Kind) -> bool {
    !kind.is_mariadb() && !kind.has_new_words()
}

/// `runs` workloads from `source` to `replica`, the first from `seed`.
///
/// # Errors
///
/// The first of them that does not end as its source is, or in which a reader beside the replica saw what must never be; with the command
/// that repeats it.
pub fn run(source: Kind, replica: Kind, runs: u64, seed: u64) -> Result<()> {
    let mut chain: Option<Chain> = None;
    for seed in seed..seed + runs {
        let command = format!("torture replicas {source} {replica} 1 {seed}");
        let ready = match chain.take().filter(|_| seed % A_START != 0) {
            Some(ready) if seed % 5 == 0 => ready.restarted()?,
            Some(ready) => ready,
            None => Chain::start(source, replica, seed)?,
        };
        one(&ready, seed).with_context(|| ready.served.heddle.log()).context(command)?;
        chain = Some(ready);
    }
    Ok(())
}

fn one(chain: &Chain, seed: u64) -> Result<()> {
    let Chain { source, replica, .. } = chain;
    let mut random = StdRng::seed_from_u64(seed);
    let mariadb = source.kind.is_mariadb();
    replica.execute(statement(replica, "STOP"))?;
    let settings = settings(replica.kind, &mut random);
    replica.execute(&settings)?;
    // A native replica of MariaDB may wait for locks of a prepared branch that the source did not wait for, until it stops.
    let xa = !mariadb && source.kind.logs_prepared() && random.random_bool(0.5);
    let size = Size { transactions: TRANSACTIONS, xa, unlogged: random.random_bool(0.5), ..retagged::SIZE };
    let mut workload = Workload::new(seed, size, source.kind);
    invariants::add(&mut workload, TRANSACTIONS);
    // Half of the time there is a backlog.
    let behind = random.random_bool(0.5);
    if !behind {
        replica.execute(statement(replica, "START"))?;
    }
    let reader = Reader::start(replica, &workload.schema, order_of(replica)?);
    workload.run(source)?;
    if behind {
        replica.execute(statement(replica, "START"))?;
    }
    settled(source, replica)
        .and_then(|()| same(source, replica))
        .with_context(|| format!("{settings}: {}", replica.error_log()))?;
    let snapshots = reader.end().with_context(|| settings.clone())?;
    eprintln!("{seed}: {} {}; {settings}; {snapshots} snapshots", chain.way, if behind { "behind" } else { "beside" });
    source.execute(&format!("DROP DATABASE IF EXISTS {0}; DROP DATABASE IF EXISTS {0}d", workload.schema))?;
    ensure!(source.rows("SHOW DATABASES LIKE 'r%'")?.is_empty(), "a schema of the workload is left");
    Ok(())
}

/// A session of the source that has ended drops its temporary tables, and that is logged, after its client is gone.
fn settled(source: &Server, replica: &Server) -> Result<()> {
    until("the replica has what the source has", || {
        wait_caught_up(source, replica)?;
        Ok(gtids(source)? == gtids(replica)?)
    })
}

/// The replica's applier for one workload.
fn settings(kind: Kind, random: &mut StdRng) -> String {
    let workers = WORKERS.choose(random).copied().unwrap_or(4);
    if kind.is_mariadb() {
        let mode = MODES.choose(random).copied().unwrap_or("conservative");
        return format!("SET GLOBAL slave_parallel_threads = {workers}, GLOBAL slave_parallel_mode = '{mode}'");
    }
    let order = if random.random_bool(0.5) { "ON" } else { "OFF" };
    let name = if is_old_mysql(kind) { "slave" } else { "replica" };
    format!("SET GLOBAL {name}_parallel_workers = {workers}, GLOBAL {name}_preserve_commit_order = {order}")
}
