//! The requests at one endpoint over a sliding window, by workspace, in bounded memory.

use std::time::Duration;

use super::{AttemptError, HealthPolicy};
use crate::ids::{IdMap, WorkspaceId};

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

/// The counts of one workspace, or of all workspaces.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) window: OutcomeWindow,
    pub(super) last_admitted: Option<Duration>,
    pub(super) last_failure_at: Option<Duration>,
    pub(super) last_error: Option<AttemptError>,
}

/// One workspace at one endpoint.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkspaceScope {
    pub(super) scope: Scope,
    pub(super) backoff_until: Duration,
    last_seen: Duration,
}

/// Content failures of all workspaces, by weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ContentFailures {
    total: u64,
    largest: u64,
}

impl ContentFailures {
    /// Returns the failures that count for all workspaces. The workspace with the most failures counts no more than all
    /// others together, so that failures of a single workspace do not count.
    pub(super) fn shared(self) -> u64 {
        let others = self.total - self.largest;
        others.saturating_add(self.largest.min(others))
    }
}

/// The workspaces that were seen at one endpoint.
#[derive(Debug, Default)]
pub(super) struct Workspaces {
    entries: IdMap<WorkspaceId, WorkspaceScope>,
    /// The content failures as of a bucket; `None` after a change.
    content: Option<(u64, ContentFailures)>,
}

impl Workspaces {
    /// Returns the counts of a known workspace.
    pub(super) fn get(&mut self, workspace: WorkspaceId) -> Option<&mut WorkspaceScope> {
        self.entries.get_mut(&workspace)
    }

    /// Returns the counts of a workspace. Adds an unknown one, and drops the least recently seen if there are too many.
    pub(super) fn see(&mut self, policy: &HealthPolicy, workspace: WorkspaceId, now: Duration) -> &mut WorkspaceScope {
        if !self.entries.contains_key(&workspace) && self.entries.len() >= policy.max_workspaces.max(1) {
            let oldest = self.entries.iter().min_by_key(|(id, entry)| (entry.last_seen, **id)).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.entries.remove(&oldest);
                self.content = None;
            }
        }
        let entry = self.entries.entry(workspace).or_default();
        entry.last_seen = entry.last_seen.max(now);
        entry
    }

    /// Invalidates the cached content failures before a workspace reports one.
    pub(super) fn content_changes(&mut self) {
        self.content = None;
    }

    /// Returns the content failures of all workspaces. Computed after a change or a new bucket, cached otherwise.
    pub(super) fn content(&mut self, policy: &HealthPolicy, now: Duration) -> ContentFailures {
        let bucket = bucket_number(policy.throttle_window, now);
        if let Some((cached_bucket, content)) = self.content
            && cached_bucket >= bucket
        {
            return content;
        }
        let mut content = ContentFailures::default();
        for entry in self.entries.values_mut() {
            let own = u64::from(entry.scope.window.total(policy.throttle_window, now).content);
            content.total = content.total.saturating_add(own);
            content.largest = content.largest.max(own);
        }
        self.content = Some((bucket, content));
        content
    }

    /// Iterates over every workspace.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut WorkspaceScope> {
        self.entries.values_mut()
    }
}

/// The two latest times of different workspaces. At least two workspaces have reached the second one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TopTwo {
    first: Option<(WorkspaceId, Duration)>,
    second: Option<(WorkspaceId, Duration)>,
}

impl TopTwo {
    /// Records a time of a workspace. Only its latest time is kept.
    pub(super) fn note(&mut self, workspace: WorkspaceId, at: Duration) {
        match self.first {
            Some((first, latest)) if first == workspace => self.first = Some((first, latest.max(at))),
            Some((_, latest)) if at > latest => {
                self.second = self.first;
                self.first = Some((workspace, at));
            }
            Some(_) => {
                if self.second.is_none_or(|(_, latest)| at > latest) {
                    self.second = Some((workspace, at));
                }
            }
            None => self.first = Some((workspace, at)),
        }
    }

    /// Returns the time that at least two workspaces have reached.
    pub(super) fn second(&self) -> Option<Duration> {
        self.second.map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn second_returns_second_latest_time(notes in proptest::collection::vec((0..5_u128, 0..40_u64), 0..60)) {
            let (mut two, mut all) = (TopTwo::default(), HashMap::new());
            for (workspace, at) in notes {
                let workspace = WorkspaceId::from_uuid(uuid::Uuid::from_u128(workspace));
                let at = Duration::from_secs(at);
                two.note(workspace, at);
                let latest = all.entry(workspace).or_insert(at);
                *latest = at.max(*latest);
                let mut times: Vec<Duration> = all.values().copied().collect();
                times.sort_unstable();
                prop_assert_eq!(two.second(), times.iter().rev().nth(1).copied());
            }
        }
    }
}
