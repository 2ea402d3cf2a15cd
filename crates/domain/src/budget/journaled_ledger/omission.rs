//! The details that charges leave out when the journal has no room.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::calls::lock;
use super::sync::{AtomicU64, Mutex};
use crate::budget::UsageCharge;
use crate::money::Price;
use crate::pricing::TokenPrices;
use crate::usage::{AttemptRecord, UsageRecord, UsageShare};

/// The longest name in a record that is reduced to its sum, in bytes.
const MAX_NAME_BYTES: usize = 256;
/// The decimals of a picodollar in USD.
const PICO_DIGITS: u32 = 12;

/// A detail of a charge that may be left out, so that the end of a hold is always recorded. No omission changes the
/// cost, nor that it follows from the tokens and prices of the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Omission {
    /// The caller's trace, and the messages to destinations.
    Trace,
    /// The evidence of the answers, and the outcomes of stages.
    Evidence,
    /// The findings of guardrails.
    Findings,
    /// The separate attempts: those at the same prices become one.
    Attempts,
    /// Everything but the sum and its accounts. The rest fits into the reserved bytes of every request; see
    /// [`crate::budget::entries::charge_bytes`].
    Everything,
}

impl Omission {
    /// All omissions, in order of their application.
    pub(super) const ALL: [Self; 5] = [Self::Trace, Self::Evidence, Self::Findings, Self::Attempts, Self::Everything];

    /// Returns the name in the log.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace and messages",
            Self::Evidence => "evidence and outcomes",
            Self::Findings => "findings",
            Self::Attempts => "single attempts",
            Self::Everything => "all but the sum",
        }
    }

    /// Leaves the detail out. Returns false if the charge does not have it.
    pub(super) fn apply(self, charge: &mut UsageCharge) -> bool {
        let UsageCharge { record, messages, evidence } = charge;
        match self {
            Self::Trace => {
                let had_messages = !std::mem::take(messages).is_empty();
                record.trace.take().is_some() || had_messages
            }
            Self::Evidence => {
                let had_evidence = !std::mem::take(evidence).is_empty();
                record.outcomes.take().is_some() || had_evidence
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

/// Joins attempts at the same prices and token source. The sum of tokens times prices stays, and with it the cost,
/// which is rounded up once.
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

/// Adds an attempt to another one. Returns `None` if the tokens are out of range.
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

/// Reduces a record to ids, times and counts, and one attempt of one token at the full cost.
fn keep_sum(record: &mut UsageRecord) {
    (record.session_id, record.user) = (None, None);
    cut(&mut record.requested_model);
    cut(&mut record.provider);
    let cost = Price::from_parts(i128::from(record.cost.pico()), PICO_DIGITS);
    record.attempts = match (record.attempts.last(), cost) {
        (Some(last), Some(cost)) => {
            let mut attempt = AttemptRecord {
                upstream_model: "".into(),
                input_tokens: 1,
                output_tokens: 0,
                prices: TokenPrices { prompt: cost, completion: Price::ZERO },
                ..last.clone()
            };
            attempt.provider = attempt.provider[..attempt.provider.floor_char_boundary(MAX_NAME_BYTES)].into();
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

/// The time between two log lines.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// Counts records without their trace.
#[derive(Debug)]
pub(super) struct OmittedTraces {
    count: AtomicU64,
    /// The monotonic time of the last log line.
    logged_at: Mutex<Option<Duration>>,
}

impl Default for OmittedTraces {
    fn default() -> Self {
        Self { count: AtomicU64::new(0), logged_at: Mutex::new(None) }
    }
}

impl OmittedTraces {
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a record. Returns true once a minute, to log it.
    pub(super) fn add(&self, now: Duration) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut logged_at = lock(&self.logged_at);
        if logged_at.is_some_and(|at| now.saturating_sub(at) < LOG_EVERY) {
            return false;
        }
        *logged_at = Some(now);
        true
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod omitted_traces_tests {
    use super::*;

    #[test]
    fn omitted_traces_are_logged_once_a_minute() {
        let traces = OmittedTraces::default();
        let second = Duration::from_secs;
        let logged: Vec<bool> = [100, 100, 159, 160, 219].map(|at| traces.add(second(at))).into();
        assert_eq!((logged, traces.count()), (vec![true, false, false, true, false], 5));
    }
}
