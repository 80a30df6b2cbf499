//! Semi-synchronous replication through `heddle serve`: a source that waits, heddles that acknowledge, and kills of all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use binlog::Kind as EventKind;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use relay::{FileSource, FilesReader, LogReader, Read, Start};
use wire::{ConnectOptions, Connection};

use crate::heddle::Heddle;
use crate::server::{Kind, PASSWORD, Server, USER, free_port};

pub const STUCK_AFTER: Duration = Duration::from_secs(120);

/// The names that a server has for it.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// `source` or `master`.
    pub source: &'static str,
    /// `replica` or `slave`.
    pub replica: &'static str,
    /// Plugins have to be loaded.
    plugins: Option<&'static str>,
}

impl Words {
    pub fn of(kind: Kind) -> Words {
        let is_old_mariadb = ["mariadb-10.1", "mariadb-10.2"].contains(&kind.to_string().as_str());
        match kind.is_mariadb() {
            false if kind.has_new_words() => Words {
                source: "source",
                replica: "replica",
                plugins: Some("--plugin-load-add=semisync_source.so;semisync_replica.so"),
            },
            true if !is_old_mariadb => Words { source: "master", replica: "slave", plugins: None },
            _ => Words {
                source: "master",
                replica: "slave",
                plugins: Some("--plugin-load-add=semisync_master.so;semisync_slave.so"),
            },
        }
    }

    /// For a server that may become either end.
    pub fn options(self) -> Vec<String> {
        let large = "--max-allowed-packet=64M".to_owned();
        self.plugins.map(str::to_owned).into_iter().chain([large]).collect()
    }

    /// From here on the source waits for ever.
    pub fn enable(self, source: &Server) -> Result<()> {
        let word = self.source;
        source.execute(&format!(
            "SET GLOBAL rpl_semi_sync_{word}_timeout = 1000000000; SET GLOBAL rpl_semi_sync_{word}_enabled = 1"
        ))
    }

    /// The same, for a restart.
    pub fn enabled(self) -> [String; 2] {
        let word = self.source;
        [format!("--rpl-semi-sync-{word}-enabled=1"), format!("--rpl-semi-sync-{word}-timeout=1000000000")]
    }

