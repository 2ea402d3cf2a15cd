//! Amounts in picodollars, read from and written as decimals without floats.

const PICO_DIGITS: i32 = 12;

/// Parses a decimal in any JSON notation; `None` if it is no number of picodollars.
pub fn parse_usd(text: &str) -> Option<i64> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = mantissa.strip_prefix('-').map_or((1, mantissa), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all: i64 = format!("{whole}{fraction}").parse().ok()?;
    let power = PICO_DIGITS + exponent - i32::try_from(fraction.len()).ok()?;
    let scale = 10_i64.checked_pow(power.unsigned_abs())?;
    let amount = if power >= 0 { all.checked_mul(scale)? } else { (all % scale == 0).then_some(all / scale)? };
    Some(sign * amount)
}

/// Formats an amount as a decimal.
pub fn format_usd(pico: i64) -> String {
    let scale = 10_i64.pow(PICO_DIGITS.unsigned_abs());
    format!("{}.{:012}", pico / scale, pico % scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_in_every_notation() {
        for (text, pico) in
            [("0.0000042", 4_200_000), ("4.2e-6", 4_200_000), ("1", 1_000_000_000_000), ("-0.5", -500_000_000_000)]
        {
            assert_eq!(parse_usd(text), Some(pico), "{text}");
        }
        for text in ["", "a", "1e-13", "99999999"] {
            assert_eq!(parse_usd(text), None, "{text}");
        }
        assert_eq!(format_usd(4_200_000), "0.000004200000");
    }
}
