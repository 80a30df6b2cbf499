//! Random workloads, replicated in a random way, compared with the source.

use crate::pair::Pair;
use crate::server::Kind;
use crate::workload::{Size, Workload};
use anyhow::{Context, Result};
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
    temporary: true,
    same_flavour: true,
};

/// `runs` workloads on one pair of servers, the first from `seed`.
pub fn run(source: Kind, target: Kind, runs: u64, seed: u64) -> Result<()> {
    let mut pair: Option<Pair> = None;
    for seed in seed..seed + runs {
        let command = format!("torture random {source} {target} 1 {seed}");
        eprintln!("repeat with: {command}");
        // A few workloads for one start of servers: the channel goes on from one to the next.
        let ready = match pair.take().filter(|_| seed % 4 != 0) {
            Some(ready) => ready,
            None => Pair::start_two((source, &[]), (target, &[]))?,
        };
        one(&ready, seed).with_context(|| command)?;
        pair = Some(ready);
    }
    Ok(())
}

fn one(pair: &Pair, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let prepares = !(pair.source.kind.is_mariadb()
        && pair.source.kind.major() == 10
        && pair.source.kind.to_string() != "mariadb-10.11");
    let size = Size { xa: SIZE.xa && prepares && random.random_bool(0.5), ..SIZE };
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
