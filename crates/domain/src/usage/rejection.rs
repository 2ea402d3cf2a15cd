//! Rejected requests: their reasons, and their counts per key and hour.

use std::collections::HashMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use crate::ids::{ApiKeyId, WorkspaceId};

named_enum! {
    /// The reason of a rejected request. The set is closed, so that counts per reason are bounded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum RejectionReason {
        /// The workspace has no credit left.
        CreditExhausted = "credit_exhausted",
        /// A budget of the workspace has no room.
        WorkspaceBudgetExceeded = "workspace_budget_exceeded",
        /// The limit of the key has no room.
        KeyLimitExceeded = "key_limit_exceeded",
        /// The budget of a guardrail has no room.
        GuardrailBudgetExceeded = "guardrail_budget_exceeded",
        /// The key has a limit, and the model has no price.
        NoPrice = "no_price",
        /// A content filter blocked the input.
        ContentFilter = "content_filter",
        /// The guardrails forbid every endpoint.
        Guardrail = "guardrail",
        /// The workspace is suspended.
        WorkspaceSuspended = "workspace_suspended",
        /// An inference key called a management operation, or the reverse.
        WrongKeyKind = "wrong_key_kind",
        /// A management key lacks a right.
        ManagementKeyRestricted = "management_key_restricted",
        /// The documents of the workspace reached their quota.
        StorageQuotaExceeded = "storage_quota_exceeded",
        /// The rate limit of the key or the workspace is reached.
        RateLimited = "rate_limited",
        /// The key or the workspace uses its whole share of requests in flight or body memory.
        ShareExceeded = "share_exceeded",
        /// Too many large requests of the workspace wait to be read.
        ScanQueueFull = "scan_queue_full",
        /// The records of the workspace reached the daily limit on their bytes.
        RecordQuotaExceeded = "record_quota_exceeded",
        /// The gateway as a whole has no capacity left.
        Overloaded = "overloaded",
        /// Every endpoint of the model is throttled.
        EndpointsThrottled = "endpoints_throttled",
        /// Every attempt at a provider failed.
        AttemptsFailed = "attempts_failed",
        /// The container file changed while it was copied.
        SourceChanged = "source_changed",
        /// A promotion with the same idempotency key is still in progress.
        PromotionInProgress = "promotion_in_progress",
        /// A store failed.
        StoreUnavailable = "store_unavailable",
        /// The deadline of the request passed while it waited for a store.
        StoreTimeout = "store_timeout",
        /// Any other reason, and reasons of newer releases.
        Other = "other",
    } or Other
}

/// A status that counts as a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectionStatus {
    /// 402.
    PaymentRequired,
    /// 403.
    Forbidden,
    /// 429.
    TooManyRequests,
    /// 503.
    Unavailable,
}

impl RejectionStatus {
    /// All statuses.
    pub const ALL: [Self; 4] = [Self::PaymentRequired, Self::Forbidden, Self::TooManyRequests, Self::Unavailable];

    /// Returns the HTTP status code.
    pub fn code(self) -> u16 {
        match self {
            Self::PaymentRequired => 402,
            Self::Forbidden => 403,
            Self::TooManyRequests => 429,
            Self::Unavailable => 503,
        }
    }

    /// Returns the status of a code; `None` if the code is not a rejection.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }
}

/// A rejected request of a known key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rejection {
    /// The key.
    pub api_key: ApiKeyId,
    /// The workspace of an inference key.
    pub workspace_id: Option<WorkspaceId>,
    /// The status of the response.
    pub status: RejectionStatus,
    /// The reason.
    pub reason: RejectionReason,
}

/// The number of equal rejections in one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectionCount {
    /// The key, its workspace, the status and the reason.
    pub rejection: Rejection,
    /// The start of the hour, in UTC.
    pub hour: DateTime<Utc>,
    /// The number of requests.
    pub count: u64,
}

/// Returns the start of the UTC hour of a time.
pub fn hour_of(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::hours(1)).unwrap_or(at)
}

/// The most counts in memory, about 3 MB. Further ones are dropped and reported.
const MAX_COUNTS: usize = 32_768;

/// Counts rejected requests per key, status, reason and hour until they are stored.
#[derive(Debug, Default)]
pub struct RejectionCounter {
    counts: HashMap<(Rejection, DateTime<Utc>), u64>,
    dropped: u64,
}

impl RejectionCounter {
    /// Counts a rejected request at a time.
    pub fn record(&mut self, rejection: Rejection, at: DateTime<Utc>) {
        self.add(RejectionCount { rejection, hour: hour_of(at), count: 1 });
    }

