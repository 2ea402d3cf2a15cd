//! Decimal numbers in fixed-point representation.

/// Parses a decimal number with at most three digits after the point into thousandths: `1.05` is 1050. Returns `None`
/// for anything else, including signs and exponents.
pub fn parse_thousandths(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let fraction: u32 = format!("{fraction:0<3}").parse().ok()?;
    whole.checked_mul(1000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_parsed_as_thousandths() {
        for (text, expected) in [("1", 1000), ("1.0", 1000), ("0.05", 50), ("20.125", 20_125), ("007.5", 7500)] {
            assert_eq!(parse_thousandths(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_formats_are_rejected() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "0.0005", "1.0000", " 1", "4294968", "x"] {
            assert_eq!(parse_thousandths(text), None, "{text}");
        }
    }
}
