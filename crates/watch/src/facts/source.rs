//! What the source's log is like where the replica is in it: its tags, what write sets would give, hot rows, what other appliers would make of it. Data, and how it is
//! made of the survey; the hands are in [`crate::readers::source_reader`].

use engine::policy;
use serde::{Deserialize, Serialize};
use sim::replica::{Mode, Model, Tags, Trace};

use insight::inspect::report::InspectReport;
use insight::inspect::report::causes::LogCause;
use insight::simulate::accuracy::SPEEDUP_OFF;
use insight::simulate::scenario::{Scenario, Simulation};
use replica::questions::bytes_after;
use replica::status::ReplicaStatus;

const CAUSES_MAX: usize = 5;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceFacts {
    pub server: SourceServer,
    /// Binary log files and their sizes, oldest first.
    pub logs: Vec<(String, u64)>,
    /// Of its log, from where the replica is.
    pub transactions: u64,
    /// The first of them.
    #[serde(default)]
    pub next: Option<NextCommit>,
    #[serde(flatten)]
    pub parallelism: Parallelism,
    /// What the longest chains wait for, the worst first.
    pub hot: Vec<HotRows>,
    /// What `heddle inspect` finds in it, the worst first.
    #[serde(default)]
    pub causes: Vec<LogCause>,
    #[serde(flatten)]
    pub simulated: SimulatedSpeed,
    /// What says more: `heddle inspect`, `heddle simulate`, with the source.
    #[serde(default)]
    pub commands: Vec<String>,
    pub notes: Vec<String>,
}

/// The first transaction that a replica has not applied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NextCommit {
    pub channel: String,
    /// Where the replica was in the source's log: FILE:OFFSET.
    pub applied: String,
    /// Seconds since 1970.
    pub committed_s: f64,
}

/// What other appliers would make of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SimulatedSpeed {
    /// Of the replica as it is set, how many times as fast others would be.
    pub what_if: Vec<Scenario>,
    /// Heddle with groups, by the same model.
    pub heddle_times: Option<f64>,
    /// How far such predictions were off where they were measured, as a part; none without predictions.
    pub predictions_off: Option<f64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceServer {
    pub version: (u16, u16, u16),
    pub version_text: String,
    pub mariadb: bool,
    /// `binlog_transaction_dependency_tracking`; empty where the server has none.
    pub tracking: String,
    /// It has a replication channel itself.
    pub is_replica: bool,
}

/// What the log lets run at a time: by the source's tags, by write sets, by exact dependencies.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parallelism {
    pub amil: Option<f64>,
    pub amil_writeset: Option<f64>,
    pub amil_exact: Option<f64>,
    pub pseudo_group_size: Option<f64>,
    pub pseudo_group_size_writeset: Option<f64>,
    pub pseudo_group_size_exact: Option<f64>,
    /// MariaDB's group commits.
    pub group_size: Option<f64>,
    /// Some tables' keys were not known: nothing is computed from keys then.
    #[serde(default)]
    pub keys_unknown: bool,
}

/// A replica's applier, to be simulated.
#[derive(Clone, Copy, Debug)]
pub struct Applier<'a> {
    pub workers: u64,
    /// MariaDB's `slave_parallel_mode`.
    pub mode: &'a str,
    /// It keeps the commit order.
    pub ordered: bool,
}

/// Rows of one table that chains of transactions share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HotRows {
    pub rows: String,
    /// Of the longest chain.
    pub share: f64,
}

impl SourceFacts {
    /// Transactions that may run at a time by what the source wrote.
    pub fn parallel(&self) -> Option<f64> {
        if self.server.mariadb { self.parallelism.group_size } else { self.parallelism.pseudo_group_size }
    }

    /// Of its log, what the replica's receiver does not have yet.
    pub fn not_received_bytes(&self, status: &ReplicaStatus) -> Option<u64> {
        bytes_after(&self.logs, status.received.as_ref()?)
    }

