//! External values that are read at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that goes up and down.
    Gauge,
    /// A gauge from 0 to 1; samples are in millionths.
    Ratio,
    /// A value that only grows; the name gets the suffix `_total`.
    Counter,
}

/// A value with its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledValue {
    /// Name and value of each label. They never contain text of a caller.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: u64,
}

/// A metric that is read from an external source.
pub struct MetricSample {
    /// The name, without the prefix `tollgate_`.
    pub name: &'static str,
    /// A sentence without a full stop.
    pub help: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// Reads the values, with the same labels every time. Must not block.
    pub read: Box<dyn Fn() -> Vec<LabelledValue> + Send + Sync>,
}

impl MetricSample {
    /// Creates a gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, read: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::single(name, help, MetricKind::Gauge, read)
    }

    /// Creates a counter without labels.
    pub fn counter(name: &'static str, help: &'static str, read: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::single(name, help, MetricKind::Counter, read)
    }

    fn single(
        name: &'static str,
        help: &'static str,
        kind: MetricKind,
        read: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let read = move || vec![LabelledValue { labels: Vec::new(), value: read() }];
        Self { name, help, kind, read: Box::new(read) }
    }
}

impl fmt::Debug for MetricSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricSample").field("name", &self.name).finish_non_exhaustive()
    }
}

impl MetricSample {
    fn value(&self, value: u64, encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match self.kind {
            MetricKind::Gauge => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(encoder),
            MetricKind::Ratio => {
                let millionths = u32::try_from(value.min(1_000_000)).unwrap_or(1_000_000);
                ConstGauge::new(f64::from(millionths) / 1e6).encode(encoder)
            }
            MetricKind::Counter => ConstCounter::new(value).encode(encoder),
        }
    }
}

impl Collector for MetricSample {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let kind = match self.kind {
            MetricKind::Gauge | MetricKind::Ratio => MetricType::Gauge,
            MetricKind::Counter => MetricType::Counter,
        };
        // The library ends its own help texts with a full stop.
        let help = format!("{}.", self.help);
        let mut family = encoder.encode_descriptor(self.name, &help, None, kind)?;
        let samples = (self.read)();
        if let [LabelledValue { labels, value }] = &samples[..]
            && labels.is_empty()
        {
            return self.value(*value, family);
        }
        samples.iter().try_for_each(|sample| self.value(sample.value, family.encode_family(&sample.labels)?))
    }
}
