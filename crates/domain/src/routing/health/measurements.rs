//! Measurements of answers: an average with exponential decay, and percentiles over a sliding window in bounded memory.
//!
//! The width of a bucket grows with its values, so the error is relative: a percentile is within 1/32 (3.2 %) of a
//! recorded value, and exact below 32. Time is divided into slots; an expired slot is cleared and used again. Recording
//! takes a few integer operations.

use std::time::Duration;

/// A weighted average: a value weighs 1 when it is added and half as much after each half-life.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DecayingMean {
    sum: f64,
    weight: f64,
    at: Duration,
}

impl DecayingMean {
    /// Adds a finite value.
    pub(super) fn add(&mut self, value: f64, half_life: Duration, now: Duration) {
        // The weight is at least 1 afterwards, so that the average is never 0 / 0.
        let factor = self.factor(half_life, now);
        self.sum = self.sum * factor + value;
        self.weight = self.weight * factor + 1.0;
        self.at = self.at.max(now);
    }

    /// Returns the average; `None` before the first value. Time alone does not change it.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    fn factor(&self, half_life: Duration, now: Duration) -> f64 {
        let age = now.saturating_sub(self.at);
        if age.is_zero() { 1.0 } else { (-age.as_secs_f64() / half_life.as_secs_f64()).exp2() }
    }
}

/// The number of buckets per power of two.
const STEPS: usize = 16;
/// The largest value; larger ones are counted as this.
const MAX_VALUE: u64 = u32::MAX as u64;
/// The number of buckets: one for each value below 32, then 16 for each power of two up to [`MAX_VALUE`].
const BUCKETS: usize = 29 * STEPS;
/// The number of time slots in the window.
const SLOTS: u64 = 6;
/// The largest count of a bucket in a slot, so that the sum over all slots cannot overflow.
const MAX_COUNT: u32 = u32::MAX / 6;

/// The order in which ranks are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RankOrder {
    /// For metrics where lower is better: 90 % of the values are at most p90.
    Ascending,
    /// For metrics where higher is better: 90 % of the values are at least p90.
    Descending,
}

#[derive(Debug, Clone)]
struct Slot {
    number: u64,
    counts: [u32; BUCKETS],
}

/// A histogram of the values recorded within the window.
#[derive(Debug, Default)]
pub(super) struct WindowedHistogram {
    /// Empty until the first value, so that an unused endpoint takes no memory.
    slots: Vec<Slot>,
    newest: u64,
}

impl WindowedHistogram {
    /// Records a value.
    pub(super) fn record(&mut self, value: u64, window: Duration, now: Duration) {
        if self.slots.is_empty() {
            self.slots = (0..SLOTS).map(|number| Slot { number, counts: [0; BUCKETS] }).collect();
        }
        self.newest = self.newest.max(slot_number(window, now));
        let newest = self.newest;
        let index = usize::try_from(newest % SLOTS).unwrap_or_default();
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.number != newest {
            *slot = Slot { number: newest, counts: [0; BUCKETS] };
        }
        if let Some(count) = slot.counts.get_mut(bucket_of(value)).filter(|count| **count < MAX_COUNT) {
            *count += 1;
        }
    }

    /// Returns the values at these percentages (1 to 100, ascending) by nearest rank, and the number of recorded
    /// values. Returns `None` if the window holds no value.
    pub(super) fn percentiles<const N: usize>(
        &self,
        percentages: [u64; N],
        order: RankOrder,
        window: Duration,
        now: Duration,
    ) -> Option<([u64; N], u64)> {
        let mut counts = self.counts_in_window(window, now)?;
        let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        if order == RankOrder::Descending {
            counts.reverse();
        }
        let mut below = 0;
        let mut rest = counts.iter().map(|count| u64::from(*count)).enumerate().peekable();
        let values = percentages.map(|percentage| {
            let rank = (total * percentage).div_ceil(100).max(1);
            while let Some((_, count)) = rest.next_if(|(_, count)| below + count < rank) {
                below += count;
            }
            let step = rest.peek().map_or(BUCKETS - 1, |(step, _)| *step);
            middle_of(if order == RankOrder::Ascending { step } else { BUCKETS - 1 - step })
        });
        (total > 0).then_some((values, total))
    }

    /// Returns the counts of all slots in the window.
    fn counts_in_window(&self, window: Duration, now: Duration) -> Option<[u32; BUCKETS]> {
        let current = slot_number(window, now);
        let mut live = self.slots.iter().filter(|slot| current < slot.number.saturating_add(SLOTS)).peekable();
        live.peek()?;
        let mut counts = [0; BUCKETS];
        for slot in live {
            for (sum, count) in counts.iter_mut().zip(&slot.counts) {
                *sum += count;
            }
        }
        Some(counts)
    }
}

fn slot_number(window: Duration, now: Duration) -> u64 {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    nanos(now) / (nanos(window) / SLOTS).max(1)
}

fn bucket_of(value: u64) -> usize {
    let value = value.min(MAX_VALUE);
    let small = usize::try_from(value).unwrap_or_default();
    if small < STEPS {
        return small;
    }
    let shift = value.ilog2() - STEPS.ilog2();
    // The top bits of the value, 16 to 31; each power of two adds 16 buckets.
    usize::try_from(shift).unwrap_or_default() * STEPS + (small >> shift)
}

fn middle_of(bucket: usize) -> u64 {
    if bucket < 2 * STEPS {
        return bucket as u64;
    }
    let shift = bucket / STEPS - 1;
    let lowest = ((STEPS + bucket % STEPS) as u64) << shift;
    lowest + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_of_has_no_gaps() {
        let mut values: Vec<u64> = (0..100_000).collect();
        values.extend((5..32).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
        values.extend([MAX_VALUE - 1, MAX_VALUE, MAX_VALUE + 1, u64::MAX]);
        values.sort_unstable();
        for pair in values.windows(2) {
            let step = bucket_of(pair[1]) - bucket_of(pair[0]);
            assert!(step <= 1 || pair[1] - pair[0] > 1, "{pair:?}");
        }
        assert_eq!((bucket_of(0), bucket_of(MAX_VALUE), bucket_of(u64::MAX)), (0, BUCKETS - 1, BUCKETS - 1));
    }

    #[test]
    fn middle_of_differs_from_bucket_values_by_one_thirty_second_at_most() {
        for value in (0..200_000).chain((5..32).map(|bits| (1 << bits) - 1)).chain([MAX_VALUE]) {
            let read = middle_of(bucket_of(value));
            assert!(read.abs_diff(value) * 32 <= value, "{value} is read as {read}");
        }
    }
}
