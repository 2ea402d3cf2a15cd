//! The total usage of the calls of one attempt, so that every outcome is charged correctly.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::decision::SentBytes;
use domain::pricing::ReportedUsage;
use domain::routing::AttemptFailure;
use tokio::time::Instant;

use crate::payload::SentCounter;

/// The calls of one attempt.
#[derive(Debug, Default)]
pub(super) struct UsageTotals {
    calls: Mutex<Vec<(SentCounter, CallUsage)>>,
    attempt: SentBytes,
    deadline: Option<Instant>,
}

/// The entry of one call.
pub(super) struct CallEntry<'a> {
    totals: &'a UsageTotals,
    place: usize,
    /// The counter of its sent bytes.
    pub(super) sent: SentCounter,
}

/// The usage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallUsage {
    /// The answer was an error status, which providers do not bill.
    NotBilled,
    /// The provider reported the token counts.
    Reported(ReportedUsage),
    /// The answer had no token counts, was incomplete, or is still pending.
    Unknown,
}

impl From<Option<ReportedUsage>> for CallUsage {
    fn from(usage: Option<ReportedUsage>) -> Self {
        usage.map_or(Self::Unknown, Self::Reported)
    }
}

impl CallEntry<'_> {
    /// Records the usage.
    pub(super) fn record(&self, used: CallUsage) {
        if let Some((_, entry)) = self.totals.calls().get_mut(self.place) {
            *entry = used;
        }
    }
}

impl UsageTotals {
    /// Starts the totals of an attempt with this deadline. Sent bytes are also added to `attempt`.
    pub(super) fn of(attempt: &SentBytes, deadline: Option<Instant>) -> Self {
        Self { attempt: attempt.clone(), deadline, ..Self::default() }
    }

    /// Returns the deadline of the attempt.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Adds a call.
    pub(super) fn start_call(&self) -> CallEntry<'_> {
        let sent = SentCounter::of(&self.attempt, self.deadline);
        let mut calls = self.calls();
        calls.push((sent.clone(), CallUsage::Unknown));
        CallEntry { totals: self, place: calls.len() - 1, sent }
    }

    /// Returns the bytes of all sent request bodies.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.calls().iter().map(|(sent, _)| sent.bytes()).fold(0, u64::saturating_add)
    }

    /// Returns the total usage. Calls that sent nothing are ignored; one call with unknown usage makes the total
    /// unknown.
    pub(super) fn total(&self) -> CallUsage {
        let calls = self.calls();
        calls.iter().filter(|(sent, _)| sent.bytes() > 0).fold(CallUsage::NotBilled, |sum, (_, used)| {
            match (sum, *used) {
                (CallUsage::Unknown, _) | (_, CallUsage::Unknown) => CallUsage::Unknown,
                (sum, CallUsage::NotBilled) => sum,
                (CallUsage::NotBilled, used) => used,
                (CallUsage::Reported(sum), CallUsage::Reported(one)) => CallUsage::Reported(ReportedUsage {
                    input_tokens: sum.input_tokens.saturating_add(one.input_tokens),
                    output_tokens: sum.output_tokens.saturating_add(one.output_tokens),
                }),
            }
        })
    }

    /// Builds the failure of the attempt from that of its last call. An error status means that nothing is billed, so
    /// it is removed if other calls may have been billed.
    pub(super) fn failure(&self, of_call: AttemptFailure) -> AttemptFailure {
        let failure = AttemptFailure { sent_bytes: self.sent_bytes(), usage: None, ..of_call };
        match self.total() {
            CallUsage::NotBilled => failure,
            CallUsage::Reported(usage) => AttemptFailure { usage: Some(usage), ..failure },
            CallUsage::Unknown => {
                let answered = failure.upstream_status.filter(|status| (200..300).contains(status));
                AttemptFailure { upstream_status: answered, ..failure }
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<(SentCounter, CallUsage)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::routing::AttemptFailureKind;

    const USAGE: ReportedUsage = ReportedUsage { input_tokens: 7, output_tokens: 1 };

    #[test]
    fn usage_ignores_call_that_never_connected() {
        let totals = UsageTotals::default();
        // The first call never connected, so its body was not sent.
        let first = totals.start_call();
        first.record(CallUsage::Unknown);
        assert_eq!((totals.sent_bytes(), totals.total()), (0, CallUsage::NotBilled));
        let again = totals.start_call();
        again.sent.count(7);
        again.record(CallUsage::Reported(USAGE));
        assert_eq!((totals.sent_bytes(), totals.total()), (7, CallUsage::Reported(USAGE)));
        let failure = AttemptFailure::new(AttemptFailureKind::InvalidResponse, "x");
        let failure = totals.failure(AttemptFailure { upstream_status: Some(503), ..failure });
        assert_eq!((failure.upstream_status, failure.sent_bytes, failure.usage), (Some(503), 7, Some(USAGE)));
    }

    #[test]
    fn usage_is_unknown_when_sent_call_has_no_answer() {
        let totals = UsageTotals::default();
        for used in [CallUsage::Unknown, CallUsage::Reported(USAGE)] {
            let entry = totals.start_call();
            entry.sent.count(2);
            entry.record(used);
        }
        assert_eq!((totals.sent_bytes(), totals.total()), (4, CallUsage::Unknown));
    }
}
