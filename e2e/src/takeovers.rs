//! Two heddles with one command line, a channel between them, and random takeovers under load: kills, orderly ends, processes that are stopped and wake up, and takeovers that
//! are asked for. After each one exactly one of the two has the channel, and in the end both servers are equal.

use crate::crash::{beside_workloads, in_rounds, pause};
use crate::heddle::{Heddle, Run, heddle};
use crate::pair::Pair;
use crate::patience::until;
use crate::server::{Kind, Server};
use crate::workload::Size;
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// What ends a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// SIGKILL; the same command is run again.
    Kill,
    /// SIGTERM; likewise.
    Terminate,
    /// SIGSTOP, and SIGCONT once the other process has the channel.
    Stop,
    /// `heddle channel takeover`.
    Ask,
}

impl Ending {
    pub const ALL: [Ending; 4] = [Ending::Kill, Ending::Terminate, Ending::Stop, Ending::Ask];
}

#[derive(Clone, Debug)]
pub struct Takeovers {
    pub kind: Kind,
    pub count: usize,
    pub endings: Vec<Ending>,
    pub seed: u64,
    /// Of heddle.
    pub options: Vec<String>,
}

const SIZE: Size = Size {
    tables: 6,
    sessions: 3,
    transactions: 150,
    definitions_percent: 3,
    xa: false,
    replace: true,
    temporary: false,
    same_flavour: true,
    unlogged: true,
};

/// The two processes.
pub struct Duo<'a> {
    pair: &'a Pair,
    options: Vec<String>,
    /// How each of them reaches source and target.
    ways: [(String, String); 2],
    processes: [Option<Heddle>; 2],
    /// The network of the first one.
    namespace: Option<String>,
    /// Other builds than that of the test.
    programs: Option<[PathBuf; 2]>,
}

impl<'a> Duo<'a> {
    /// None runs yet.
    pub fn new(pair: &'a Pair, options: &[String]) -> Self {
        let way = || (pair.from.clone(), pair.target.url());
        let (ways, processes) = ([way(), way()], [None, None]);
        Self { pair, options: options.to_vec(), ways, processes, namespace: None, programs: None }
    }

    /// The first one through proxies.
    pub fn through(mut self, from: String, to: String) -> Self {
        let [way, _] = &mut self.ways;
        *way = (from, to);
        self
    }

    /// The first one in a network of its own.
    pub fn within(self, namespace: String) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// Each of another build.
    pub fn of_programs(self, programs: [PathBuf; 2]) -> Self {
        Self { programs: Some(programs), ..self }
    }

    /// Where the relay log of a process is.
    pub fn relay(&self, number: usize) -> String {
        format!("{}-{number}", self.pair.relay)
    }

    pub fn start(&mut self, number: usize) -> Result<()> {
        let relay = self.relay(number);
        let (from, to) = self.ways.get(number).context("a way")?;
        let mut arguments = vec!["replicate", "--standby", "--from", from, "--to", to, "--json", "--relay-dir", &relay];
        arguments.extend(self.options.iter().map(String::as_str));
        let program = self.programs.as_ref().and_then(|programs| programs.get(number));
        let started = match (&self.namespace, program) {
            (_, Some(program)) => Heddle::start_program(program, &arguments)?,
            (Some(namespace), None) if number == 0 => Heddle::start_in(namespace, &arguments)?,
            _ => Heddle::start(&arguments)?,
        };
        if let Some(process) = self.processes.get_mut(number) {
            *process = Some(started);
        }
        Ok(())
    }

    /// Both; the first one has the channel.
    pub fn start_both(&mut self) -> Result<()> {
        self.start(0)?;
        self.until_active(0)?;
        self.start(1)?;
        self.until_waits(1)
    }

    pub fn process(&mut self, number: usize) -> Result<&mut Heddle> {
        self.processes.get_mut(number).and_then(Option::as_mut).context("no such process")
    }

    pub fn take(&mut self, number: usize) -> Result<Heddle> {
        self.processes.get_mut(number).and_then(Option::take).context("no such process")
    }

    fn pid(&self, number: usize) -> Result<u32> {
        self.processes.get(number).and_then(Option::as_ref).map(Heddle::pid).context("no such process")
    }

    /// Fails when a process has ended that should run.
    fn check(&mut self) -> Result<()> {
        for number in 0..2 {
            let ended = match self.processes.get_mut(number).and_then(Option::as_mut) {
                Some(process) => process.has_ended()?,
                None => false,
            };
            if ended {
                bail!("process {number} has ended: {}", self.take(number)?.wait()?);
            }
        }
        Ok(())
    }

    /// Waits until the process has the channel.
    pub fn until_active(&mut self, number: usize) -> Result<()> {
        let pid = self.pid(number)?;
        let target = &self.pair.target;
        until_with(self, format!("process {number} has the channel"), |_| Ok(active(target) == Some(pid)))
    }

    /// Waits until the process waits for the channel, as the target knows.
    pub fn until_waits(&mut self, number: usize) -> Result<()> {
        let pid = self.pid(number)?;
        let target = &self.pair.target;
        until_with(self, format!("process {number} waits"), |_| Ok(waits(target, pid)))
    }

