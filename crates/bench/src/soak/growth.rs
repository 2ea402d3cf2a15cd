//! The check for growth: the last third of the samples is compared with the first third after the warm-up.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::statistics::{figure, median};

/// The first part of the samples does not count: caches and pools fill.
const WARM_UP_PERCENT: usize = 20;
/// The fewest samples that have thirds of two samples after the warm-up.
const FEWEST: usize = 8;

/// The server at a point of time, and the latency of the interval before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The time since the start of the load.
    pub at: Duration,
    /// The resident memory.
    pub rss_kib: u64,
    /// The open file descriptors.
    pub descriptors: u64,
    /// The threads.
    pub threads: u64,
    /// The 99th percentile of the latency, in microseconds.
    pub p99_us: f64,
    /// Responses per second.
    pub per_second: f64,
}

/// The tolerance of a resource. Growth must exceed both parts.
struct Tolerance {
    resource: &'static str,
    factor: f64,
    absolute: f64,
    value: fn(&Sample) -> f64,
}

const TOLERANCES: [Tolerance; 4] = [
    Tolerance { resource: "RSS KiB", factor: 1.05, absolute: 8192.0, value: |sample| figure(sample.rss_kib) },
    Tolerance { resource: "descriptors", factor: 1.0, absolute: 8.0, value: |sample| figure(sample.descriptors) },
    Tolerance { resource: "threads", factor: 1.0, absolute: 2.0, value: |sample| figure(sample.threads) },
    Tolerance { resource: "p99 us", factor: 1.5, absolute: 1000.0, value: |sample| sample.p99_us },
];

/// A resource that grew beyond its tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// The resource.
    pub resource: &'static str,
    /// The median of the first third.
    pub first: f64,
    /// The median of the last third.
    pub last: f64,
    /// The tolerated median of the last third.
    pub tolerated: f64,
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, first, last, tolerated } = self;
        write!(f, "{resource} grew from {first:.0} to {last:.0}, tolerated are {tolerated:.0}")
    }
}

/// Returns the resources that grew.
///
/// # Errors
/// There are too few samples.
pub fn find_growth(samples: &[Sample]) -> Result<Vec<Growth>> {
    ensure!(samples.len() >= FEWEST, "{} samples are too few to find growth, {FEWEST} are needed", samples.len());
    let warm = &samples[(samples.len() * WARM_UP_PERCENT).div_ceil(100)..];
    let third = warm.len() / 3;
    let (first, last) = (&warm[..third], &warm[warm.len() - third..]);
    let growth = |tolerance: &Tolerance| {
        let middle = |samples: &[Sample]| median(&samples.iter().map(tolerance.value).collect::<Vec<_>>());
        let (first, last) = (middle(first), middle(last));
        let tolerated = (first * tolerance.factor).max(first + tolerance.absolute);
        (last > tolerated).then_some(Growth { resource: tolerance.resource, first, last, tolerated })
    };
    Ok(TOLERANCES.iter().filter_map(growth).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns samples with noise and a slow warm-up, changed by `plant` with the number of the sample.
    fn samples(count: u64, plant: impl Fn(&mut Sample, u64)) -> Vec<Sample> {
        let sample = |number: u64| {
            let noise = number * 7 % 5;
            let warm_up = 20_000 * number.min(5);
            let mut sample = Sample {
                at: Duration::from_mins(number),
                rss_kib: 50_000 + warm_up + noise * 300,
                descriptors: 90 + noise,
                threads: 12,
                p99_us: 900.0 + figure(noise) * 50.0,
                per_second: 7_000.0,
            };
            plant(&mut sample, number);
            sample
        };
        (0..count).map(sample).collect()
    }

    fn grown(plant: impl Fn(&mut Sample, u64)) -> Vec<&'static str> {
        find_growth(&samples(30, plant)).unwrap().iter().map(|growth| growth.resource).collect()
    }

    #[test]
    fn flat_run_passes() {
        assert_eq!(find_growth(&samples(30, |_, _| ())).unwrap(), []);
        // One slow interval is no growth.
        assert!(grown(|sample, number| sample.p99_us *= if number == 27 { 20.0 } else { 1.0 }).is_empty());
        // Neither is a decrease.
        assert!(grown(|sample, number| sample.rss_kib -= number * 1_000).is_empty());
    }

    #[test]
    fn planted_leak_is_found() {
        // A kibibyte per thousand answers at 7,000 answers/s.
        assert_eq!(grown(|sample, number| sample.rss_kib += number * 60 * 7), Vec::<&str>::new(), "within tolerance");
        assert_eq!(grown(|sample, number| sample.rss_kib += number * 1_000), ["RSS KiB"]);
    }

    #[test]
    fn planted_descriptor_growth_is_found() {
        assert_eq!(grown(|sample, number| sample.descriptors += number), ["descriptors"]);
        assert_eq!(grown(|sample, number| sample.threads += number / 5), ["threads"]);
    }

    #[test]
    fn planted_latency_growth_is_found() {
        assert_eq!(grown(|sample, number| sample.p99_us += figure(number) * 120.0), ["p99 us"]);
        let found = find_growth(&samples(30, |sample, number| sample.p99_us += figure(number) * 120.0)).unwrap();
        assert!(found[0].to_string().starts_with("p99 us grew from "), "{}", found[0]);
    }

    #[test]
    fn too_few_samples_are_an_error() {
        assert!(find_growth(&samples(7, |_, _| ())).is_err());
        assert!(find_growth(&samples(8, |_, _| ())).is_ok());
    }
}
