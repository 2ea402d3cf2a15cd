//! Sampling rates as exact decimals.

use crate::money::Usd;
use crate::observability::SAMPLING_PARTS;

/// One ten-thousandth in units of the twelfth decimal.
const TEN_THOUSANDTH: i64 = 100_000_000;

/// Parses a rate of 0.0001 to 1 with at most four decimals, in any JSON notation of a number.
pub(super) fn parse(text: &str) -> Option<u16> {
    let exact = text.parse::<Usd>().ok()?.pico();
    let parts = u16::try_from(exact / TEN_THOUSANDTH).ok()?;
    (exact % TEN_THOUSANDTH == 0 && (1..=SAMPLING_PARTS).contains(&parts)).then_some(parts)
}

/// Formats a rate as a JSON number.
pub(super) fn format(ten_thousandths: u16) -> String {
    Usd::from_pico(i64::from(ten_thousandths) * TEN_THOUSANDTH).to_string()
}
