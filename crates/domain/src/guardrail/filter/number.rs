//! Expands numbers with an exponent.

use std::iter::repeat_n;

/// The highest number of zeros that an exponent adds. More zeros add no information.
const MAX_ZEROS: usize = 40;

/// Returns a JSON number without its exponent; `None` if it has no exponent or its absolute value is below one. The
/// result is exact except for zeros beyond [`MAX_ZEROS`]. Memory is linear in the length of the text.
pub(super) fn expand_exponent(number: &str) -> Option<String> {
    let (mantissa, exponent) = number.trim_start_matches('-').split_once(['e', 'E'])?;
    // Exponents beyond `i64` make the number zero or infinite.
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let leading = i64::try_from(digits.len() - significant.len()).ok()?;
    let significant = significant.trim_end_matches('0');
    let places = i64::try_from(whole.len()).ok()?.checked_add(exponent)?.checked_sub(leading)?;
    let places = usize::try_from(places).ok().filter(|places| *places > 0 && !significant.is_empty())?;
    Some(match significant.split_at_checked(places) {
        Some((whole, "")) => whole.to_owned(),
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
        None => {
            let zeros = (places - significant.len()).min(MAX_ZEROS);
            significant.chars().chain(repeat_n('0', zeros)).collect()
        }
    })
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
    #[case("0.0004111e7", Some("4111"))]
    #[case("4e3", Some("4000"))]
    #[case("4111e00000000000000000000000000000", Some("4111"))]
    #[case("4111", None)]
    #[case("4111e-4", None)]
    #[case("0e9", None)]
    #[case("0.000e9", None)]
    #[case("1e-99999999999999999999", None)]
    #[case("1e9223372036854775807", None)]
    fn expand_exponent_moves_the_point(#[case] number: &str, #[case] expected: Option<&str>) {
        assert_eq!(expand_exponent(number).as_deref(), expected);
    }

    #[test]
    fn expand_exponent_is_exact_when_the_number_is_long() {
        for length in [1, 39, 40, 41, 100, 100_000] {
            let (zeros, ones) = ("0".repeat(length), "1".repeat(length));
            assert_eq!(expand_exponent(&format!("4111{zeros}e-{length}")).unwrap(), "4111");
            assert_eq!(expand_exponent(&format!("0.{zeros}4111e{}", length + 4)).unwrap(), "4111");
            assert_eq!(expand_exponent(&format!("4.111{zeros}e3")).unwrap(), "4111");
            assert_eq!(expand_exponent(&format!("4111{ones}e-{length}")).unwrap(), format!("4111.{ones}"));
        }
    }

    #[test]
    fn expand_exponent_limits_added_zeros() {
        assert_eq!(expand_exponent("4.111e43").unwrap(), format!("4111{}", "0".repeat(40)));
        assert_eq!(expand_exponent("4.111e999999999").unwrap(), format!("4111{}", "0".repeat(40)));
    }
}
