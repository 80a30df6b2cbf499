//! The metrics of a running channel: what each is called, what it means, and how it is read from a snapshot. One list; `/metrics` and docs/metrics.md
//! are made from it. It measures nothing itself.

mod definitions;
#[cfg(test)]
mod page;
mod text;

use channel::snapshot::Snapshot;

pub use text::{CONTENT_TYPE, text};

use crate::observe::usage::Usage;

/// What one metric is.
pub struct Definition {
    /// Without the unit and `_total`: both follow.
    pub name: &'static str,
    pub unit: Unit,
    pub kind: Kind,
    pub help: &'static str,
    /// Beside `channel`.
    pub labels: &'static [&'static str],
    pub read: fn(&Seen<'_>, &mut Samples),
}

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
pub struct Seen<'a> {
    pub snapshot: &'a Snapshot,
    pub usage: Usage,
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

impl Definition {
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
