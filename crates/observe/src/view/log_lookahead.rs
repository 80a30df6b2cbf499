//! What the log is like that a channel has still to apply: `inspect`'s causes in it, and what other appliers would make of it. Data, and how it is made.

use engine::policy::PolicySpec;
use serde::{Deserialize, Serialize};
use sim::replica::{Mode, Model, Tags, Trace};

use insight::inspect::report::InspectReport;
use insight::inspect::report::causes::LogCause;
use insight::simulate::accuracy::SPEEDUP_OFF;
use insight::simulate::scenario::{ApplierSetting, Scenario, Simulation};
use output::numbers::percent;

const CAUSES_MAX: usize = 5;
/// Workers of the native replicas beside it, at least.
const NATIVE_WORKERS: usize = 16;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLookahead {
    /// When it was read, milliseconds since 1970, and how much.
    pub at_ms: u64,
    pub transactions: u64,
    /// The worst first.
    pub causes: Vec<LogCause>,
    /// How this channel is set.
    pub now: String,
    pub what_if: Vec<Scenario>,
    /// How far such predictions were off where they were measured, as a part; none without predictions.
    pub predictions_off: Option<f64>,
    /// What says more.
    pub commands: Vec<String>,
}

/// How a channel applies.
#[derive(Clone, Copy)]
pub struct ApplierOptions {
    pub policy: &'static PolicySpec,
    pub workers: usize,
    pub groups: bool,
    pub ordered: bool,
}

impl ApplierOptions {
    fn with(self, workers: usize) -> ApplierSetting {
        (Model::Heddle { policy: self.policy, grouping: self.groups, ordered: self.ordered }, workers)
    }
}

impl LogLookahead {
    pub fn new(report: &InspectReport, trace: &Trace, applies: ApplierOptions, source: &str) -> Self {
        let ApplierOptions { policy, workers, .. } = applies;
        let mut others = vec![applies.with(workers * 2)];
        if !applies.groups && applies.ordered {
            others.push(ApplierOptions { groups: true, ..applies }.with(workers));
        }
        let native = workers.max(NATIVE_WORKERS);
        let tags = [Tags::Source, Tags::Writeset].map(|tags| Model::LogicalClock { tags, ordered: true });
        let modes = [Mode::Conservative, Mode::Optimistic].map(|mode| Model::MariaDb { mode });
        others.push((Model::Serial, 1));
        others.extend(tags.into_iter().chain(modes).map(|model| (model, native)));
        let simulation = Simulation::new(trace, applies.with(workers));
        let what_if: Vec<Scenario> = simulation
            .iter()
            .flat_map(|simulation| others.iter().filter_map(|other| simulation.what_if(*other)))
            .collect();
        Self {
            at_ms: 0,
            transactions: report.transactions,
            causes: LogCause::of(report, CAUSES_MAX),
            now: format!("{}, {workers} workers", applies.with(workers).0.name()),
            predictions_off: (!what_if.is_empty()).then_some(SPEEDUP_OFF),
            what_if,
            commands: vec![
                format!("heddle inspect --from mysql://{source}"),
                format!("on the source: heddle simulate FILES --policy all --workers {workers},{native}"),
                format!("heddle replicate … --policy {} --workers {}", policy.name, workers * 2),
            ],
        }
    }

    /// For people: a line each.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.causes.iter().map(LogCause::words).collect();
        words.extend(self.what_if.iter().map(|one| {
            format!("{} with {} workers: {:.1} times as fast as now ({})", one.policy, one.workers, one.times, self.now)
        }));
        words.extend(self.predictions_off.map(|off| format!("such predictions were {} off", percent(off))));
        words
    }
}
