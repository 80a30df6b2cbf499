//! Metrics as OpenMetrics text, which Prometheus reads. The encoding is prometheus-client's.

use std::fmt::Error;
use std::sync::Arc;

use channel::monitor::Monitor;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit as ClientUnit};

use super::definitions::ALL;
use super::{Definition, Kind, Samples, Seen, Unit, Value};
use crate::observe::usage::Usage;

pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of the channel now.
pub fn text(channel: &str, monitor: &Arc<Monitor>) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Channel { name: channel.to_owned(), monitor: Arc::clone(monitor) }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Channel {
    name: String,
    monitor: Arc<Monitor>,
}

impl Collector for Channel {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let snapshot = self.monitor.snapshot();
        let seen = Seen { snapshot: &snapshot, usage: Usage::now() };
        ALL.iter().try_for_each(|definition| self.one(definition, &seen, &mut encoder))
    }
}

impl Channel {
    fn one(&self, definition: &Definition, seen: &Seen<'_>, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut samples = Samples::default();
        (definition.read)(seen, &mut samples);
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
            let mut labels = vec![("channel", self.name.clone())];
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_has_done_nothing_has_metrics() {
        let text = text("orders", &Arc::new(Monitor::default())).unwrap();
        assert!(text.contains("heddle_transactions_total{channel=\"orders\"} 0"), "{text}");
        assert!(text.contains("# TYPE heddle_memory_wait_seconds counter"), "{text}");
        assert!(!text.contains("heddle_received_bytes"), "files have no receiver: {text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
