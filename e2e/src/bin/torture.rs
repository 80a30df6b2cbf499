//! Long tests, for the nightly script and for repeating what it has found: kills, random workloads, the matrix of servers.
//! Every run prints the command that repeats it.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "says what it does")]

use anyhow::{Context, Result, bail, ensure};
use e2e::crash::Crashes;
use e2e::random;
use e2e::server::Kind;
use e2e::store_crash::StoreCrashes;
use e2e::{keys, matrix, retagged_runs};

const USAGE: &str = "torture crash SERVER heddle|target|target-restart|source|all KILLS SEED [-- HEDDLE OPTION…]
torture store SERVER KILLS SEED [-- HEDDLE OPTION…]
torture random SOURCE TARGET RUNS SEED
torture replicas SOURCE REPLICA RUNS SEED
torture keys SERVER SEED
torture matrix [PART OF A PAIR'S NAME [OUTPUT]]";

/// What stands above the generated table.
const COMPATIBILITY: &str = "# Compatibility\n\n\
    Made by `torture matrix` (see `scripts/nightly`), which runs one mixed workload on each source, replicates it live into each target\n\
    (grouped, then one transaction each on four connections) and compares the rows of all tables: random sessions on tables with every kind\n\
    of key, all column types, foreign keys with cascades, minimal row images, DDL, views, triggers, partitions, statements.\n\n";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut parts = arguments.splitn(2, |argument| argument == "--");
    let own = parts.next().unwrap_or_default();
    let options = parts.next().unwrap_or_default().to_vec();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    match own.as_slice() {
        ["crash", kind, victim, kills, seed] => {
            let kills = kills.parse().context("KILLS")?;
            let seed = seed.parse().context("SEED")?;
            Crashes { kind: kind.parse()?, victim: victim.parse()?, kills, seed, options }.run()?;
            println!("ok: {kills} kills of {victim} with {kind}");
        }
        ["store", kind, kills, seed] => {
            let (kills, seed) = (kills.parse().context("KILLS")?, seed.parse().context("SEED")?);
            StoreCrashes { kind: kind.parse()?, kills, seed, options }.run()?;
            println!("ok: {kills} kills of heddle with a store, from {kind}");
        }
        ["random", source, target, runs, seed] => {
            let (source, target): (Kind, Kind) = (source.parse()?, target.parse()?);
            let runs = runs.parse().context("RUNS")?;
            let unsound = random::run(source, target, runs, seed.parse().context("SEED")?)?;
            println!(
                "ok: {runs} workloads from {source} to {target}, {unsound} of them not repeated by its own replicas either"
            );
        }
        ["replicas", source, replica, runs, seed] => {
            let (source, replica): (Kind, Kind) = (source.parse()?, replica.parse()?);
            let runs = runs.parse().context("RUNS")?;
            retagged_runs::run(source, replica, runs, seed.parse().context("SEED")?)?;
            println!("ok: {runs} workloads from {source} to {replica}, by tags made anew and in groups");
        }
        ["keys", kind, seed] => {
            keys::run(kind.parse()?, seed.parse().context("SEED")?)?;
            println!("ok: keys as {kind} compares them");
        }
        ["matrix", rest @ ..] => {
            let (table, well) = matrix::run(rest.first().copied().unwrap_or(""))?;
            let text = format!("{COMPATIBILITY}{table}");
            match rest.get(1) {
                Some(path) => std::fs::write(path, text).with_context(|| path.to_string())?,
                None => print!("{text}"),
            }
            ensure!(well, "not all pairs went well");
        }
        _ => bail!("usage:\n{USAGE}"),
    }
    Ok(())
}
