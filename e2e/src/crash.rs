//! Kills at random moments under a random workload with definitions in it, and what must be true after them: both ends are
//! equal, nothing is lost and nothing is done twice.

use crate::heddle::Heddle;
use crate::pair::Pair;
use crate::server::{Kind, Server};
use crate::workload::{Size, Workload};
use anyhow::{Context, Result, bail, ensure};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::os::unix::process::ExitStatusExt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// SIGKILL; the same command is run again.
    Heddle,
    /// SIGKILL of the target's server; heddle has to get over it by itself.
    Target,
    /// The target is shut down and started again.
    TargetRestart,
    /// SIGKILL of the source's server; heddle has to get over it by itself.
    Source,
    /// All of them, in turn or together.
    All,
}

impl FromStr for Victim {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Victim> {
        Ok(match text {
            "heddle" => Victim::Heddle,
            "target" => Victim::Target,
            "target-restart" => Victim::TargetRestart,
            "source" => Victim::Source,
            "all" => Victim::All,
            _ => bail!("unknown victim {text}; known: heddle, target, target-restart, source, all"),
        })
    }
}

#[derive(Clone, Debug)]
pub struct Crashes {
    pub kind: Kind,
    pub victim: Victim,
    pub kills: usize,
    pub seed: u64,
    /// Of heddle.
    pub options: Vec<String>,
}

/// Kills between two comparisons, each of which takes longer than a kill.
const KILLS_PER_ROUND: usize = 10;

/// More would only be caught up with after the last kill.
const WORKLOADS_PER_ROUND: u64 = 4;

/// Calls `round` with its number and its part of the kills, until all are done.
pub(crate) fn in_rounds(kills: usize, mut round: impl FnMut(u64, usize) -> Result<()>) -> Result<()> {
    let mut left = kills;
    for number in 0.. {
        if left == 0 {
            break;
        }
        let part = left.min(KILLS_PER_ROUND);
        round(number, part).with_context(|| format!("round {number}"))?;
        left -= part;
    }
    Ok(())
}

/// Does `kills` while random workloads run on the source; their schemas. Those of another `seed` or round are others.
pub(crate) fn beside_workloads(
    source: &Server,
    (seed, round): (u64, u64),
    size: Size,
    kills: impl FnOnce() -> Result<()>,
) -> Result<Vec<String>> {
    let stop = AtomicBool::new(false);
    let first = seed.wrapping_mul(1000).wrapping_add(round * 10) % 1_000_000_000;
    let (killed, made) = thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut made = Vec::new();
            for number in 0..WORKLOADS_PER_ROUND {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let workload = Workload::new(first + number, size, source.kind);
                made.push(workload.schema.clone());
                workload.run(source)?;
            }
            anyhow::Ok(made)
        });
        let killed = kills();
        stop.store(true, Ordering::Relaxed);
        (killed, load.join())
    });
    killed?;
    made.map_err(|_| anyhow::anyhow!("the workload's thread ended"))?
}

/// Options of heddle at the end of a command that repeats a test.
pub(crate) fn options_text(options: &[String]) -> String {
    if options.is_empty() { String::new() } else { format!(" -- {}", options.join(" ")) }
}

const SIZE: Size = Size {
    tables: 6,
    sessions: 3,
    transactions: 150,
    definitions_percent: 4,
    xa: false,
    replace: true,
    temporary: false,
    same_flavour: true,
    unlogged: true,
};

impl Crashes {
    /// How to repeat it.
    pub fn command(&self) -> String {
        let options = options_text(&self.options);
        let victim = match self.victim {
            Victim::Heddle => "heddle",
            Victim::Target => "target",
            Victim::TargetRestart => "target-restart",
            Victim::Source => "source",
            Victim::All => "all",
        };
        format!("torture crash {} {victim} {} {}{options}", self.kind, self.kills, self.seed)
    }

    pub fn run(&self) -> Result<()> {
        eprintln!("repeat with: {}", self.command());
        self.run_rounds().with_context(|| self.command())
    }

    fn run_rounds(&self) -> Result<()> {
        let mut random = StdRng::seed_from_u64(self.seed);
        // Only what the source's own recovery keeps may have been sent.
        let durable = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"];
        let source = if matches!(self.victim, Victim::Source | Victim::All) { durable.as_slice() } else { &[] };
        let pair = Pair::start_with(self.kind, source, &[])?;
        in_rounds(self.kills, |number, kills| self.round(&pair, &mut random, kills, number))
    }

    fn begin(&self, pair: &Pair) -> Result<Heddle> {
        pair.begin(&self.options.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn round(&self, pair: &Pair, random: &mut StdRng, kills: usize, round: u64) -> Result<()> {
        // A session that ends with its server would leave prepared branches that hold their rows.
        let xa = !matches!(self.victim, Victim::Source | Victim::All);
        let made = beside_workloads(&pair.source, (self.seed, round), Size { xa, ..SIZE }, || {
            self.kill_at_random(pair, random, kills)
        })?;
        pair.to_the_end(&self.options.iter().map(String::as_str).collect::<Vec<_>>())?;
        for schema in made {
            pair.source.execute(&format!("DROP DATABASE IF EXISTS {schema}; DROP DATABASE IF EXISTS {schema}d"))?;
        }
        Ok(())
    }

    /// A server that is killed while heddle starts ends it, and whoever started it does so again. A channel that runs must not stop.
    fn begin_again(&self, pair: &Pair, ended: Heddle) -> Result<Heddle> {
        let run = ended.wait()?;
        ensure!(!run.status.success() && !run.stderr.contains("the channel stopped"), "heddle ended by itself: {run}");
        self.begin(pair)
    }

    fn kill_at_random(&self, pair: &Pair, random: &mut StdRng, kills: usize) -> Result<()> {
        let mut running = self.begin(pair)?;
        for _ in 0..kills {
            pause(random, 100, 1500);
            if running.has_ended()? {
                running = self.begin_again(pair, running)?;
            }
            let victim = match self.victim {
                Victim::All => match random.random_range(0..3) {
                    0 => Victim::Heddle,
                    1 => Victim::Target,
                    _ => Victim::Source,
                },
                one => one,
            };
            match victim {
                Victim::Heddle => {
                    running.kill()?;
                    running.wait()?;
                    pause(random, 0, 200);
                    running = self.begin(pair)?;
                }
                Victim::Target | Victim::All => {
                    pair.target.kill()?;
                    pause(random, 0, 300);
                    pair.target.restart(&[])?;
                }
                Victim::TargetRestart => {
                    pair.target.stop()?;
                    pause(random, 0, 300);
                    pair.target.restart(&[])?;
                }
                Victim::Source => {
                    pair.source.kill()?;
                    pause(random, 0, 300);
                    pair.source.restart(&[])?;
                }
            }
        }
        pause(random, 100, 1000);
        if running.has_ended()? {
            running = self.begin_again(pair, running)?;
        }
        running.terminate()?;
        let run = running.wait()?;
        // Before it listens to signals, SIGTERM ends it at once.
        ensure!(run.status.success() || run.status.signal() == Some(libc::SIGTERM), "{run}");
        Ok(())
    }
}

pub(crate) fn pause(random: &mut StdRng, from_ms: u64, to_ms: u64) {
    thread::sleep(Duration::from_millis(random.random_range(from_ms..to_ms)));
}
