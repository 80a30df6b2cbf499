//! Watches replicas, a thread each: looks, samples in between, and gives every period's reports to whoever shows them. Decides nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use crossbeam_channel::Sender;
use engine::survey::Definitions;
use wire::ConnectOptions;

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::period::{Period, ReceivedGtids, StatusSample, text};
use crate::facts::source::{Applier, SourceFacts};
use crate::questions::STATUS;
use crate::readers::replica_reader::ReplicaReader;
use crate::readers::source_reader;
use crate::report::Report;
use crate::report::follow_up::FollowUps;
use crate::rules::finding::Limits;
use channel::errors::chain;
use insight::inspect::schema;

/// How often, and how long.
#[derive(Clone, Debug)]
pub struct Pace {
    /// From look to look.
    pub period: Duration,
    /// States of threads are asked for so often.
    pub sample: Duration,
    /// One period only.
    pub once: bool,
    pub limits: Limits,
}

/// One replica.
#[derive(Clone, Debug)]
pub struct WatchedReplica {
    pub replica: ConnectOptions,
    /// To show: no password is in it.
    pub name: String,
    pub source: Option<ConnectOptions>,
    /// How many servers are between it and the source that was asked for replicas, and one; `None`: it was named.
    pub depth: Option<u32>,
    /// Only this channel.
    pub channel: Option<String>,
    pub server_id: u32,
}

/// The source's log is looked at so often, and for so long.
const SOURCE_EVERY: Duration = Duration::from_secs(60);
const SOURCE_SAMPLE: Duration = Duration::from_secs(2);

/// Looks whose received transactions are remembered, at most: an hour of one in five seconds.
const RECEIVED_MAX: usize = 720;

/// What one replica's thread says: every channel of a period.
#[derive(Debug)]
pub struct ReportedFindings {
    /// Number of the replica in the order of the command.
    pub at: usize,
    pub reports: Vec<Report>,
    /// The last period as it was seen.
    pub period: Option<Period>,
}

/// Until `stop`, or one period.
pub fn run(at: usize, watched: &WatchedReplica, pace: &Pace, stop: &Arc<AtomicBool>, to: &Sender<ReportedFindings>) {
    let began = Instant::now();
    let mut watcher = Watcher {
        watched,
        pace,
        stop,
        began,
        reader: None,
        before: None,
        received: VecDeque::new(),
        source: None,
        source_at: None,
        follow_ups: Vec::new(),
        definitions: None,
    };
    loop {
        let round = Instant::now();
        let mut told = match watcher.period() {
            Ok((reports, period)) => ReportedFindings { at, reports, period: Some(period) },
            Err(error) => {
                watcher.reader = None;
                watcher.before = None;
                ReportedFindings {
                    at,
                    reports: vec![Report::unknown(watched.name.clone(), &chain(&error))],
                    period: None,
                }
            }
        };
        told.reports.iter_mut().for_each(|report| report.identity.depth = watched.depth);
        let is_unknown = told.period.is_none();
        // A signal before the end of the first period: what there is until then is shown.
        if to.send(told).is_err() || pace.once || stop.load(Ordering::Relaxed) {
            return;
        }
        if is_unknown {
            watcher.sleep_until(round + pace.period);
        }
    }
}

struct Watcher<'a> {
    watched: &'a WatchedReplica,
    pace: &'a Pace,
    stop: &'a AtomicBool,
    began: Instant,
    reader: Option<ReplicaReader>,
    before: Option<StatusSample>,
    received: VecDeque<ReceivedGtids>,
    source: Option<SourceFacts>,
    source_at: Option<Instant>,
    follow_ups: Vec<(String, FollowUps)>,
    definitions: Option<Definitions>,
}

