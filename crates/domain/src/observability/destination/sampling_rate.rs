//! Sampling rates, without floats.

use crate::money::Usd;
use crate::observability::SAMPLING_PARTS;

/// What a ten-thousandth is in the twelve decimals of an exact number.
const PART: i64 = 100_000_000;

/// Reads a rate of 0.0001 to 1 with at most four decimals, in any JSON notation of a number.
pub(super) fn read(text: &str) -> Option<u16> {
    let exact = text.parse::<Usd>().ok()?.pico();
    let parts = u16::try_from(exact / PART).ok()?;
    (exact % PART == 0 && (1..=SAMPLING_PARTS).contains(&parts)).then_some(parts)
}

/// A rate as a JSON number.
pub(super) fn written(ten_thousandths: u16) -> String {
    Usd::from_pico(i64::from(ten_thousandths) * PART).to_string()
}
