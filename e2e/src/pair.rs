//! A source, a target, and heddle between them.

use crate::checksum::{assert_equal, contents, differences};
use crate::heddle::{Heddle, Run};
use crate::pool;
use crate::server::{Kind, Server};
use anyhow::{Context, Result, ensure};
use rand::Rng as _;
use rand::rngs::StdRng;
use std::thread;
use std::time::Duration;

#[derive(Debug)]
pub struct Pair {
    pub source: Server,
    pub target: Server,
    pub from: String,
    pub relay: String,
}

impl Pair {
    pub fn start(kind: Kind) -> Result<Pair> {
        Pair::start_with(kind, &[], &[])
    }

    pub fn start_with(kind: Kind, source: &[&str], target: &[&str]) -> Result<Pair> {
        Pair::start_two((kind, source), (kind, target))
    }

    pub fn start_two(source: (Kind, &[&str]), target: (Kind, &[&str])) -> Result<Pair> {
        let (source, target) = pool::shared().take_two(source, target)?;
        let (from, relay) = (source.url(), target.dir().join("relay").display().to_string());
        Ok(Pair { source, target, from, relay })
    }

    pub fn with_files(mut self) -> Pair {
        self.from = self.source.binlog_index().display().to_string();
        self
    }

    pub fn begin(&self, more: &[&str]) -> Result<Heddle> {
        self.begin_into(&self.target.url(), more)
    }

    /// Into another address of the target: a proxy's.
    pub fn begin_into(&self, to: &str, more: &[&str]) -> Result<Heddle> {
        let mut arguments = vec!["replicate", "--from", &self.from, "--to", to, "--json", "--relay-dir", &self.relay];
        arguments.extend(more);
        Heddle::start(&arguments)
    }

    /// To the end that the source has now, which must succeed; then both ends must be equal.
    pub fn to_the_end(&self, more: &[&str]) -> Result<Run> {
        let run = self.run_to_the_end(more)?;
        self.assert_equal().with_context(|| run.to_string())?;
        Ok(run)
    }

    pub fn run_to_the_end(&self, more: &[&str]) -> Result<Run> {
        let mut arguments = vec!["--until-end"];
        arguments.extend(more);
        let run = self.begin(&arguments)?.wait()?.successful()?;
        ensure!(!run.was_stopped()?, "a signal from outside ended it: {run}");
        Ok(run)
    }

    /// Rounds of a script on the source and a channel that is killed, so many times a round, until there were so many kills; then a last script and a run to its
    /// end, which is returned.
    pub fn run_through_kills(
        &self,
        options: &[&str],
        kills: u32,
        kills_each: u32,
        random: &mut StdRng,
        script: impl Fn(&mut StdRng) -> String,
    ) -> Result<Run> {
        let mut done = 0;
        loop {
            self.source.run_script(script(random).as_bytes())?;
            if done >= kills {
                return self.run_to_the_end(options);
            }
            let mut running = self.begin(options)?;
            for _ in 0..kills_each {
                thread::sleep(Duration::from_millis(random.random_range(100..700)));
                if running.has_ended()? {
                    break;
                }
                running.kill()?;
                running.wait()?;
                running = self.begin(options)?;
                done += 1;
            }
            if running.has_ended()? {
                let run = running.wait()?;
                ensure!(!run.stderr.contains("the channel stopped"), "{run}");
            } else {
                running.kill()?;
                running.wait()?;
            }
        }
    }

    /// Rows everywhere; definitions too when both servers print them alike.
    pub fn assert_equal(&self) -> Result<()> {
        if self.source.kind == self.target.kind {
            return assert_equal(&self.source, &self.target);
        }
        self.assert_same_rows()
    }

    /// Both say of every column the same collation: what a source's default is must not become the target's.
    pub fn assert_same_collations(&self) -> Result<()> {
        let of = |server: &Server| -> Result<Vec<Vec<String>>> {
            // MySQL 8 and MariaDB 10.6 have another name for the utf8 of three bytes.
            server.rows(
                "SELECT table_schema, table_name, column_name, REPLACE(collation_name, 'utf8mb3_', 'utf8_') FROM information_schema.columns \
                 WHERE collation_name IS NOT NULL AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema', 'heddle') \
                 ORDER BY 1, 2, 3",
            )
        };
        let (source, target) = (of(&self.source)?, of(&self.target)?);
        let differ = source.iter().zip(&target).find(|(source, target)| source != target);
        ensure!(source.len() == target.len() && differ.is_none(), "other collations: {differ:?}");
        Ok(())
    }

    /// Rows only.
    pub fn assert_same_rows(&self) -> Result<()> {
        let lines = differences(&contents(&self.source)?, &contents(&self.target)?);
        ensure!(lines.is_empty(), "source and target differ:\n  {}", lines.join("\n  "));
        Ok(())
    }
}