    /// `Rpl_semi_sync_source_NAME` on the source.
    pub fn status(self, source: &Server, name: &str) -> Result<String> {
        let name = format!("Rpl_semi_sync_{}_{name}", self.source);
        let rows = source.rows(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        rows.first().and_then(|row| row.get(1)).cloned().with_context(|| format!("no {name}"))
    }

    pub fn wait_status(self, source: &Server, name: &str, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
        let started = Instant::now();
        loop {
            let value = self.status(source, name)?;
            if is_wanted(&value) {
                return Ok(());
            }
            ensure!(started.elapsed() < STUCK_AFTER, "{name} stays {value}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A `heddle serve` with `--ack`.
#[derive(Debug)]
pub struct Acknowledger {
    pub heddle: Heddle,
    pub port: u16,
    pub dir: PathBuf,
    from_port: u16,
    more: Vec<String>,
}

impl Acknowledger {
    pub fn start(from_port: u16, dir: &Path, more: &[&str]) -> Result<Acknowledger> {
        let more = more.iter().map(|&word| word.to_owned()).collect();
        Acknowledger::start_at(from_port, dir, free_port()?, more)
    }

    fn start_at(from_port: u16, dir: &Path, port: u16, more: Vec<String>) -> Result<Acknowledger> {
        let ssl = if more.iter().any(|word| word == "--with-tls") {
            "ssl-mode=required"
        } else {
            "ssl-mode=disabled&get-server-public-key=true"
        };
        let from = format!("mysql://{USER}@127.0.0.1:{from_port}?{ssl}");
        let (folder, listen) = (dir.display().to_string(), format!("127.0.0.1:{port}"));
        let mut arguments =
            vec!["serve", "--from", &from, "--dir", &folder, "--listen", &listen, "--replica-user", USER];
        arguments.extend(more.iter().map(String::as_str).filter(|word| *word != "--with-tls"));
        let heddle = Heddle::start(&arguments)?;
        Ok(Acknowledger { heddle, port, dir: dir.to_owned(), from_port, more })
    }

    pub fn kill(&mut self) -> Result<()> {
        self.heddle.kill()?;
        while !self.heddle.has_ended()? {
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Again, on the same folder and port.
    pub fn again(&mut self) -> Result<()> {
        *self = Acknowledger::start_at(self.from_port, &self.dir, self.port, self.more.clone())?;
        Ok(())
    }
}

/// What every acknowledged row carries, and is found by in the log.
fn mark(id: u64) -> String {
    format!("<<{id:09}>>")
}

/// The marks of all whole transactions in a mirror.
pub fn marks(dir: &Path) -> Result<BTreeSet<u64>> {
    let mut reader = FilesReader::open(FileSource::discover(&[dir.join("binlog.index")])?, Start::Beginning)?;
    let (mut all, mut open) = (BTreeSet::new(), Vec::new());
    // The end of the file may be torn: it was killed.
    while let Ok(Read::Event(located)) = reader.next() {
        let bytes = located.event.bytes();
        for (at, _) in bytes.windows(2).enumerate().filter(|(_, two)| two == b"<<") {
            let digits = bytes.get(at + 2..at + 11).and_then(|digits| std::str::from_utf8(digits).ok());
            open.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
        }
        if located.event.kind() == EventKind::XID {
            all.extend(open.drain(..));
        }
    }
    Ok(all)
}

/// What is killed.
const VICTIMS: [&[Who]; 6] = [
    &[Who::Source],
    &[Who::First],
    &[Who::Source, Who::First],
    &[Who::Other],
    &[Who::First, Who::Other],
    &[Who::Source, Who::First, Who::Other],
];
/// Of them without others.
const WITHOUT_OTHERS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Source,
    First,
    Other,
}

/// What writers have been told.
#[derive(Default)]
struct Told {
    next: AtomicU64,
    acknowledged: Mutex<Vec<u64>>,
    done: AtomicBool,
}

impl Told {
    fn count(&self) -> usize {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Some more is acknowledged.
    fn goes_on(&self) -> Result<()> {
        let (from, started) = (self.count(), Instant::now());
        while self.count() < from + 20 {
            ensure!(started.elapsed() < STUCK_AFTER, "nothing is acknowledged any more");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// A source and the heddles below it.
struct Chain {
    words: Words,
    source: Server,
    first: Acknowledger,
    other: Option<Acknowledger>,
}

impl Chain {
    fn start(kind: Kind, ack: &str, dir: &Path) -> Result<Chain> {
        let words = Words::of(kind);
        let options = words.options();
        let source = Server::start(kind, &options.iter().map(String::as_str).collect::<Vec<_>>())?;
        source.execute("CREATE DATABASE d; CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(50))")?;
        let first = Acknowledger::start(source.port, &dir.join("one"), &["--ack", ack])?;
        let second = || Acknowledger::start(first.port, &dir.join("two"), &["--ack", "local"]);
        let other = (ack != "local").then(second).transpose()?;
        words.enable(&source)?;
        Ok(Chain { words, source, first, other })
    }

    fn kill(&mut self, victims: &[Who]) -> Result<()> {
        for victim in victims {
            match (victim, &mut self.other) {
                (Who::Source, _) => self.source.kill()?,
                (Who::Other, Some(other)) => other.kill()?,
                _ => self.first.kill()?,
            }
        }
        Ok(())
    }

    fn again(&mut self, victims: &[Who]) -> Result<()> {
        for victim in victims {
            match (victim, &mut self.other) {
                (Who::Source, _) => self.source.restart(&self.words.enabled().each_ref().map(String::as_str))?,
                (Who::Other, Some(other)) => other.again()?,
                _ => self.first.again()?,
            }
        }
        Ok(())
    }

    fn logs(&self) -> String {
        let other = self.other.as_ref().map(|other| other.heddle.log()).unwrap_or_default();
        format!("{}\n---\n{other}", self.first.heddle.log())
    }

    fn kills(&mut self, told: &Told, rounds: u32, seed: u64) -> Result<()> {
        let mut random = StdRng::seed_from_u64(seed);
        let victims = if self.other.is_some() { &VICTIMS[..] } else { &VICTIMS[..WITHOUT_OTHERS] };
        for round in 0..rounds {
            told.goes_on().with_context(|| format!("round {round}:\n{}", self.logs()))?;
            ensure!(self.words.status(&self.source, "no_tx")? == "0", "the source has given up waiting");
            thread::sleep(Duration::from_millis(random.random_range(0..150)));
            let killed = victims.choose(&mut random).copied().unwrap_or_default();
            self.kill(killed)?;
            self.again(killed)?;
        }
        told.goes_on().with_context(|| format!("at the end:\n{}", self.logs()))?;
        // For good, whatever is under way.
        self.kill(&[Who::Source, Who::First])
    }
}

/// Kills at random; then the source is gone for good, and where others have to have all, the first heddle as well: what is left has all that was acknowledged.
pub fn kills(kind: Kind, ack: &str, rounds: u32, seed: u64) -> Result<usize> {
    let dir = tempfile::tempdir()?;
    let mut chain = Chain::start(kind, ack, dir.path())?;
    let told = Told::default();
    let (port, source_kind) = (chain.source.port, chain.source.kind);
    thread::scope(|scope| -> Result<()> {
        for _ in 0..3 {
            scope.spawn(|| write(port, &told));
        }
        let killed = chain.kills(&told, rounds, seed);
        told.done.store(true, Ordering::Relaxed);
        if chain.source.pid().is_some() {
            chain.source.kill()?;
        }
        killed
    })?;
    if chain.other.is_some() {
        chain.kill(&[Who::Other])?;
    }
    let left = dir.path().join(if chain.other.is_some() { "two" } else { "one" });
    let has = marks(&left)?;
    let acknowledged = told.acknowledged.into_inner().unwrap_or_else(PoisonError::into_inner);
    let lost: Vec<&u64> = acknowledged.iter().filter(|id| !has.contains(id)).collect();
    if !lost.is_empty() {
        bail!(
            "{source_kind}: {} of {} acknowledged rows are not in {}: {lost:?}",
            lost.len(),
            acknowledged.len(),
            left.display()
        );
    }
    Ok(acknowledged.len())
}

/// Writes rows until it is told to end, through crashes of the source.
fn write(port: u16, told: &Told) {
    let options = ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port,
        user: USER.to_owned(),
        password: Some(PASSWORD.into()),
        ..ConnectOptions::default()
    };
    while !told.done.load(Ordering::Relaxed) {
        let Ok(mut connection) = Connection::connect(&options) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !told.done.load(Ordering::Relaxed) {
            let id = told.next.fetch_add(1, Ordering::Relaxed);
            match connection.execute(format!("INSERT INTO d.t VALUES ({id}, '{}')", mark(id))) {
                Ok(_) => told.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).push(id),
                Err(_) => break,
            }
        }
    }
}
