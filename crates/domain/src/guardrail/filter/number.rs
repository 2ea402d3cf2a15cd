//! Numbers with an exponent, written out.

/// Digits of a number that is written out, and places that its point is moved: longer ones say nothing to a filter.
const MAX: usize = 40;

/// A JSON number with an exponent as it is without one; `None` where it has none, is a fraction or is too long.
pub(super) fn written_out(number: &str) -> Option<String> {
    let (mantissa, exponent) = number.trim_start_matches('-').split_once(['e', 'E'])?;
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let places = usize::try_from(i64::try_from(whole.len()).ok()?.checked_add(exponent)?).ok()?;
    let digits = format!("{whole}{fraction}");
    if digits.len() > MAX || !(1..=MAX).contains(&places) {
        return None;
    }
    let padded = format!("{digits:0<places$}");
    let (whole, fraction) = padded.split_at(places);
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    Some(if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("4.111e3", Some("4111"))]
    #[case("-4.1115E+3", Some("4111.5"))]
    #[case("41110e-1", Some("4111"))]
    #[case("0.4111e4", Some("4111"))]
    #[case("4e3", Some("4000"))]
    #[case("4111", None)]
    #[case("4111e-4", None)]
    #[case("1e400", None)]
    #[case("1e-99999999999999999999", None)]
    fn the_point_is_moved(#[case] number: &str, #[case] expected: Option<&str>) {
        assert_eq!(written_out(number).as_deref(), expected);
    }

    #[test]
    fn long_numbers_are_left_alone() {
        assert_eq!(written_out(&format!("{}e1", "1".repeat(MAX + 1))), None);
        assert_eq!(written_out("1e40"), None);
    }
}
