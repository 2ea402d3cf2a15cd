//! Values that somebody else keeps, read at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// What a value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// A gauge from 0 to 1; samples are in millionths.
    Ratio,
    /// It only grows; `_total` is put behind its name.
    Counter,
}

/// One value with its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Name and value of each label. Nothing of a caller's.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: u64,
}

/// A measure that is read from somewhere else.
pub struct Reading {
    /// Its name, after `tollgate_` where it is not a measure of the process.
    pub name: &'static str,
    /// A sentence without a full stop.
    pub help: &'static str,
    /// What it does.
    pub kind: Kind,
    /// Reads it, with the same labels every time. MUST NOT block.
    pub read: Box<dyn Fn() -> Vec<Sample> + Send + Sync>,
}

impl Reading {
    /// A gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, read: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::single(name, help, Kind::Gauge, read)
    }

    /// A counter without labels.
    pub fn counter(name: &'static str, help: &'static str, read: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self::single(name, help, Kind::Counter, read)
    }

    fn single(
        name: &'static str,
        help: &'static str,
        kind: Kind,
        read: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let read = move || vec![Sample { labels: Vec::new(), value: read() }];
        Self { name, help, kind, read: Box::new(read) }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Reading {
    fn value(&self, value: u64, encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        match self.kind {
            Kind::Gauge => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(encoder),
            Kind::Ratio => {
                let millionths = u32::try_from(value.min(1_000_000)).unwrap_or(1_000_000);
                ConstGauge::new(f64::from(millionths) / 1e6).encode(encoder)
            }
            Kind::Counter => ConstCounter::new(value).encode(encoder),
        }
    }
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let kind = match self.kind {
            Kind::Gauge | Kind::Ratio => MetricType::Gauge,
            Kind::Counter => MetricType::Counter,
        };
        // The crate ends the sentences of what it keeps itself.
        let help = format!("{}.", self.help);
        let mut family = encoder.encode_descriptor(self.name, &help, None, kind)?;
        let samples = (self.read)();
        if let [Sample { labels, value }] = &samples[..]
            && labels.is_empty()
        {
            return self.value(*value, family);
        }
        samples.iter().try_for_each(|sample| self.value(sample.value, family.encode_family(&sample.labels)?))
    }
}
