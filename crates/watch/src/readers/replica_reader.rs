//! The hands of a watch: one connection to a replica, asked what [`crate::questions`] says. Only reads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::{Context, Result};
use binlog::Flavour;
use wire::{ConnectOptions, Connection};

use crate::facts::period::{Period, Role, StatusSample, Thread, ThreadSample, number, text};
use crate::questions::{self, Question, ThreadSource};
use crate::rules;
use replica::questions::{Record, record};
use replica::statements::{HOLD_S, NativeChannel};

/// A statement that the server holds up for so long is given up, and the connection with it.
const READ_TIMEOUT_S: u64 = 20;

pub struct ReplicaReader {
    connection: Connection,
    native: NativeChannel,
    questions: Vec<Question>,
    /// Refused, and why: not asked again.
    refused: BTreeMap<&'static str, String>,
    performance_schema: bool,
    has_metrics: bool,
    looks: u32,
    /// Answers of questions that are not asked every time.
    kept: BTreeMap<&'static str, Vec<Record>>,
    began: Instant,
    queries: u64,
}

impl ReplicaReader {
    pub fn connect(options: &ConnectOptions, began: Instant) -> Result<Self> {
        let mut options = options.clone();
        options.limits.read_timeout = Some(std::time::Duration::from_secs(READ_TIMEOUT_S));
        let mut connection = Connection::connect(&options).with_context(|| format!("replica {}", options.address()))?;
        let server = connection.server().clone();
        let flavour = if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql };
        let native = NativeChannel { flavour, version: server.version, channel: String::new() };
        let on = connection.scalar("SELECT @@global.performance_schema")?;
        let performance_schema = on.as_deref() == Some("1");
        let mut questions = questions::all(&native);
        if !performance_schema {
            questions.retain(|question| !question.sql.contains("performance_schema."));
        }
        let has_metrics = flavour == Flavour::MySql && server.version >= questions::METRICS_SINCE && performance_schema;
        Ok(Self {
            connection,
            native,
            questions,
            refused: BTreeMap::new(),
            performance_schema,
            has_metrics,
            looks: 0,
            kept: BTreeMap::new(),
            began,
            queries: 1,
        })
    }

    pub fn queries(&self) -> u64 {
        self.queries
    }

    fn at_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<Record>, wire::Error> {
        self.queries += 1;
        Ok(self.connection.rows(sql)?.iter().map(record).collect())
    }

    pub fn look(&mut self) -> Result<StatusSample> {
        let mut look = StatusSample { at_s: self.at_s(), answers: BTreeMap::new() };
        let questions = std::mem::take(&mut self.questions);
        let done = questions.iter().try_for_each(|question| self.put(question, &mut look));
        self.questions = questions;
        done?;
        if self.has_metrics {
            match self.ask(questions::METRICS_SQL) {
                Ok(rows) => drop(look.answers.insert(questions::METRICS.to_owned(), rows)),
                // Not installed, which is usual.
                Err(error) if !error.is_connection_lost() => self.has_metrics = false,
                Err(error) => return Err(error.into()),
            }
        }
        self.looks += 1;
        Ok(look)
    }

    fn put(&mut self, question: &Question, look: &mut StatusSample) -> Result<()> {
        if self.refused.contains_key(question.name) {
            return Ok(());
        }
        let is_kept = !self.looks.is_multiple_of(question.every);
        if let Some(rows) = self.kept.get(question.name).filter(|_| is_kept) {
            look.answers.insert(question.name.to_owned(), rows.clone());
            return Ok(());
        }
        match self.ask(&question.sql) {
            Ok(rows) => {
                if question.every > 1 {
                    self.kept.insert(question.name, rows.clone());
                }
                look.answers.insert(question.name.to_owned(), rows);
                Ok(())
            }
            Err(error) if question.without.is_empty() || error.is_connection_lost() => {
                Err(error).with_context(|| format!("{} (docs/privileges.md)", question.sql))
            }
            Err(error) => {
                self.refused.insert(question.name, format!("without {}: {error}", question.without));
                Ok(())
            }
        }
    }

    pub fn sample(&mut self) -> Result<ThreadSample> {
        let at_s = self.at_s();
        let from = if self.native.flavour == Flavour::MySql && self.performance_schema {
            ThreadSource::PerformanceSchema
        } else {
            ThreadSource::ProcessList
        };
        let sql = questions::threads(from);
        let rows = self.ask(sql).context("the states of the replication threads")?;
        let threads = rows.iter().filter_map(|row| {
            let state = text(row, "state").to_owned();
            Some(Thread {
                id: number(row, "id")?,
                session: number(row, "session").unwrap_or(0),
                role: role(text(row, "name"), &state, from)?,
                info: text(row, "info").to_owned(),
                seconds: number(row, "seconds").unwrap_or(0),
                state,
            })
        });
        Ok(ThreadSample { at_s, threads: threads.collect() })
    }

    /// What is asked only where the period gives reason to.
    pub fn look_closer(&mut self, period: &mut Period) -> Result<()> {
        let waits = period.after.rows(questions::TRANSACTIONS).iter().any(|row| text(row, "state") == "LOCK WAIT");
        let mut asked: Vec<(&'static str, &'static str)> = Vec::new();
        if rules::wants_keyless_tables(period) {
            asked.push((questions::KEYLESS, questions::KEYLESS_SQL));
        }
        if waits {
            asked.push((questions::LOCKS, questions::locks(&self.native)));
        }
        let is_open = |row: &Record| {
            number::<u64>(row, "rows_modified").unwrap_or(0) >= 1000 || number::<u64>(row, "seconds").unwrap_or(0) >= 2
        };
        let is_long = period.after.rows(questions::TRANSACTIONS).iter().any(is_open);
        if (is_long || rules::wants_open_tables(period))
            && self.native.flavour == Flavour::MySql
            && self.performance_schema
        {
            asked.push((questions::TABLES, questions::TABLES_SQL));
        }
        for channel in held_channels(&period.after) {
            let rows = self.ask(&questions::rescuer(&channel))?;
            period.after.answers.entry(questions::RESCUER.to_owned()).or_default().extend(rows);
        }
        for (name, sql) in asked {
            match self.ask(sql) {
                Ok(rows) => drop(period.after.answers.insert(name.to_owned(), rows)),
                Err(error) if error.is_connection_lost() => return Err(error.into()),
                Err(error) => drop(self.refused.insert(name, format!("without {name}: {error}"))),
            }
        }
        Ok(())
    }

    /// A period from these.
    pub fn period(
        &self,
        replica: String,
        before: StatusSample,
        after: StatusSample,
        samples: Vec<ThreadSample>,
    ) -> Period {
        let server = self.connection.server();
        let mut notes: BTreeSet<String> = self.refused.values().cloned().collect();
        if !self.performance_schema && self.native.flavour == Flavour::MySql {
            notes.insert("performance_schema is OFF: no commits by worker, no commit times".to_owned());
        }
        Period {
            replica,
            mariadb: server.is_mariadb(),
            version: server.version,
            version_text: server.version_text.clone(),
            before,
            after,
            samples,
            received: Vec::new(),
            source: None,
            notes: notes.into_iter().collect(),
        }
    }
}

