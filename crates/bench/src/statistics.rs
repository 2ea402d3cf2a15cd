//! Medians, percentiles, and ratios of paired runs.

use std::time::Duration;

/// Returns the median; the mean of the two middle values for an even count, zero for no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => 0.0,
        (Some(value), 1) => *value,
        (Some(value), _) => f64::midpoint(sorted[middle - 1], *value),
    }
}

/// Returns the median of the pairwise ratios. A disturbance of the machine affects both sides of a round alike.
pub fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
}

/// Returns the median of the pairwise differences.
pub fn difference(ours: &[f64], theirs: &[f64]) -> f64 {
    median(&ours.iter().zip(theirs).map(|(ours, theirs)| ours - theirs).collect::<Vec<_>>())
}

/// Returns the value that `percent` of the sorted values do not exceed, in microseconds.
pub fn percentile_us(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(0.0, |value| value.as_secs_f64() * 1e6)
}

/// Converts an integer to a figure.
#[expect(clippy::cast_precision_loss, reason = "figures are printed with a few digits")]
pub fn figure(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn median_averages_two_middle_values() {
        assert!(near(median(&[]), 0.0));
        assert!(near(median(&[3.0, 1.0, 2.0]), 2.0));
        assert!(near(median(&[4.0, 1.0, 2.0, 3.0]), 2.5));
    }

    #[test]
    fn ratio_compares_pairs_before_taking_the_median() {
        // A machine that is twice as slow in the second round changes nothing.
        assert!(near(ratio(&[60.0, 30.0, 66.0], &[100.0, 50.0, 110.0]), 0.6));
        assert!(near(difference(&[15.0, 30.0, 12.0], &[10.0, 25.0, 2.0]), 5.0));
    }

    #[test]
    fn percentile_uses_nearest_rank() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        assert!(near(percentile_us(&sorted, 50), 100.0));
        assert!(near(percentile_us(&sorted, 99), 198.0));
        assert!(near(percentile_us(&sorted[..1], 99), 1.0));
        assert!(near(percentile_us(&[], 99), 0.0));
    }
}
