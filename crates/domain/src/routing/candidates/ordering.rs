//! The order in which candidates are tried.

use std::cmp::Ordering;
use std::time::Duration;

use super::{Candidate, Selection};
use crate::money::Price;
use crate::routing::{
    HealthView, LatencyPercentiles, PercentileBounds, Percentiles, Sort, SortBy, ThroughputPercentiles,
};

impl Selection<'_> {
    /// Orders a group: providers named in `order` first, the others by `sort` or else balanced by price. Endpoints
    /// slower than the preferred bounds come last.
    pub(super) fn ordered(&self, group: Vec<Candidate>, sort: Option<Sort>) -> Vec<Candidate> {
        if group.len() < 2 {
            return group;
        }
        let mut rest = group;
        let mut first = Vec::new();
        for slug in &self.preferences.order {
            let (named, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|candidate| candidate.endpoint.provider.as_str() == slug);
            first.extend(self.by_measure(named, sort));
            rest = others;
        }
        first.extend(self.by_measure(rest, sort));
        self.demote_slow(first)
    }

    fn by_measure(&self, mut group: Vec<Candidate>, sort: Option<Sort>) -> Vec<Candidate> {
        let view = |candidate: &Candidate| self.health.view(candidate.endpoint.index, self.now);
        match sort.map(|sort| sort.by) {
            _ if group.len() < 2 => {}
            // An explicit order is deterministic: no random draw.
            None => return self.balanced(group, self.preferences.order.is_empty()),
            Some(SortBy::Price) => group.sort_by(by_price),
            // Endpoints without measurements come last.
            Some(SortBy::Latency) => {
                group.sort_by_cached_key(|candidate| view(candidate).latency.unwrap_or(Duration::MAX));
            }
            Some(SortBy::Throughput) => {
                group.sort_by_cached_key(|candidate| {
                    std::cmp::Reverse(view(candidate).throughput.map_or(0, |throughput| throughput.p50))
                });
            }
        }
        group
    }

    /// Draws the first candidate from those without a recent failure, with a weight of 1/price² each. The other healthy
    /// candidates follow by price, then those with a recent failure.
    fn balanced(&self, group: Vec<Candidate>, drawn: bool) -> Vec<Candidate> {
        let failing =
            |candidate: &Candidate| self.health.failed_recently(candidate.endpoint.index, self.workspace, self.now);
        let (mut degraded, mut healthy): (Vec<_>, Vec<_>) = group.into_iter().partition(failing);
        healthy.sort_by(by_price);
        degraded.sort_by(by_price);
        if drawn && healthy.len() > 1 {
            let drawn = self.draw(&healthy);
            let first = healthy.remove(drawn);
            healthy.insert(0, first);
        }
        healthy.append(&mut degraded);
        healthy
    }

    /// Draws a position among candidates sorted by price. Free candidates take all of the weight.
    fn draw(&self, sorted: &[Candidate]) -> usize {
        let cheapest = sorted[0].prices.prompt;
        // Relative to the cheapest price, so that tiny prices do not underflow. No charge depends on these weights.
        let weight = |price: Price| {
            if price == cheapest {
                1.0
            } else if cheapest == Price::ZERO {
                0.0
            } else {
                cheapest.ratio_to(price).powi(2)
            }
        };
        let weights: Vec<f64> = sorted.iter().map(|candidate| weight(candidate.prices.prompt)).collect();
        let sum: f64 = weights.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "53 bits are plenty for a draw")]
        let drawn = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut left = drawn * sum;
        for (position, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return position;
            }
        }
        0
    }

    fn demote_slow(&self, group: Vec<Candidate>) -> Vec<Candidate> {
        let (latency, throughput) = (self.preferences.preferred_max_latency, self.preferences.preferred_min_throughput);
        if latency.is_empty() && throughput.is_empty() {
            return group;
        }
        let slow = |candidate: &Candidate| {
            let HealthView { percentiles, throughput: measured, .. } =
                self.health.view(candidate.endpoint.index, self.now);
            percentiles.is_some_and(|measured| !quick_enough(measured, latency))
                || measured.is_some_and(|measured| !busy_enough(measured, throughput))
        };
        let (slow, mut quick): (Vec<_>, Vec<_>) = group.into_iter().partition(slow);
        quick.extend(slow);
        quick
    }
}

fn by_price(a: &Candidate, b: &Candidate) -> Ordering {
    (a.prices.prompt, a.prices.completion).cmp(&(b.prices.prompt, b.prices.completion))
}

fn quick_enough(measured: LatencyPercentiles, bounds: PercentileBounds) -> bool {
    are_within(measured, bounds, |latency, bound| latency <= Duration::from_millis(bound))
}

fn busy_enough(measured: ThroughputPercentiles, bounds: PercentileBounds) -> bool {
    are_within(measured, bounds, |throughput, bound| throughput >= bound)
}

/// Returns true if every percentile with a bound meets it.
fn are_within<T>(measured: Percentiles<T>, bounds: PercentileBounds, is_within: impl Fn(T, u64) -> bool) -> bool {
    let Percentiles { p50, p75, p90, p99 } = measured;
    let pairs = [(p50, bounds.p50), (p75, bounds.p75), (p90, bounds.p90), (p99, bounds.p99)];
    pairs.into_iter().all(|(measured, bound)| bound.is_none_or(|bound| is_within(measured, bound)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// One percentile bounded, the others not.
    #[rstest]
    #[case::p50(|bound| PercentileBounds { p50: bound, ..PercentileBounds::default() })]
    #[case::p75(|bound| PercentileBounds { p75: bound, ..PercentileBounds::default() })]
    #[case::p90(|bound| PercentileBounds { p90: bound, ..PercentileBounds::default() })]
    #[case::p99(|bound| PercentileBounds { p99: bound, ..PercentileBounds::default() })]
    fn preferred_bounds_include_the_bound_itself(#[case] bounds: fn(Option<u64>) -> PercentileBounds) {
        let at = Duration::from_millis(150);
        let latency = LatencyPercentiles { p50: at, p75: at, p90: at, p99: at };
        for (max, expected) in [(None, true), (Some(149), false), (Some(150), true), (Some(151), true)] {
            assert_eq!(quick_enough(latency, bounds(max)), expected, "at most {max:?} ms");
        }
        let throughput = ThroughputPercentiles { p50: 500, p75: 500, p90: 500, p99: 500 };
        for (min, expected) in [(None, true), (Some(499), true), (Some(500), true), (Some(501), false)] {
            assert_eq!(busy_enough(throughput, bounds(min)), expected, "at least {min:?}");
        }
    }
}
