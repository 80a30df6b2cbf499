//! How metrics are read from a snapshot, where more than one does it alike.

use channel::snapshot::{ReceiverState, WorkerSample};
use engine::quality::Histogram;
use engine::schedule::IdleCause;

use super::{ChannelReading, Sample, Samples, Value};
use crate::view::stages::{Stage, stages};

impl Samples {
    /// Buckets by powers of two, in the metric's unit: `scale` of it is one of the histogram's.
    pub fn histogram<const N: usize>(&mut self, labels: [String; N], histogram: &Histogram, scale: f64) {
        let buckets = histogram.buckets().into_iter().map(|(_, last, count)| (last as f64 * scale, count)).collect();
        let value = Value::Buckets { sum: histogram.sum as f64 * scale, count: histogram.count, buckets };
        self.0.push(Sample { labels: labels.to_vec(), value });
    }
}

/// A sample for each worker that has the value.
pub fn each_worker(seen: &ChannelReading<'_>, to: &mut Samples, value: impl Fn(&WorkerSample) -> Option<f64>) {
    for (number, worker) in seen.snapshot.workers.each.iter().enumerate() {
        if let Some(value) = value(worker) {
            to.labelled([number.to_string()], value);
        }
    }
}

/// A sample for each stage that the value is known of.
pub fn each_stage(seen: &ChannelReading<'_>, to: &mut Samples, value: impl Fn(&Stage) -> Option<f64>) {
    for stage in stages(seen.before.unwrap_or(seen.snapshot), seen.snapshot) {
        if let Some(value) = value(&stage) {
            to.labelled([stage.name], value);
        }
    }
}

pub fn received<'a>(seen: &'a ChannelReading<'_>) -> Option<&'a ReceiverState> {
    seen.snapshot.received.as_ref()
}

pub fn timestamp(us: u64) -> Option<f64> {
    (us > 0).then_some(us as f64 / 1e6)
}

pub fn idle_cause(cause: IdleCause) -> String {
    match cause {
        IdleCause::Barrier(barrier) => format!("{}_{}", cause.as_str(), barrier.as_str()),
        cause => cause.as_str().to_owned(),
    }
}