    /// Ends both, the one that waits first; what they have said.
    pub fn end(&mut self) -> Result<Vec<Run>> {
        self.check()?;
        let holder = active(&self.pair.target);
        let mut order = [0, 1];
        if self.pid(0).ok() == holder {
            order = [1, 0];
        }
        let mut runs = Vec::new();
        for number in order {
            let process = self.take(number)?;
            process.terminate()?;
            runs.push(process.wait()?.successful()?);
        }
        Ok(runs)
    }
}

/// `is_so`, while all processes run.
fn until_with(duo: &mut Duo<'_>, what: String, mut is_so: impl FnMut(&Duo<'_>) -> Result<bool>) -> Result<()> {
    let done = until(&what, || {
        duo.check()?;
        is_so(duo)
    });
    done.with_context(|| {
        let logs = duo.processes.iter().flatten().map(Heddle::log).collect::<Vec<_>>();
        logs.join("\n-- the other --\n")
    })
}

/// The process that has the channel; none while it is being taken.
pub fn active(target: &Server) -> Option<u32> {
    let sql = "SELECT SUBSTRING_INDEX(owner, '@', 1) FROM heddle.progress WHERE channel = 'default' AND IS_USED_LOCK('heddle.default') IS NOT NULL \
               AND COALESCE(IS_USED_LOCK('heddle.default/5010'), IS_USED_LOCK('heddle.default/5011'), IS_USED_LOCK('heddle.default/5012'), \
               IS_USED_LOCK('heddle.default/5013'), IS_USED_LOCK('heddle.default/5014'), IS_USED_LOCK('heddle.default/5015')) IS NOT NULL";
    target.scalar(sql).ok().and_then(|text| text.trim().parse().ok())
}

fn waits(target: &Server, pid: u32) -> bool {
    let sql = format!(
        "SELECT COUNT(*) FROM heddle.standbys WHERE channel = 'default' AND pid = {pid} AND IS_USED_LOCK(CONCAT('heddle.default/', 6000 + place)) IS NOT NULL"
    );
    target.scalar(&sql).is_ok_and(|count| count.trim() == "1")
}

impl Takeovers {
    pub fn run(&self) -> Result<()> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let pair = Pair::start(self.kind)?;
        let mut times: Vec<(Ending, Duration)> = Vec::new();
        let mut runs = Vec::new();
        in_rounds(self.count, |round, count| {
            let made = beside_workloads(&pair.source, (self.seed, round), SIZE, || {
                let mut duo = Duo::new(&pair, &self.options);
                self.round(&mut duo, &mut random, count, &mut times)?;
                runs.extend(duo.end()?);
                Ok(())
            })?;
            for run in runs.drain(..) {
                ensure!(!run.stderr.contains("the channel stopped"), "{run}");
            }
            pair.to_the_end(&self.options.iter().map(String::as_str).collect::<Vec<_>>())?;
            for schema in made {
                pair.source.execute(&format!("DROP DATABASE IF EXISTS {schema}; DROP DATABASE IF EXISTS {schema}d"))?;
            }
            Ok(())
        })?;
        say(&mut times);
        Ok(())
    }

    fn round(
        &self,
        duo: &mut Duo<'_>,
        random: &mut StdRng,
        count: usize,
        times: &mut Vec<(Ending, Duration)>,
    ) -> Result<()> {
        let first = random.random_range(0..2);
        duo.start(first)?;
        duo.until_active(first)?;
        duo.start(1 - first)?;
        let mut has = first;
        for number in 0..count {
            let ending = *self.endings.choose(random).context("no endings")?;
            duo.until_waits(1 - has)?;
            pause(random, 50, 1500);
            let took = end_turn(duo, has, ending).with_context(|| format!("takeover {number}: {ending:?}"))?;
            times.push((ending, took));
            has = 1 - has;
        }
        duo.until_waits(1 - has)
    }
}

/// Ends the turn of process `has`, and waits until the other one has the channel: for so long.
pub fn end_turn(duo: &mut Duo<'_>, has: usize, ending: Ending) -> Result<Duration> {
    let began = Instant::now();
    match ending {
        Ending::Kill => {
            let process = duo.take(has)?;
            process.kill()?;
            process.wait()?;
            duo.until_active(1 - has)?;
        }
        Ending::Terminate => {
            let process = duo.take(has)?;
            process.terminate()?;
            duo.until_active(1 - has)?;
            process.wait()?.successful()?;
        }
        Ending::Stop => {
            duo.process(has)?.signal(Signal::STOP)?;
            duo.until_active(1 - has)?;
        }
        Ending::Ask => {
            let to = duo.pair.target.url();
            heddle(&["channel", "takeover", "--to", &to])?.successful()?;
            duo.until_active(1 - has)?;
        }
    }
    let took = began.elapsed();
    match ending {
        Ending::Kill | Ending::Terminate => duo.start(has)?,
        Ending::Stop => duo.process(has)?.signal(Signal::CONT)?,
        Ending::Ask => {}
    }
    Ok(took)
}

/// How long they took, of each kind.
fn say(times: &mut [(Ending, Duration)]) {
    times.sort();
    for ending in Ending::ALL {
        let of: Vec<Duration> = times.iter().filter(|(one, _)| *one == ending).map(|(_, took)| *took).collect();
        if let (Some(least), Some(median), Some(most)) = (of.first(), of.get(of.len() / 2), of.last()) {
            eprintln!("{} takeovers by {ending:?}: {least:.2?} to {most:.2?}, median {median:.2?}", of.len());
        }
    }
}
