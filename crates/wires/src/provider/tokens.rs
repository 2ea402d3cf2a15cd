//! Token counts.

use domain::pricing::ReportedUsage;

use super::{MalformedAnswer, Object, string};
use domain::json::JsonText;

/// The largest plausible token count; a provider that reports more is wrong.
const MAX_TOKENS: u64 = 1_000_000_000;

/// The names of the token counts on a wire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageNames {
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
}

/// The names of the token counts on all wires: gateways between two wires keep those of the other one.
const ALL_NAMES: [UsageNames; 3] = [
    UsageNames { input: "input_tokens", output: "output_tokens" },
    UsageNames { input: "prompt_tokens", output: "completion_tokens" },
    UsageNames { input: "total_input_tokens", output: "total_output_tokens" },
];

/// Reads the token counts, under the names of the wire or of another one. `None` if the object or the input count is
/// missing or null. An input count of zero is no report: a call never has an empty input.
pub(crate) fn usage(usage: Option<JsonText<'_>>, names: UsageNames) -> Result<Option<ReportedUsage>, MalformedAnswer> {
    let Some(usage) = usage else { return Ok(None) };
    let members = Object::of(usage).ok_or(MalformedAnswer::Usage)?;
    if let Some(usage) = counts(&members, names)? {
        return Ok(Some(usage));
    }
    Ok(ALL_NAMES.iter().find_map(|names| counts(&members, *names).ok().flatten()))
}

/// Reads the token counts under these names.
fn counts(members: &Object<'_>, names: UsageNames) -> Result<Option<ReportedUsage>, MalformedAnswer> {
    let count = |name| match members.get(name) {
        Ok(None) => Ok(None),
        Ok(Some(value)) => tokens(value).map(Some).ok_or(MalformedAnswer::Usage),
        Err(_) => Err(MalformedAnswer::Usage),
    };
    let (input, output) = (count(names.input)?, count(names.output)?);
    let input = input.filter(|tokens| *tokens > 0);
    Ok(input.map(|input_tokens| ReportedUsage { input_tokens, output_tokens: output.unwrap_or(0) }))
}

/// Parses a whole number in any notation, also in a string: `12`, `12.0`, `1.2e1`, `"12"`.
fn tokens(value: JsonText<'_>) -> Option<u64> {
    match string(value) {
        Some(text) => whole_number(text.trim()),
        None => whole_number(value.get()),
    }
}

fn whole_number(text: &str) -> Option<u64> {
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