    /// Adds a count, for example one that could not be stored.
    pub fn add(&mut self, count: RejectionCount) {
        let RejectionCount { rejection, hour, count } = count;
        let is_full = self.counts.len() >= MAX_COUNTS;
        match self.counts.get_mut(&(rejection, hour)) {
            Some(known) => *known = known.saturating_add(count),
            None if is_full => self.dropped = self.dropped.saturating_add(count),
            None => drop(self.counts.insert((rejection, hour), count)),
        }
    }

    /// Removes and returns all counts, ordered by hour and key.
    pub fn take(&mut self) -> Vec<RejectionCount> {
        let taken = std::mem::take(&mut self.counts).into_iter();
        let mut counts: Vec<RejectionCount> =
            taken.map(|((rejection, hour), count)| RejectionCount { rejection, hour, count }).collect();
        counts.sort_by_key(|count| (count.hour, count.rejection));
        counts
    }

    /// Returns the number of requests that were not counted since the last call, because the memory was full.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip_and_unknown_names_are_other() {
        for reason in RejectionReason::ALL {
            assert_eq!(RejectionReason::from_name(reason.as_str()), reason);
            assert!(reason.as_str().chars().all(|sign| sign.is_ascii_lowercase() || sign == '_'));
        }
        assert_eq!(RejectionReason::from_name("reason_of_a_newer_release"), RejectionReason::Other);
        for status in RejectionStatus::ALL {
            assert_eq!(RejectionStatus::from_code(status.code()), Some(status));
        }
        assert!([200, 400, 401, 404, 500, 502].into_iter().all(|code| RejectionStatus::from_code(code).is_none()));
    }

    #[test]
    fn hour_of_truncates_to_utc_hour() {
        let at = DateTime::from_timestamp_millis(1_790_000_000_123).unwrap();
        assert_eq!(hour_of(at).to_rfc3339(), "2026-09-21T14:00:00+00:00");
        assert_eq!(hour_of(hour_of(at)), hour_of(at));
    }
}

#[cfg(test)]
mod rejection_counter_tests {
    use super::*;
    use crate::ids::ApiKeyId;
    use crate::usage::{RejectionReason, RejectionStatus};
    use chrono::TimeDelta;
    use uuid::Uuid;

    fn rejection(key: u128) -> Rejection {
        Rejection {
            api_key: ApiKeyId::from_uuid(Uuid::from_u128(key)),
            workspace_id: None,
            status: RejectionStatus::TooManyRequests,
            reason: RejectionReason::RateLimited,
        }
    }

    fn at(minutes: i64) -> DateTime<Utc> {
        hour_of(DateTime::from_timestamp(1_790_000_000, 0).unwrap()) + TimeDelta::minutes(minutes)
    }

    #[test]
    fn counts_are_per_rejection_and_hour() {
        let mut counter = RejectionCounter::default();
        for minute in 0..90 {
            counter.record(rejection(1), at(minute));
        }
        counter.record(rejection(2), at(0));
        counter.record(Rejection { reason: RejectionReason::ShareExceeded, ..rejection(1) }, at(0));
        let counts: Vec<_> = counter.take().iter().map(|count| (count.hour, count.rejection, count.count)).collect();
        let share = Rejection { reason: RejectionReason::ShareExceeded, ..rejection(1) };
        let expected =
            [(at(0), rejection(1), 60), (at(0), share, 1), (at(0), rejection(2), 1), (at(60), rejection(1), 30)];
        assert_eq!(counts, expected);
        assert!(counter.take().is_empty());
    }

    #[test]
    fn memory_is_bounded_and_dropped_requests_are_reported() {
        let mut counter = RejectionCounter::default();
        for key in 0..MAX_COUNTS as u128 + 10 {
            counter.record(rejection(key), at(0));
        }
        counter.record(rejection(1), at(0));
        assert_eq!((counter.take_dropped(), counter.take_dropped()), (10, 0));
        let counts = counter.take();
        assert_eq!((counts.len(), counts[1].count), (MAX_COUNTS, 2));
    }

    #[test]
    fn unstored_counts_are_added_to_later_ones() {
        let mut counter = RejectionCounter::default();
        counter.record(rejection(1), at(0));
        let unstored = counter.take();
        counter.record(rejection(1), at(1));
        for count in unstored {
            counter.add(count);
        }
        assert_eq!(counter.take()[0].count, 2);
    }
}