impl Watcher<'_> {
    fn sleep_until(&self, then: Instant) {
        const POLL: Duration = Duration::from_millis(100);
        while !self.stop.load(Ordering::Relaxed) {
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    fn period(&mut self) -> Result<(Vec<Report>, Period)> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => ReplicaReader::connect(&self.watched.replica, self.began)?,
        };
        let before = match self.before.take() {
            Some(before) => before,
            None => reader.look()?,
        };
        let end = Instant::now() + self.pace.period;
        let mut samples = Vec::new();
        let mut next = Instant::now();
        while next < end && !self.stop.load(Ordering::Relaxed) {
            self.sleep_until(next);
            samples.push(reader.sample()?);
            // One that took long is not made up for.
            next = (next + self.pace.sample).max(Instant::now() + self.pace.sample / 2);
        }
        self.sleep_until(end);
        let after = reader.look()?;
        let mut period = reader.period(self.watched.name.clone(), before, after.clone(), samples);
        period.received = self.received.iter().cloned().collect();
        reader.look_closer(&mut period)?;
        self.look_at_source(&mut period);
        self.before = Some(after);
        tracing::debug!("{} queries so far", reader.queries());
        self.reader = Some(reader);
        let reports = self.reports(&period)?;
        self.note_received(&period);
        Ok((reports, period))
    }

    /// What waits now tells the next looks how long it has waited.
    fn note_received(&mut self, period: &Period) {
        for channel in self.channels(period) {
            let Ok(seen) = ChannelFacts::new(period, &channel) else { continue };
            if seen.waiting_since_s().is_none() {
                self.received.retain(|look| look.channel != channel);
            }
            let (at_s, gtids) = (period.before.at_s, seen.before.received_gtids.clone());
            if self.received.len() < RECEIVED_MAX {
                self.received.push_back(ReceivedGtids { at_s, channel, gtids });
            }
        }
    }

    fn channels(&self, period: &Period) -> Vec<String> {
        let name = |row| match text(row, "Channel_Name") {
            "" => text(row, "Connection_name").to_owned(),
            name => name.to_owned(),
        };
        let all = period.after.rows(STATUS).iter().map(name);
        all.filter(|name| self.watched.channel.as_ref().is_none_or(|wanted| wanted == name)).collect()
    }

    fn reports(&mut self, period: &Period) -> Result<Vec<Report>> {
        let channels = self.channels(period);
        if channels.is_empty() {
            let why = match &self.watched.channel {
                Some(name) => format!("it has no replication channel {name:?}"),
                None => "it is no replica: it has no replication channel".to_owned(),
            };
            return Ok(vec![Report::unknown(self.watched.name.clone(), &why)]);
        }
        let mut reports = Vec::new();
        for channel in channels {
            let seen = ChannelFacts::new(period, &channel).map_err(anyhow::Error::msg)?;
            let mut report = Report::new(&seen, self.pace.limits);
            let at = self.follow_ups.iter().position(|(name, _)| *name == channel).unwrap_or_else(|| {
                self.follow_ups.push((channel.clone(), FollowUps::default()));
                self.follow_ups.len() - 1
            });
            if let Some((_, follow_ups)) = self.follow_ups.get_mut(at) {
                report.follow_ups = follow_ups.look(&seen, &report.findings);
            }
            reports.push(report);
        }
        Ok(reports)
    }

    /// The source is asked every now and then; what it said last is kept.
    fn look_at_source(&mut self, period: &mut Period) {
        let Some(options) = &self.watched.source else { return };
        let is_due = self.source_at.is_none_or(|at| at.elapsed() >= SOURCE_EVERY);
        let channel = self.channels(period).into_iter().next();
        if let Some(channel) = channel.filter(|_| is_due) {
            self.source_at = Some(Instant::now());
            if self.definitions.is_none() {
                self.definitions = schema::read_server(&self.watched.replica).ok();
            }
            let found = ChannelFacts::new(period, &channel).map_err(anyhow::Error::msg).and_then(|seen| {
                let applier = Applier {
                    workers: seen.workers_set,
                    mode: seen.variable(&["slave_parallel_mode"]).unwrap_or_default(),
                    ordered: seen.is_on(&["replica_preserve_commit_order", "slave_preserve_commit_order"]),
                };
                let definitions = self.definitions.clone().unwrap_or_default();
                source_reader::read(options, &seen.status, applier, definitions, self.watched.server_id, SOURCE_SAMPLE)
            });
            match found {
                Ok(source) => self.source = Some(source),
                Err(error) => period.notes.push(format!("without the source: {}", chain(&error))),
            }
        }
        period.source.clone_from(&self.source);
    }
}
