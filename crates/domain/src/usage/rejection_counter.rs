//! Counts of rejected requests in bounded memory.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::{Rejection, RejectionCount, hour_of};

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
