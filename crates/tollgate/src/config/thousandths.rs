//! Small decimal numbers without floats.

/// A decimal number with at most three digits after the point, times a thousand: `1.05` is 1050. `None` for anything
/// else, a sign and an exponent included.
pub fn thousandths(text: &str) -> Option<u32> {
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
    fn decimals_become_thousandths() {
        for (text, expected) in [("1", 1000), ("1.0", 1000), ("0.05", 50), ("20.125", 20_125), ("007.5", 7500)] {
            assert_eq!(thousandths(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "0.0005", "1.0000", " 1", "4294968", "x"] {
            assert_eq!(thousandths(text), None, "{text}");
        }
    }
}
