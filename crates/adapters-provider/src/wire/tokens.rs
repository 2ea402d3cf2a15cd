//! Token counts.

use domain::decision::ReportedUsage;

use super::{MalformedAnswer, Object};
use domain::json::JsonText;

/// The largest plausible token count; a provider that reports more is wrong.
const MAX_TOKENS: u64 = 1_000_000_000;

/// The names of the token counts on a wire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageNames {
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
}

/// Reads the token counts. `None` if the object or the input count is missing or null.
pub(crate) fn usage(usage: Option<JsonText<'_>>, names: UsageNames) -> Result<Option<ReportedUsage>, MalformedAnswer> {
    let Some(usage) = usage else { return Ok(None) };
    let members = Object::of(usage).ok_or(MalformedAnswer::Usage)?;
    let count = |name| match members.get(name) {
        Ok(None) => Ok(None),
        Ok(Some(value)) => tokens(value.get()).map(Some).ok_or(MalformedAnswer::Usage),
        Err(_) => Err(MalformedAnswer::Usage),
    };
    let (input, output) = (count(names.input)?, count(names.output)?);
    Ok(input.map(|input_tokens| ReportedUsage { input_tokens, output_tokens: output.unwrap_or(0) }))
}

/// Parses a whole number in any notation: `12`, `12.0`, `1.2e1`.
fn tokens(text: &str) -> Option<u64> {
    let count = if let Ok(count) = text.parse::<u64>() {
        count
    } else {
        let is_number = text.as_bytes().first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
        let number: f64 = is_number.then(|| text.parse().ok()).flatten()?;
        if number.fract() != 0.0 || !(0.0..=1e9).contains(&number) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked in the lines above")]
        let count = number as u64;
        count
    };
    (count <= MAX_TOKENS).then_some(count)
}
