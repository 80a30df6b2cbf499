//! The last hour of a channel, a sample a second, in bounded memory: 3,600 samples of 84 bytes, 300 KiB.

use std::collections::VecDeque;

use serde::Serialize;

use super::frame::Frame;

/// An hour.
pub const SAMPLES_MAX: usize = 3600;

/// The columns of the history, in the order of a sample's values.
pub const COLUMNS: [&str; 17] = [
    "lag_s",
    "transactions",
    "rows",
    "groups",
    "received_bytes",
    "group_transactions",
    "source_amil",
    "exact_amil",
    "applying",
    "commit_order",
    "dependency",
    "lock",
    "retry",
    "barrier",
    "memory",
    "gathering",
    "no_work",
];

#[derive(Clone, Copy, Debug)]
struct Sample {
    at_ms: u64,
    /// NaN: not known.
    values: [f32; COLUMNS.len()],
}

#[derive(Debug, Default)]
pub struct History(VecDeque<Sample>);

/// As the page gets it: rounded, null where nothing is known.
#[derive(Debug, Serialize)]
pub struct Columns {
    pub columns: [&'static str; COLUMNS.len()],
    pub at_ms: Vec<u64>,
    /// A list for each column.
    pub values: Vec<Vec<Option<f32>>>,
}

impl History {
    pub fn add(&mut self, frame: &Frame) {
        if self.0.len() >= SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Sample { at_ms: frame.head.at_ms, values: values(frame) });
    }

    pub fn columns(&self) -> Columns {
        let column = |at: usize| {
            let value = |sample: &Sample| sample.values.get(at).copied().filter(|value| value.is_finite()).map(round);
            self.0.iter().map(value).collect()
        };
        Columns {
            columns: COLUMNS,
            at_ms: self.0.iter().map(|sample| sample.at_ms).collect(),
            values: (0..COLUMNS.len()).map(column).collect(),
        }
    }
}

fn round(value: f32) -> f32 {
    (value * 1000.0).round() / 1000.0
}

fn values(frame: &Frame) -> [f32; COLUMNS.len()] {
    let known = |value: Option<f64>| value.map_or(f32::NAN, |value| value as f32);
    let (rates, quality) = (&frame.rates, &frame.quality);
    let [applying, order, dependency, lock, retry, barrier, memory, gathering, no_work] = frame.waits.values();
    [
        known(frame.head.lag_s),
        rates.transactions as f32,
        rates.rows as f32,
        rates.groups as f32,
        rates.received_bytes as f32,
        known(quality.group_transactions),
        known(quality.source_amil),
        known(quality.exact_amil),
        applying as f32,
        order as f32,
        dependency as f32,
        lock as f32,
        retry as f32,
        barrier as f32,
        memory as f32,
        gathering as f32,
        no_work as f32,
    ]
}
