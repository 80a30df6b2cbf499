//! The metrics of a running channel, of a running mirror, of watched replicas, of a comparison that goes round, and of a copy under way: what each is called, what it means, and how it is read from a snapshot. One list for each; `/metrics` and
//! docs/metrics.md are made from them. It measures nothing itself.

mod comparison;
mod copy;
mod definitions;
mod mirror;
#[cfg(test)]
mod page;
mod read;
mod replicas;
mod text;

use channel::snapshot::Snapshot;

pub use text::{CONTENT_TYPE, of_comparison, of_copy, of_mirror, of_watch, text};

use crate::usage::Usage;
use ::copy::CopySample;
use ::copy::compare::watch::{Board as ComparisonBoard, RoundSummary};
use watch::board::ReplicaReports;
use watch::report::Report;

/// What one metric is. `R`: how it is read.
pub struct Definition<R = Read> {
    /// Without the unit and `_total`: both follow.
    pub name: &'static str,
    pub unit: Unit,
    pub kind: Kind,
    pub help: &'static str,
    /// Beside `channel`, or `mirror`; of watched replicas all.
    pub labels: &'static [&'static str],
    pub read: R,
}

/// Without labels.
const fn define<R: Copy>(name: &'static str, unit: Unit, kind: Kind, help: &'static str, read: R) -> Definition<R> {
    Definition { name, unit, kind, help, labels: &[], read }
}

const fn by<R: Copy>(labels: &'static [&'static str], definition: Definition<R>) -> Definition<R> {
    Definition { labels, ..definition }
}

/// From a channel.
pub type Read = fn(&ChannelReading<'_>, &mut Samples);
/// From a mirror.
pub type ReadMirror = fn(&MirrorReading<'_>, &mut Samples);
/// From the last looks at replicas.
pub type ReadWatch = fn(&WatchReading<'_>, &mut Samples);

/// From a comparison that goes round.
pub type ReadComparison = fn(&ComparisonReading<'_>, &mut Samples);

/// From a copy under way.
pub type ReadCopy = fn(&CopyReading, &mut Samples);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows while the process runs.
    Counter,
    Gauge,
    Histogram,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    None,
    Bytes,
    Seconds,
    Ratio,
}

/// What metrics are read from.
pub struct ChannelReading<'a> {
    pub snapshot: &'a Snapshot,
    /// Some seconds before it, if there is one.
    pub before: Option<&'a Snapshot>,
    pub usage: Usage,
}

/// What metrics of a mirror are read from.
pub struct MirrorReading<'a> {
    pub snapshot: &'a serve::status::Snapshot,
    pub usage: Usage,
}

/// What metrics of watched replicas are read from.
pub struct WatchReading<'a> {
    pub looks: &'a [ReplicaReports],
    pub usage: Usage,
}

/// What metrics of a comparison are read from.
pub struct ComparisonReading<'a> {
    pub board: &'a ComparisonBoard,
    /// The last round that has ended.
    pub last: Option<&'a RoundSummary>,
    pub usage: Usage,
}

/// What metrics of a copy are read from.
pub struct CopyReading {
    pub sample: CopySample,
    pub usage: Usage,
}

impl WatchReading<'_> {
    /// Every channel of every replica, and when it was looked at (milliseconds since 1970).
    fn reports(&self) -> impl Iterator<Item = (u64, &Report)> {
        self.looks.iter().flat_map(|look| look.reports.iter().map(|report| (look.at_ms, report)))
    }
}

/// Values of one metric, by what its labels say.
#[derive(Debug, Default)]
pub struct Samples(pub Vec<Sample>);

#[derive(Debug)]
pub struct Sample {
    pub labels: Vec<String>,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub enum Value {
    Number(f64),
    /// Sum and count of all values, and the count of values up to each bound, not cumulated.
    Buckets {
        sum: f64,
        count: u64,
        buckets: Vec<(f64, u64)>,
    },
}

impl Samples {
    fn number(&mut self, value: f64) {
        self.labelled([], value);
    }

    /// Nothing is shown where nothing is known: no number would be right.
    fn known(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.number(value);
        }
    }

    fn labelled<const N: usize>(&mut self, labels: [String; N], value: f64) {
        self.0.push(Sample { labels: labels.to_vec(), value: Value::Number(value) });
    }
}

impl<R> Definition<R> {
    /// As Prometheus stores it; of a histogram without `_bucket`, `_sum`, `_count`.
    #[cfg(test)]
    pub fn full_name(&self) -> String {
        let unit = self.unit.suffix();
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name)
    }
}

impl Unit {
    #[cfg(test)]
    fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Bytes => "_bytes",
            Self::Seconds => "_seconds",
            Self::Ratio => "_ratio",
        }
    }
}
