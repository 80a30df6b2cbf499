//! Heddle, replicating a random workload into the embedded store, is killed at random moments: the store must then hold what one run without
//! kills makes of the same log, and as many rows as the source has.

use crate::crash::{beside_workloads, in_rounds, options_text, pause};
use crate::heddle::{Heddle, heddle};
use crate::server::{Kind, Server};
use crate::workload::Size;
use anyhow::{Context, Result, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct StoreCrashes {
    pub kind: Kind,
    pub kills: usize,
    pub seed: u64,
    /// Of heddle.
    pub options: Vec<String>,
}

/// The store takes rows: no statements, nothing prepared, no partial images; it does what a definition does to rows.
const SIZE: Size = Size {
    tables: 6,
    sessions: 3,
    transactions: 200,
    definitions_percent: 4,
    xa: false,
    replace: true,
    temporary: false,
    same_flavour: false,
    unlogged: false,
};

/// A store and the channel into it.
struct Channel {
    from: String,
    store: String,
    relay: String,
}

impl Channel {
    fn new(source: &Server, from: String, name: &str) -> Channel {
        let below = |part: &str| source.dir().join(format!("{name}-{part}")).display().to_string();
        Channel { from, store: below("store"), relay: below("relay") }
    }

    fn begin(&self, more: &[&str]) -> Result<Heddle> {
        let to = format!("store:{}", self.store);
        let mut arguments = vec!["replicate", "--from", &self.from, "--to", &to, "--json", "--relay-dir", &self.relay];
        arguments.extend(more);
        Heddle::start(&arguments)
    }

    /// To the end that the log has now; how many transactions were left.
    fn to_the_end(&self, more: &[&str]) -> Result<u64> {
        let more: Vec<&str> = more.iter().copied().chain(["--until-end"]).collect();
        self.begin(&more)?.wait()?.successful()?.number("transactions")
    }

    /// Table → rows and checksum.
    fn contents(&self) -> Result<BTreeMap<String, (u64, String)>> {
        let run = heddle(&["store", "checksum", &self.store, "--json"])?.successful()?;
        let sums: Vec<serde_json::Value> = serde_json::from_str(&run.stdout).with_context(|| run.to_string())?;
        let one = |sum: &serde_json::Value| {
            let (table, rows) = (sum["table"].as_str()?.to_owned(), sum["rows"].as_u64()?);
            Some((table, (rows, sum["checksum"].as_str()?.to_owned())))
        };
        sums.iter().map(one).collect::<Option<_>>().with_context(|| run.to_string())
    }
}

impl StoreCrashes {
    /// How to repeat it.
    pub fn command(&self) -> String {
        let options = options_text(&self.options);
        format!("torture store {} {} {}{options}", self.kind, self.kills, self.seed)
    }

    pub fn run(&self) -> Result<()> {
        eprintln!("repeat with: {}", self.command());
        self.run_rounds().with_context(|| self.command())
    }

    fn run_rounds(&self) -> Result<()> {
        let mut random = StdRng::seed_from_u64(self.seed);
        // The store has to know a primary key to give its rows a new column.
        let source = Server::start(self.kind, &["--binlog-row-metadata=FULL"])?;
        let channel = Channel::new(&source, source.url(), "killed");
        in_rounds(self.kills, |number, kills| self.round(&source, &channel, &mut random, kills, number))
    }

    fn round(&self, source: &Server, channel: &Channel, random: &mut StdRng, kills: usize, round: u64) -> Result<()> {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        beside_workloads(source, (self.seed, round), SIZE, || kill_at_random(channel, random, kills, &options))?;
        channel.to_the_end(&options)?;
        let again = channel.to_the_end(&options)?;
        ensure!(again == 0, "the same command again applied {again} transactions");
        compare(source, channel, round)
    }
}

/// With a store of one undisturbed, serial run over the files, and with the source's rows by their number.
fn compare(source: &Server, channel: &Channel, round: u64) -> Result<()> {
    let files = source.binlog_index().display().to_string();
    let clean = Channel::new(source, files, &format!("clean-{round}"));
    clean.to_the_end(&["--workers", "1", "--grouping", "off"])?;
    let (held, wanted) = (channel.contents()?, clean.contents()?);
    let of = |contents: &BTreeMap<String, (u64, String)>, table: &String| contents.get(table).cloned();
    for table in held.keys().chain(wanted.keys()) {
        let (held, wanted) = (of(&held, table), of(&wanted, table));
        ensure!(held == wanted, "{table}: after kills {held:?}, without {wanted:?}");
    }
    let mut rows = 0;
    for (table, (count, _)) in held.iter().filter(|(_, (count, _))| *count > 0) {
        let name = table.split('.').map(crate::checksum::quoted).collect::<Vec<_>>().join(".");
        let there = source.scalar(&format!("SELECT COUNT(*) FROM {name}"))?;
        ensure!(there == count.to_string(), "{table}: the source has {there} rows, the store {count}");
        rows += count;
    }
    let tables = "SELECT CONCAT('SELECT COUNT(*) FROM `', table_schema, '`.`', table_name, '`') FROM information_schema.tables \
        WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')";
    let counts: Vec<String> = source.rows(tables)?.into_iter().flatten().collect();
    let there = source.rows(&counts.join(";"))?;
    let there: u64 = there.iter().flatten().map(|count| count.parse().unwrap_or(0)).sum();
    ensure!(rows == there && rows > 0, "the source has {there} rows, the store {rows}");
    Ok(())
}

fn kill_at_random(channel: &Channel, random: &mut StdRng, kills: usize, options: &[&str]) -> Result<()> {
    let mut running = channel.begin(options)?;
    for _ in 0..kills {
        pause(random, 20, 900);
        ensure!(!running.has_ended()?, "heddle ended by itself: {}", running.wait()?);
        running.kill()?;
        running.wait()?;
        running = channel.begin(options)?;
    }
    pause(random, 100, 600);
    ensure!(!running.has_ended()?, "heddle ended by itself: {}", running.wait()?);
    running.terminate()?;
    running.wait().map(drop)
}
