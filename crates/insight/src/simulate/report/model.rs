//! What `heddle simulate` predicts, as data.

use engine::quality::jain_index;
use serde::Serialize;
use sim::replica::{Costs, Knee, Model, Outcome, knee};

use crate::inspect::report::InspectReport;
use crate::simulate::calibrate::Calibration;
use replica::settings::Setting;

/// The simulation in one sentence, and what that sentence is made of.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    pub sentence: String,
    /// The line that the sentence advises; null: none keeps up, or nothing is known of the source.
    pub policy: Option<String>,
    pub workers: Option<usize>,
    /// What to set on native servers for it, the first one first.
    pub settings: Vec<Setting>,
}

/// `--json`: names and units are stable; fields may be added.
#[derive(Debug, Serialize)]
pub struct SimulateReport {
    pub verdict: Verdict,
    pub transactions: u64,
    pub rows: u64,
    /// One after the other.
    pub serial_transactions_per_second: f64,
    pub workers: Vec<usize>,
    /// The log has more than were simulated.
    pub truncated: bool,
    /// `--costs` reads them.
    pub costs: Costs,
    /// `defaults`, `calibration` or `file`; single ones may have been set beside.
    pub costs_from: &'static str,
    pub calibration: Option<Calibration>,
    pub assumptions: Vec<&'static str>,
    /// What makes the predictions worse than they need be.
    pub notes: Vec<String>,
    /// What the source itself did, by its log's times.
    pub source: SourceRate,
    pub policies: Vec<PolicyReport>,
    /// Files or parts of them that could not be read.
    pub problems: Vec<String>,
}

/// Null where the log's times do not tell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SourceRate {
    pub version: Option<String>,
    pub transactions_per_second: Option<f64>,
    /// Of the stretch of time in which it wrote most.
    pub busiest_transactions_per_second: Option<f64>,
    /// How long such a stretch is.
    pub busiest_seconds: u64,
}

impl SourceRate {
    /// Shorter logs do not tell a rate.
    const SECONDS_MIN: f64 = 1.0;

    pub fn new(report: &InspectReport) -> Self {
        let version = report.files.iter().filter_map(|file| file.server_version.clone()).next_back();
        let busiest_seconds = report.series.seconds;
        if report.seconds < Self::SECONDS_MIN {
            return Self { version, busiest_seconds, ..Self::default() };
        }
        let rates = report.series.buckets.iter().map(|bucket| bucket.transactions as f64 / bucket.covered_seconds);
        Self {
            version,
            transactions_per_second: report.transactions_per_second,
            busiest_transactions_per_second: rates.reduce(f64::max),
            busiest_seconds,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct PolicyReport {
    pub policy: String,
    /// What `heddle replicate` does without options.
    pub is_heddle_default: bool,
    /// The fewest workers that apply as fast as the source wrote.
    pub keeps_up_from_workers: Option<usize>,
    /// False: with no number of workers. Null: the source's rate is not known.
    pub keeps_up: Option<bool>,
    pub runs: Vec<RunReport>,
    pub recommended_workers: Option<usize>,
    /// What further workers would mostly wait for.
    pub limited_by: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub struct RunReport {
    pub workers: usize,
    pub seconds: f64,
    pub transactions_per_second: f64,
    /// Against one after the other.
    pub speedup: f64,
    /// Of the workers' time, with a transaction.
    pub utilisation: f64,
    /// Of the processors' time.
    pub processors: f64,
    /// Of transactions among workers: 1 is even.
    pub jain: Option<f64>,
    /// Shares of the workers' time.
    pub idle: f64,
    pub commit_order: f64,
    pub commits: f64,
    pub machine: f64,
    pub work: f64,
    /// MariaDB: transactions that met an earlier one's row.
    pub conflicts: u64,
}

impl PolicyReport {
    /// `serial_seconds`: what one after the other takes.
    pub fn new(model: Model, outcomes: &[Outcome], serial_seconds: f64, source: &SourceRate) -> Self {
        let knee: Option<Knee> = knee(outcomes);
        let rate = source.transactions_per_second;
        let enough = outcomes.iter().find(|outcome| rate.is_some_and(|rate| outcome.transactions_per_second() >= rate));
        Self {
            policy: model.name(),
            is_heddle_default: model.is_default(),
            keeps_up_from_workers: enough.map(|outcome| outcome.workers),
            keeps_up: rate.map(|_| enough.is_some()),
            runs: outcomes.iter().map(|outcome| run(outcome, serial_seconds)).collect(),
            recommended_workers: knee.as_ref().map(|knee| knee.workers),
            limited_by: knee.map(|knee| knee.limited_by),
        }
    }
}

impl PolicyReport {
    /// At the number of workers that is worth it.
    pub fn recommended(&self) -> Option<&RunReport> {
        self.runs.iter().find(|run| Some(run.workers) == self.recommended_workers)
    }

    pub fn label(&self) -> String {
        format!("{}{}", self.policy, if self.is_heddle_default { " (heddle's default)" } else { "" })
    }

    /// Against the source's own rate.
    pub fn beside_source(&self) -> String {
        match (self.keeps_up, self.keeps_up_from_workers) {
            (None, _) => "–".to_owned(),
            (Some(_), Some(1)) => "keeps up".to_owned(),
            (Some(_), Some(workers)) => format!("keeps up from {workers}"),
            (Some(_), None) => "falls behind".to_owned(),
        }
    }
}

fn run(outcome: &Outcome, serial_seconds: f64) -> RunReport {
    let whole = (outcome.seconds * 1e6 * outcome.shares.len() as f64).max(1e-9);
    let share = |us: f64| us / whole;
    RunReport {
        workers: outcome.workers,
        seconds: outcome.seconds,
        transactions_per_second: outcome.transactions_per_second(),
        speedup: if outcome.seconds > 0.0 { serial_seconds / outcome.seconds } else { 0.0 },
        utilisation: outcome.utilisation,
        processors: outcome.processors,
        jain: jain_index(outcome.shares.iter().map(|&share| share as f64)),
        idle: share(outcome.waits.dependency_us),
        commit_order: share(outcome.waits.order_us),
        commits: share(outcome.waits.commit_us),
        machine: share(outcome.waits.machine_us),
        work: share(outcome.waits.work_us),
        conflicts: outcome.conflicts,
    }
}
