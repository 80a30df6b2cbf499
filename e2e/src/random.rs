//! Random workloads, replicated in a random way, compared with the source.

use crate::checksum::{contents, differences};
use crate::native;
use crate::pair::Pair;
use crate::server::{Kind, Server};
use crate::workload::{Size, Workload};
use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Ways to replicate: live unless the first word is `files`.
const WAYS: [&str; 10] = [
    "live",
    "files",
    "live --grouping off --workers 4",
    "files --grouping off --workers 8",
    "files --grouping 7 --workers 3",
    "live --grouping off --workers 6 --commit-order relaxed",
    "files --grouping 20 --workers 4 --commit-order relaxed",
    "files --policy serial",
    "live --workers 8 --memory 1M",
    "files --workers 1 --grouping off",
];

const SIZE: Size = Size {
    tables: 8,
    sessions: 4,
    transactions: 200,
    definitions_percent: 2,
    xa: true,
    replace: true,
    temporary: true,
    same_flavour: true,
    unlogged: true,
};

/// `runs` workloads on one pair of servers, the first from `seed`. How many of them the servers' own replica of `target` cannot repeat either: that
/// is found out where Heddle stops, and only there.
pub fn run(source: Kind, target: Kind, runs: u64, seed: u64) -> Result<u64> {
    let mut unsound = 0;
    let mut pair: Option<Pair> = None;
    for seed in seed..seed + runs {
        let command = format!("torture random {source} {target} 1 {seed}");
        eprintln!("repeat with: {command}");
        // A few workloads for one start of servers: the channel goes on from one to the next.
        let ready = match pair.take().filter(|_| seed % 4 != 0) {
            Some(ready) => ready,
            None => Pair::start_two((source, &[]), (target, &[]))?,
        };
        match one(&ready, seed) {
            Ok(()) => pair = Some(ready),
            Err(failure) => {
                let own = natively(&ready, target).with_context(|| format!("{failure:#}")).context(command.clone())?;
                let Some(own) = own else { return Err(failure.context(command)) };
                eprintln!("  {failure:#}\n  the servers' own replica: {own}");
                unsound += 1;
            }
        }
    }
    Ok(unsound)
}

/// Why a fresh replica of the servers' own does not end as its source; `None`: it does, or there are no such replicas.
fn natively(pair: &Pair, target: Kind) -> Result<Option<String>> {
    if pair.source.kind.is_mariadb() != target.is_mariadb() {
        return Ok(None);
    }
    // Old servers crash under such a load: that is nobody's fault here, and said.
    if pair.source.scalar("SELECT 1").is_err() {
        let log = pair.source.error_log();
        let signal = log.lines().find(|line| line.contains("got signal")).map(str::to_owned);
        return signal.map(|signal| Some(format!("none, the source crashed: {signal}"))).context("the source is gone");
    }
    let replica = Server::start(target, &[])?;
    native::native_replica(&pair.source, &replica)?;
    if let Err(stopped) = native::wait_caught_up(&pair.source, &replica) {
        let stopped = format!("{stopped:#}");
        ensure!(stopped.contains("as native replica stopped"), "{stopped}");
        return Ok(Some(stopped));
    }
    let lines = differences(&contents(&pair.source)?, &contents(&replica)?);
    Ok((!lines.is_empty()).then(|| format!("source and replica differ:\n  {}", lines.join("\n  "))))
}

fn one(pair: &Pair, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let (source, target) = (pair.source.kind, pair.target.kind);
    let same_flavour = source.is_mariadb() == target.is_mariadb();
    let size = Size {
        xa: SIZE.xa && source.logs_prepared() && target.logs_prepared() && random.random_bool(0.5),
        // Their texts need not mean the same to the other flavour.
        definitions_percent: if same_flavour { SIZE.definitions_percent } else { 0 },
        replace: source.keeps_referring_rows() == target.keeps_referring_rows(),
        temporary: SIZE.temporary && same_flavour,
        same_flavour,
        ..SIZE
    };
    let workload = Workload::new(seed, size, pair.source.kind);
    workload.run(&pair.source)?;
    let way = WAYS.choose(&mut random).copied().unwrap_or("live");
    eprintln!("  {way}");
    let (from, options) = way.split_once(' ').unwrap_or((way, ""));
    let options: Vec<&str> = options.split_whitespace().collect();
    let from_files = from == "files";
    let address = if from_files { pair.source.binlog_index().display().to_string() } else { pair.source.url() };
    // Files and a live source are different channels: each of the two starts with the first log.
    let to = pair.target.url();
    let mut arguments =
        vec!["replicate", "--from", &address, "--to", &to, "--json", "--relay-dir", &pair.relay, "--until-end"];
    arguments.extend(options);
    let run = crate::heddle::heddle(&arguments)?.successful()?;
    pair.assert_equal().with_context(|| format!("{way}: {run}"))?;
    pair.source.execute(&format!("DROP DATABASE IF EXISTS {0}; DROP DATABASE IF EXISTS {0}d", workload.schema))
}