/// Channels whose applier a rescue holds.
fn held_channels(look: &StatusSample) -> Vec<String> {
    let held = look.rows(questions::STATUS).iter().filter(|row| text(row, "SQL_Delay") == HOLD_S.to_string());
    let name = |row| match text(row, "Channel_Name") {
        "" => text(row, "Connection_name").to_owned(),
        name => name.to_owned(),
    };
    held.map(name).collect()
}

/// `name`: of the thread (MySQL), or its command (MariaDB). None: something else.
fn role(name: &str, state: &str, from: ThreadSource) -> Option<Role> {
    if from == ThreadSource::PerformanceSchema {
        return match name.rsplit('/').next()? {
            "replica_io" | "slave_io" => Some(Role::Receiver),
            "replica_sql" | "slave_sql" => Some(Role::Coordinator),
            "replica_worker" | "slave_worker" => Some(Role::Worker),
            _ => None,
        };
    }
    match name {
        "Slave_IO" => return Some(Role::Receiver),
        "Slave_SQL" => return Some(Role::Coordinator),
        "Slave_worker" => return Some(Role::Worker),
        _ => {}
    }
    // Only the state says it: MariaDB before 10.3, MySQL without performance_schema.
    let state = state.to_ascii_lowercase().replace("slave", "replica").replace("master", "source");
    let has = |parts: &[&str]| parts.iter().any(|part| state.contains(part));
    if has(&["source to send event", "queueing source event", "connecting to source", "reconnect", "source update"]) {
        Some(Role::Receiver)
    } else if has(&[
        "relay log",
        "workers to process",
        "dependent transaction",
        "worker queue",
        "pending events",
        "pool is busy",
        "room in worker",
        "source_delay",
    ]) {
        Some(Role::Coordinator)
    } else {
        // Background threads of MariaDB's storage engine are the system user's, too.
        let is_ours = !state.is_empty() && !has(&["innodb", "purge", "background"]);
        (is_ours || name == "Connect").then_some(Role::Worker)
    }
}
