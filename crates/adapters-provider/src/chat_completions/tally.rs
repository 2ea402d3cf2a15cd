//! The total usage of the calls of one attempt, so that every outcome is charged correctly.

use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::decision::{ReportedUsage, SentBytes};
use domain::routing::AttemptFailure;
use tokio::time::Instant;

use crate::http::Sent;

/// The calls of one attempt.
#[derive(Debug, Default)]
pub(super) struct Tally {
    calls: Mutex<Vec<(Sent, Used)>>,
    attempt: SentBytes,
    deadline: Option<Instant>,
}

/// The entry of one call.
pub(super) struct Account<'a> {
    tally: &'a Tally,
    place: usize,
    /// The counter of its sent bytes.
    pub(super) sent: Sent,
}

/// The usage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Used {
    /// The answer was an error status, which providers do not bill.
    Nothing,
    /// The provider reported the token counts.
    Reported(ReportedUsage),
    /// The answer had no token counts, was incomplete, or is still pending.
    Unknown,
}

impl From<Option<ReportedUsage>> for Used {
    fn from(usage: Option<ReportedUsage>) -> Self {
        usage.map_or(Self::Unknown, Self::Reported)
    }
}

impl Account<'_> {
    /// Records the usage.
    pub(super) fn close(&self, used: Used) {
        if let Some((_, entry)) = self.tally.calls().get_mut(self.place) {
            *entry = used;
        }
    }
}

impl Tally {
    /// Starts the totals of an attempt with this deadline. Sent bytes are also added to `attempt`.
    pub(super) fn of(attempt: &SentBytes, deadline: Option<Instant>) -> Self {
        Self { attempt: attempt.clone(), deadline, ..Self::default() }
    }

    /// Adds a call.
    pub(super) fn open(&self) -> Account<'_> {
        let sent = Sent::of(&self.attempt, self.deadline);
        let mut calls = self.calls();
        calls.push((sent.clone(), Used::Unknown));
        Account { tally: self, place: calls.len() - 1, sent }
    }

    /// Returns the bytes of all sent request bodies.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.calls().iter().map(|(sent, _)| sent.bytes()).fold(0, u64::saturating_add)
    }

    /// Returns the total usage. Calls that sent nothing are ignored; one call with unknown usage makes the total
    /// unknown.
    pub(super) fn used(&self) -> Used {
        let calls = self.calls();
        calls.iter().filter(|(sent, _)| sent.bytes() > 0).fold(Used::Nothing, |sum, (_, used)| match (sum, *used) {
            (Used::Unknown, _) | (_, Used::Unknown) => Used::Unknown,
            (sum, Used::Nothing) => sum,
            (Used::Nothing, used) => used,
            (Used::Reported(sum), Used::Reported(one)) => Used::Reported(ReportedUsage {
                input_tokens: sum.input_tokens.saturating_add(one.input_tokens),
                output_tokens: sum.output_tokens.saturating_add(one.output_tokens),
            }),
        })
    }

    /// Builds the failure of the attempt from that of its last call. An error status means that nothing is billed, so
    /// it is removed if other calls may have been billed.
    pub(super) fn failure(&self, of_call: AttemptFailure) -> AttemptFailure {
        let failure = AttemptFailure { sent_bytes: self.sent_bytes(), usage: None, ..of_call };
        match self.used() {
            Used::Nothing => failure,
            Used::Reported(usage) => AttemptFailure { usage: Some(usage), ..failure },
            Used::Unknown => {
                let answered = failure.upstream_status.filter(|status| (200..300).contains(status));
                AttemptFailure { upstream_status: answered, ..failure }
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<(Sent, Used)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::routing::AttemptFailureKind;

    const USAGE: ReportedUsage = ReportedUsage { input_tokens: 7, output_tokens: 1 };

    #[test]
    fn call_that_never_connected_sends_nothing_and_hides_no_usage() {
        let tally = Tally::default();
        // The first call never connected, so its body was not sent.
        let first = tally.open();
        first.close(Used::Unknown);
        assert_eq!((tally.sent_bytes(), tally.used()), (0, Used::Nothing));
        let again = tally.open();
        again.sent.count(7);
        again.close(Used::Reported(USAGE));
        assert_eq!((tally.sent_bytes(), tally.used()), (7, Used::Reported(USAGE)));
        let failure = AttemptFailure::new(AttemptFailureKind::Broken, "x");
        let failure = tally.failure(AttemptFailure { upstream_status: Some(503), ..failure });
        assert_eq!((failure.upstream_status, failure.sent_bytes, failure.usage), (Some(503), 7, Some(USAGE)));
    }

    #[test]
    fn call_that_was_sent_without_an_answer_makes_the_sum_unknown() {
        let tally = Tally::default();
        for used in [Used::Unknown, Used::Reported(USAGE)] {
            let account = tally.open();
            account.sent.count(2);
            account.close(used);
        }
        assert_eq!((tally.sent_bytes(), tally.used()), (4, Used::Unknown));
    }
}
