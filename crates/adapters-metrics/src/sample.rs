//! Values of metrics: those that are read at each scrape, US dollars, and the bounds of histograms.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use domain::money::Usd;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;

/// Names and values of labels.
pub(crate) type Labels<const N: usize> = [(&'static str, &'static str); N];

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
    /// Creates a metric without labels.
    pub fn single(
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

/// Picodollars in a dollar.
const DOLLAR: u64 = 1_000_000_000_000;

/// A sum of money that only grows. The registry's counters would round it to a float.
#[derive(Debug, Default)]
pub(crate) struct UsdCounter(AtomicU64);

impl UsdCounter {
    pub(crate) fn add(&self, amount: Usd) {
        self.0.fetch_add(amount.pico().unsigned_abs(), Ordering::Relaxed);
    }

    /// Returns the sum in picodollars.
    pub(crate) fn pico(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Formats picodollars as a decimal number of dollars, exact.
fn decimal(pico: u64) -> String {
    let (whole, rest) = (pico / DOLLAR, pico % DOLLAR);
    let decimal = format!("{whole}.{rest:012}");
    let digits = decimal.trim_end_matches('0');
    if digits.ends_with('.') { format!("{digits}0") } else { digits.to_owned() }
}

/// Writes a family of counters with their sums in picodollars. `name` ends with the unit; providers
/// are slugs, which need no escapes.
pub(crate) fn write_counters<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    sums: impl IntoIterator<Item = (Option<&'a str>, u64)>,
) {
    // Writing to a string does not fail.
    let _ =
        writeln!(text, "# HELP tollgate_{name} {help}.\n# TYPE tollgate_{name} counter\n# UNIT tollgate_{name} usd");
    for (provider, pico) in sums {
        let labels = provider.map(|slug| format!("{{provider=\"{slug}\"}}")).unwrap_or_default();
        let _ = writeln!(text, "tollgate_{name}_total{labels} {}", decimal(pico));
    }
}

/// Returns buckets for requests and provider calls: half a millisecond to two minutes.
pub(crate) fn of_calls() -> Histogram {
    Histogram::new([
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
    ])
}

/// Returns buckets for work within this process: fifty microseconds to five seconds.
pub(crate) fn of_own_work() -> Histogram {
    Histogram::new([
        0.000_05, 0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_decimals() {
        let counter = UsdCounter::default();
        assert_eq!(decimal(counter.pico()), "0.0");
        for (pico, expected) in [
            (1, "0.000000000001"),
            (18_017_999, "0.000018018"),
            (2_999_981_982_000, "3.0"),
            (i64::MAX, "9223375.036854775807"),
        ] {
            counter.add(Usd::from_pico(pico));
            assert_eq!(decimal(counter.pico()), expected);
        }
    }
}
