//! Rounding of distributions to four decimals that sum to exactly 1.

/// Ten-thousandths in one.
pub const ONE: u32 = 10_000;

/// Converts weights to ten-thousandths that sum to [`ONE`]: rounds each share down and adds the difference to the
/// largest remainders, the first on ties. `None` for weights that are not finite, negative, or all 0.
pub fn to_units(weights: &[f64]) -> Option<Vec<u32>> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if !weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0) || largest <= 0.0 {
        return None;
    }
    // Scaled first, so that the sum is finite and at least 1.
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    let exact: Vec<f64> = weights.iter().map(|weight| weight / largest / sum * f64::from(ONE)).collect();
    let mut units: Vec<u32> = exact.iter().map(|share| whole(*share)).collect();
    let given: u32 = units.iter().sum();
    let mut by_remainder: Vec<usize> = (0..units.len()).collect();
    let remainder = |place: usize| exact[place].fract();
    by_remainder.sort_by(|a, b| remainder(*b).total_cmp(&remainder(*a)).then(a.cmp(b)));
    let missing = usize::try_from(ONE.saturating_sub(given)).unwrap_or(0);
    // Rounding down loses less than one unit per entry, so each entry gets at most one back.
    for place in by_remainder.into_iter().take(missing) {
        units[place] += 1;
    }
    Some(units)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is from 0 to 10 000")]
fn whole(share: f64) -> u32 {
    share.clamp(0.0, f64::from(ONE)) as u32
}

/// Formats ten-thousandths as a decimal number: `7400` is `0.74`.
pub fn format_units(units: u64) -> String {
    let one = u64::from(ONE);
    let (whole, part) = (units / one, units % one);
    if part == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{part:04}");
    text.trim_end_matches('0').to_owned()
}

/// Returns the index of the largest entry, the first on ties.
pub fn largest(units: &[u32]) -> Option<usize> {
    let largest = units.iter().max()?;
    units.iter().position(|unit| unit == largest)
}

/// Returns the exact expected level in ten-thousandths.
pub fn expectation(units: &[u32]) -> u64 {
    (0_u64..).zip(units).map(|(level, unit)| level * u64::from(*unit)).sum()
}

/// Raises each weight to the power of `1000 / temperature_milli`: values above 1000 flatten the distribution. Returns
/// weights relative to the largest, which prevents underflow of relevant weights.
pub fn soften(weights: &[f64], temperature_milli: u32) -> Vec<f64> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 || !largest.is_finite() {
        return weights.to_vec();
    }
    let power = 1000.0 / f64::from(temperature_milli.max(1));
    weights.iter().map(|weight| (weight / largest).powf(power)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn to_units_adds_difference_to_largest_remainders() {
        assert_eq!(to_units(&[1.0, 1.0, 1.0]).unwrap(), [3334, 3333, 3333]);
        assert_eq!(to_units(&[2.0, 2.0, 2.0, 1.0]).unwrap(), [2857, 2857, 2857, 1429]);
        assert_eq!(to_units(&[0.0, 3.0]).unwrap(), [0, ONE]);
        assert_eq!(to_units(&[f64::MAX, f64::MAX]).unwrap(), [5000, 5000]);
        assert_eq!(to_units(&[f64::MIN_POSITIVE]).unwrap(), [ONE]);
    }

    #[test]
    fn to_units_rejects_invalid_weights() {
        for weights in [&[][..], &[0.0, 0.0], &[-0.1, 1.0], &[f64::NAN, 1.0], &[f64::INFINITY, 1.0]] {
            assert_eq!(to_units(weights), None, "{weights:?}");
        }
    }

    #[test]
    fn format_units_omits_trailing_zeros() {
        let written = [0, 1, 10, 7400, 9999, 10_000, 13_200, 90_000].map(format_units);
        assert_eq!(written, ["0", "0.0001", "0.001", "0.74", "0.9999", "1", "1.32", "9"]);
    }

    #[test]
    fn soften_keeps_order_of_weights() {
        let softened = to_units(&soften(&[0.8, 0.2], 2000)).unwrap();
        assert_eq!(softened, [6667, 3333], "the square roots of 4 and 1");
        assert_eq!(to_units(&soften(&[0.8, 0.2], 500)).unwrap(), [9412, 588], "16 to 1");
        assert_eq!(to_units(&soften(&[0.3, 0.7], 1000)).unwrap(), [3000, 7000]);
        assert_eq!(to_units(&soften(&[1e-300, 1e-299], 50)).unwrap(), [0, ONE]);
    }

    proptest! {
        #[test]
        fn to_units_sums_to_one_for_any_weights(weights in prop::collection::vec(0.0_f64..1.0, 1..256), milli in 50_u32..20_000) {
            prop_assume!(weights.iter().any(|weight| *weight > 0.0));
            let units = to_units(&soften(&weights, milli)).unwrap();
            prop_assert_eq!(units.len(), weights.len());
            prop_assert_eq!(units.iter().sum::<u32>(), ONE);
            let most = weights.iter().copied().fold(0.0, f64::max);
            let top = largest(&units).unwrap();
            // A unit is the most that rounding can put a weight ahead of the largest.
            let place = weights.iter().position(|weight| *weight >= most).unwrap();
            prop_assert!(units[top] - units[place] <= 1);
        }
    }
}