    /// Takes what a survey of the log found.
    pub fn take(&mut self, report: &InspectReport) {
        self.transactions = report.transactions;
        // Tables whose keys are not known are ordered as a whole: what is computed from keys says nothing then.
        let keys_known = !report.findings.iter().any(|finding| finding.kind == "keys_unknown");
        self.parallelism = Parallelism {
            keys_unknown: !keys_known,
            amil: report.amil,
            amil_writeset: report.amil_writeset.filter(|_| keys_known),
            amil_exact: report.amil_exact.filter(|_| keys_known),
            pseudo_group_size: report.pseudo_group_size,
            pseudo_group_size_writeset: report.pseudo_group_size_writeset.filter(|_| keys_known),
            pseudo_group_size_exact: report.pseudo_group_size_exact.filter(|_| keys_known),
            group_size: report.mariadb_group_size.filter(|_| self.server.mariadb),
        };
        let hot = report.hot_tables.iter().map(|table| {
            let values = table.values.first().map_or_else(String::new, |value| format!(" {value}"));
            let name = table.name.as_deref().unwrap_or("a table whose keys are not known");
            let rows = if table.rows == 1 {
                format!("the row {name}{values}")
            } else {
                format!("{} rows of {name}, such as{values}", table.rows)
            };
            HotRows { rows, share: table.critical_share }
        });
        self.hot = hot.take(5).collect();
        self.causes = LogCause::of(report, CAUSES_MAX);
        self.notes.extend(report.notes.iter().cloned());
    }

    /// Simulates the replica as it is set, and as it could be.
    pub fn simulate(&mut self, trace: &Trace, applier: Applier<'_>) {
        let Applier { workers, mode, ordered } = applier;
        let count = usize::try_from(workers.max(1)).unwrap_or(1);
        let now = match (workers, self.server.mariadb) {
            (0 | 1, _) => Model::Serial,
            (_, true) => Model::MariaDb { mode: mariadb_mode(mode) },
            (_, false) => Model::LogicalClock { tags: Tags::Source, ordered },
        };
        let Some(simulation) = Simulation::new(trace, (now, count)) else { return };
        let others = if self.server.mariadb {
            [Mode::Conservative, Mode::Optimistic].map(|mode| Model::MariaDb { mode })
        } else {
            [Tags::Source, Tags::Writeset].map(|tags| Model::LogicalClock { tags, ordered: true })
        };
        let with = count.max(16);
        let what_if: Vec<Scenario> = others
            .into_iter()
            .filter(|model| *model != now || with != count)
            .filter(|model| {
                !self.parallelism.keys_unknown || !matches!(model, Model::LogicalClock { tags: Tags::Writeset, .. })
            })
            .filter_map(|model| simulation.what_if((model, with)))
            .collect();
        let heddle = Model::Heddle { policy: policy::DEFAULT, grouping: true, ordered: true };
        let heddle_times = simulation.times((heddle, 4)).filter(|_| !self.parallelism.keys_unknown);
        let predictions_off = (!what_if.is_empty() || heddle_times.is_some()).then_some(SPEEDUP_OFF);
        self.simulated = SimulatedSpeed { what_if, heddle_times, predictions_off };
    }

    /// What to run for more, of the source at this address.
    pub fn set_commands(&mut self, address: &str) {
        let best = self.simulated.what_if.iter().max_by(|one, other| one.times.total_cmp(&other.times));
        let policy = best.map(|best| format!(" --policy {} --workers {}", best.policy, best.workers));
        let file = self.logs.last().map_or("FILES", |(name, _)| name.as_str());
        self.commands = vec![
            format!("heddle inspect --from mysql://{address}"),
            format!("on the source: heddle simulate {file}{}", policy.unwrap_or_default()),
        ];
    }
}

fn mariadb_mode(name: &str) -> Mode {
    match name.to_ascii_lowercase().as_str() {
        "optimistic" => Mode::Optimistic,
        "aggressive" => Mode::Aggressive,
        "minimal" => Mode::Minimal,
        _ => Mode::Conservative,
    }
}
