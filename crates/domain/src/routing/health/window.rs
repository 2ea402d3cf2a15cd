//! Counts of requests and accepts over a sliding window.

use std::time::Duration;

/// The number of buckets in the window.
const BUCKETS: u64 = 24;
/// [`BUCKETS`] as the length of an array.
const BUCKET_COUNT: usize = 24;

/// Counts of attempts by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Ended attempts, without weights.
    pub(super) attempts: u32,
    /// Successful answers among them.
    pub(super) answered: u32,
    /// Accepted requests: successful answers since the last rejected credentials.
    pub(super) accepts: u32,
    /// Weighted failures of the classes that count for all workspaces.
    pub(super) failures: u32,
    /// Weighted failures of the classes that content can provoke.
    pub(super) content: u32,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.answered = self.answered.saturating_add(other.answered);
        self.accepts = self.accepts.saturating_add(other.accepts);
        self.failures = self.failures.saturating_add(other.failures);
        self.content = self.content.saturating_add(other.content);
    }

    /// Returns the share of successful answers, 0 to 1; `None` without an attempt.
    pub(super) fn accept_rate(&self) -> Option<f64> {
        (self.attempts > 0).then(|| f64::from(self.answered) / f64::from(self.attempts))
    }
}

/// Counts of the last buckets, with their sum.
#[derive(Debug, Clone, Default)]
pub(super) struct OutcomeWindow {
    buckets: [Counts; BUCKET_COUNT],
    newest: u64,
    total: Counts,
}

impl OutcomeWindow {
    /// Adds counts to the bucket of `now`.
    pub(super) fn add(&mut self, counts: Counts, window: Duration, now: Duration) {
        self.advance(window, now);
        self.total.add(&counts);
        let newest = self.newest;
        self.bucket(newest).add(&counts);
    }

    /// Returns the sum over the window.
    pub(super) fn total(&mut self, window: Duration, now: Duration) -> Counts {
        self.advance(window, now);
        self.total
    }

    /// Clears accepts and failures. Content failures and the counts of the accept rate remain.
    pub(super) fn forget_requests(&mut self) {
        for bucket in self.buckets.iter_mut().chain([&mut self.total]) {
            (bucket.accepts, bucket.failures) = (0, 0);
        }
    }

    fn bucket(&mut self, number: u64) -> &mut Counts {
        let index = usize::try_from(number % BUCKETS).unwrap_or_default();
        &mut self.buckets[index]
    }

    /// Clears the buckets that left the window.
    fn advance(&mut self, window: Duration, now: Duration) {
        let current = bucket_number(window, now);
        if current <= self.newest {
            return;
        }
        for number in self.newest.saturating_add(1)..=current.min(self.newest.saturating_add(BUCKETS)) {
            *self.bucket(number) = Counts::default();
        }
        self.newest = current;
        self.total = Counts::default();
        for bucket in &self.buckets {
            self.total.add(bucket);
        }
    }
}

/// Returns the number of the bucket that contains a time.
pub(super) fn bucket_number(window: Duration, now: Duration) -> u64 {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    nanos(now) / (nanos(window) / BUCKETS).max(1)
}
