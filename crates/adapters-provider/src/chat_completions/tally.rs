//! What the calls of one attempt used together, so that the money adds up whatever the end.

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

/// One call.
pub(super) struct Account<'a> {
    tally: &'a Tally,
    place: usize,
    /// What it has sent.
    pub(super) sent: Sent,
}

/// What a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Used {
    /// It was answered by an error status, for which nothing is billed.
    Nothing,
    /// The provider said how much.
    Reported(ReportedUsage),
    /// Nobody knows: it was answered without token counts, or not to the end, or is still under way.
    Unknown,
}

impl From<Option<ReportedUsage>> for Used {
    fn from(usage: Option<ReportedUsage>) -> Self {
        usage.map_or(Self::Unknown, Self::Reported)
    }
}

impl Account<'_> {
    /// What it used is known now.
    pub(super) fn close(&self, used: Used) {
        if let Some((_, entry)) = self.tally.calls().get_mut(self.place) {
            *entry = used;
        }
    }
}

impl Tally {
    /// Of an attempt with that deadline, whose bytes are counted there.
    pub(super) fn of(attempt: &SentBytes, deadline: Option<Instant>) -> Self {
        Self { attempt: attempt.clone(), deadline, ..Self::default() }
    }

    /// A call begins.
    pub(super) fn open(&self) -> Account<'_> {
        let sent = Sent::of(&self.attempt, self.deadline);
        let mut calls = self.calls();
        calls.push((sent.clone(), Used::Unknown));
        Account { tally: self, place: calls.len() - 1, sent }
    }

    /// Bytes of all request bodies that were sent.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.calls().iter().map(|(sent, _)| sent.bytes()).fold(0, u64::saturating_add)
    }

    /// Of all calls together. What was never sent counts for nothing; one call of which nobody knows makes the sum
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

    /// The failure of the attempt, from that of its last call. An error status stands for an attempt that cost
    /// nothing, so it is left out where other calls may have cost nobody knows what.
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
        // The connection of the first call was never made, so nobody took its body.
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
