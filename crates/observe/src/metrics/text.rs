//! Metrics as OpenMetrics text, which Prometheus reads. The encoding is prometheus-client's.

use std::fmt::Error;
use std::sync::Arc;

use channel::monitor::Monitor;
use channel::snapshot::Snapshot;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit as ClientUnit};

use ::copy::Measures;
use serve::status::{Detail, View};

use super::comparison::ALL as COMPARISON;
use super::copy::ALL as COPY;
use super::definitions::ALL;
use super::mirror::ALL as MIRROR;
use super::replicas::ALL as WATCHED;
use super::{
    ChannelReading, ComparisonBoard, ComparisonReading, CopyReading, Definition, Kind, MirrorReading, Samples, Unit,
    Value, WatchReading,
};
use crate::usage::Usage;
use watch::board::Board;

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of the channel now.
pub fn text(channel: &str, monitor: &Arc<Monitor>, before: Option<Snapshot>) -> Result<String, Error> {
    encoded(Channel { name: channel.to_owned(), monitor: Arc::clone(monitor), before })
}

#[derive(Debug)]
struct Channel {
    name: String,
    monitor: Arc<Monitor>,
    before: Option<Snapshot>,
}

impl Collector for Channel {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let snapshot = self.monitor.snapshot();
        let seen = ChannelReading { snapshot: &snapshot, before: self.before.as_ref(), usage: Usage::now() };
        let of = [("channel", self.name.clone())];
        all(ALL, &of, &mut encoder, |read, samples| read(&seen, samples))
    }
}

/// All metrics of the mirror now.
pub fn of_mirror(view: &Arc<View>) -> Result<String, Error> {
    encoded(Mirror(Arc::clone(view)))
}

#[derive(Debug)]
struct Mirror(Arc<View>);

impl Collector for Mirror {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let snapshot = self.0.snapshot(Detail::Cheap);
        let seen = MirrorReading { snapshot: &snapshot, usage: Usage::now() };
        let of = [("mirror", snapshot.dir.display().to_string())];
        all(MIRROR, &of, &mut encoder, |read, samples| read(&seen, samples))
    }
}

/// All metrics of watched replicas, of the last looks.
pub fn of_watch(board: &Arc<Board>) -> Result<String, Error> {
    encoded(Watch(Arc::clone(board)))
}

#[derive(Debug)]
struct Watch(Arc<Board>);

impl Collector for Watch {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let looks = self.0.looks();
        let seen = WatchReading { looks: &looks, usage: Usage::now() };
        all(WATCHED, &[], &mut encoder, |read, samples| read(&seen, samples))
    }
}

/// All metrics of a comparison that goes round.
pub fn of_comparison(board: &Arc<ComparisonBoard>) -> Result<String, Error> {
    encoded(Comparison(Arc::clone(board)))
}

#[derive(Debug)]
struct Comparison(Arc<ComparisonBoard>);

impl Collector for Comparison {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let last = self.0.last().map(|(last, _)| last);
        let seen = ComparisonReading { board: &self.0, last: last.as_ref(), usage: Usage::now() };
        all(COMPARISON, &[], &mut encoder, |read, samples| read(&seen, samples))
    }
}

/// All metrics of a copy under way.
pub fn of_copy(measures: &Arc<Measures>) -> Result<String, Error> {
    encoded(CopyUnderWay(Arc::clone(measures)))
}

#[derive(Debug)]
struct CopyUnderWay(Arc<Measures>);

impl Collector for CopyUnderWay {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let seen = CopyReading { sample: self.0.sample(), usage: Usage::now() };
        all(COPY, &[], &mut encoder, |read, samples| read(&seen, samples))
    }
}

fn encoded(collector: impl Collector) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// `of`: whose metrics these are, the first labels of each. `read` has each definition read what it is of.
fn all<R: Copy>(
    definitions: &[Definition<R>],
    of: &[(&'static str, String)],
    encoder: &mut DescriptorEncoder<'_>,
    read: impl Fn(R, &mut Samples),
) -> Result<(), Error> {
    definitions.iter().try_for_each(|definition| {
        let mut samples = Samples::default();
        read(definition.read, &mut samples);
        one(definition, samples, of, encoder)
    })
}

fn one<R>(
    definition: &Definition<R>,
    samples: Samples,
    of: &[(&'static str, String)],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    if samples.0.is_empty() {
        return Ok(());
    }
    let kind = match definition.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    let unit = match definition.unit {
        Unit::None => None,
        Unit::Bytes => Some(ClientUnit::Bytes),
        Unit::Seconds => Some(ClientUnit::Seconds),
        Unit::Ratio => Some(ClientUnit::Other("ratio".to_owned())),
    };
    // The encoder ends the text with a full stop.
    let help = definition.help.trim_end_matches('.');
    let mut metric = encoder.encode_descriptor(definition.name, help, unit.as_ref(), kind)?;
    for sample in samples.0 {
        let mut labels = of.to_vec();
        labels.extend(definition.labels.iter().copied().zip(sample.labels));
        let mut one = metric.encode_family(&labels)?;
        match (sample.value, definition.kind) {
            (Value::Number(value), Kind::Counter) => one.encode_counter::<NoLabelSet, f64, f64>(&value, None)?,
            (Value::Number(value), _) => one.encode_gauge(&value)?,
            (Value::Buckets { sum, count, mut buckets }, _) => {
                buckets.push((f64::MAX, 0));
                one.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use watch::report::Report;

    #[test]
    fn a_channel_that_has_done_nothing_has_metrics() {
        let text = text("orders", &Arc::new(Monitor::default()), None).unwrap();
        assert!(text.contains("heddle_transactions_total{channel=\"orders\"} 0"), "{text}");
        assert!(text.contains("# TYPE heddle_memory_wait_seconds counter"), "{text}");
        assert!(!text.contains("heddle_received_bytes"), "files have no receiver: {text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
    #[test]
    fn a_replica_that_cannot_be_asked_has_no_lag() {
        let board = Arc::new(Board::default());
        board.take(0, &[Report::unknown("mysql://r:3306".to_owned(), "no")]);
        let text = of_watch(&board).unwrap();
        assert!(text.contains("heddle_watch_up{replica=\"mysql://r:3306\",channel=\"\"} 0"), "{text}");
        assert!(text.contains("heddle_watch_severity{replica=\"mysql://r:3306\",channel=\"\"} 3"), "{text}");
        assert!(!text.contains("heddle_watch_lag") && !text.contains("heddle_watch_workers"), "{text}");
    }
}
