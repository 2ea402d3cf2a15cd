//! The details that charges go without when the journal has no room for them.

use std::sync::Arc;

use crate::budget::UsageCharge;
use crate::money::Price;
use crate::pricing::TokenPrices;
use crate::usage::{AttemptRecord, UsageRecord, UsageShare};

/// The longest name in a record that has only its sum left, in bytes.
const MAX_NAME_BYTES: usize = 256;
/// The digits of a picodollar behind the point of a dollar.
const PICO_DIGITS: u32 = 12;

/// A detail of a charge that may be left out, so that the end of a hold is recorded in any case. None of them changes
/// the cost, nor that it follows from the tokens and prices of the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Omission {
    /// The caller's trace, and the messages to destinations.
    Trace,
    /// What guardrails found.
    Findings,
    /// The attempts one by one: those at the same prices become one.
    Attempts,
    /// Everything but the sum, and what it is counted by. This fits into the bytes that are reserved for the end of
    /// every request, see [`crate::budget::entries::charge_bytes`].
    Everything,
}

impl Omission {
    /// All of them, in the order in which they are left out.
    pub(super) const ALL: [Self; 4] = [Self::Trace, Self::Findings, Self::Attempts, Self::Everything];

    /// Its name in the log.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace and messages",
            Self::Findings => "findings",
            Self::Attempts => "single attempts",
            Self::Everything => "all but the sum",
        }
    }

    /// Leaves the detail out; false where the charge has nothing of the kind.
    pub(super) fn apply(self, charge: &mut UsageCharge) -> bool {
        let UsageCharge { record, messages } = charge;
        match self {
            Self::Trace => {
                let had_messages = !std::mem::take(messages).is_empty();
                record.trace.take().is_some() || had_messages
            }
            Self::Findings => !std::mem::take(&mut record.findings).is_empty(),
            Self::Attempts => {
                let merged = merge_attempts(&record.attempts);
                let is_shorter = merged.len() < record.attempts.len();
                record.attempts = merged.into();
                is_shorter
            }
            Self::Everything => {
                keep_sum(record);
                true
            }
        }
    }
}

/// Joins attempts at the same prices, whose tokens are counted alike. The sum of tokens times prices stays, and with it
/// the cost, which is rounded up once for all of them.
fn merge_attempts(attempts: &[AttemptRecord]) -> Vec<AttemptRecord> {
    let mut merged: Vec<AttemptRecord> = Vec::new();
    for attempt in attempts {
        let is_alike =
            |other: &&mut AttemptRecord| other.prices == attempt.prices && other.usage_source == attempt.usage_source;
        match merged.iter_mut().find(is_alike).and_then(|other| join(other, attempt)) {
            Some(()) => {}
            None => merged.push(attempt.clone()),
        }
    }
    merged
}

/// Adds an attempt to another one; `None` where the tokens leave their range.
fn join(into: &mut AttemptRecord, attempt: &AttemptRecord) -> Option<()> {
    let input_tokens = into.input_tokens.checked_add(attempt.input_tokens)?;
    let output_tokens = into.output_tokens.checked_add(attempt.output_tokens)?;
    let end = |attempt: &AttemptRecord| attempt.began.saturating_add(attempt.latency);
    let ended = end(into).max(end(attempt));
    into.began = into.began.min(attempt.began);
    into.latency = ended.saturating_sub(into.began);
    (into.input_tokens, into.output_tokens) = (input_tokens, output_tokens);
    Some(())
}

/// Keeps of a record its ids, times and counts, and one attempt of one token that costs the whole.
fn keep_sum(record: &mut UsageRecord) {
    (record.session_id, record.user) = (None, None);
    cut(&mut record.requested_model);
    cut(&mut record.provider);
    let cost = Price::from_parts(i128::from(record.cost.pico()), PICO_DIGITS);
    record.attempts = match (record.attempts.last(), cost) {
        (Some(last), Some(cost)) => {
            let mut attempt = AttemptRecord {
                upstream_model: String::new(),
                input_tokens: 1,
                output_tokens: 0,
                prices: TokenPrices { prompt: cost, completion: Price::ZERO },
                ..last.clone()
            };
            cut(&mut attempt.provider);
            cut(&mut attempt.outcome);
            record.share = UsageShare::WHOLE;
            Arc::new([attempt])
        }
        // A record without attempts costs its own tokens times its own prices.
        _ => Arc::default(),
    };
}

fn cut(name: &mut String) {
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
}

#[cfg(test)]
mod tests;
