//! One counter's allowance, and amounts that unsynced journal entries free.

use std::collections::VecDeque;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::budget::{Account, ResetInterval};
use crate::money::Usd;

/// The period that a counter counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CounterPeriod {
    /// All time.
    Lifetime,
    /// The UTC calendar period that begins at a time.
    Calendar(ResetInterval, DateTime<Utc>),
}

impl CounterPeriod {
    /// Returns the period of an interval that contains a time; without an interval, all time.
    pub fn containing(interval: Option<ResetInterval>, at: DateTime<Utc>) -> Self {
        interval.map_or(Self::Lifetime, |interval| Self::Calendar(interval, interval.start_of(at)))
    }

    /// Returns true once the period has ended.
    pub fn is_over(self, now: DateTime<Utc>) -> bool {
        match self {
            Self::Lifetime => false,
            Self::Calendar(interval, start) => interval.end_of(start) <= now,
        }
    }
}

/// An account in one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterId {
    /// The account.
    pub account: Account,
    /// The period.
    pub period: CounterPeriod,
}

/// The allowance of one counter, in picodollars. Sums of amounts do not overflow 128 bits.
#[derive(Debug, Default)]
pub(super) struct CounterState {
    /// The drawn amount that is neither returned nor folded.
    pub(super) amount: i128,
    /// The amount in open holds.
    pub(super) held: i128,
    /// The amount that is charged in the journal and not folded.
    pub(super) charged: i128,
    /// The part of the free amount that unsynced journal entries freed.
    pub(super) unsynced: i128,
    /// The amount that was drawn before a limit was lowered or an excess was charged, and is neither charged nor
    /// returned.
    pub(super) return_due: i128,
    /// The monotonic time until which other processes need the free amount.
    pub(super) recalled_until: Option<Duration>,
    /// The monotonic time of the last use.
    pub(super) last_used: Duration,
    /// True while the counter is in its workspace's list of used counters.
    pub(super) is_listed_as_used: bool,
    spending: SpendingRate,
}

impl CounterState {
    pub(super) fn free(&self) -> i128 {
        self.amount - self.held - self.charged
    }

    /// Makes everything that was drawn and is not charged due for return. Returns false if that is nothing.
    pub(super) fn set_return_due(&mut self) -> bool {
        self.return_due = self.amount - self.charged;
        self.return_due > 0
    }

    /// Returns the part of the free amount that is due for return after a change of a limit or an excess. Held amounts
    /// follow when they are freed.
    pub(super) fn free_to_return(&self) -> i128 {
        (self.return_due - self.held).max(0)
    }

    /// Returns the free amount that a hold may take.
    pub(super) fn available(&self) -> i128 {
        (self.free() - self.free_to_return()).max(0)
    }

    /// Returns the free amount that may be returned: only synced entries freed it, so a power loss cannot undo that.
    pub(super) fn returnable(&self) -> i128 {
        (self.free() - self.unsynced).max(0)
    }

    pub(super) fn is_recalled(&self, now: Duration) -> bool {
        self.recalled_until.is_some_and(|until| now < until)
    }

    pub(super) fn hold(&mut self, amount: i128, now: Duration) {
        self.held += amount;
        self.last_used = now;
        self.spending.add(now, amount);
    }

    /// Returns the holds of the last second.
    pub(super) fn last_second(&self, now: Duration) -> i128 {
        self.spending.last_second(now)
    }

    /// Returns the target amount: the holds of the last second, at least eight of the largest hold.
    pub(super) fn wish(&self, now: Duration) -> i128 {
        self.last_second(now).max(8 * self.spending.largest(now))
    }

    /// Returns true if the counter has no state.
    pub(super) fn is_empty(&self) -> bool {
        self.amount == 0 && self.held == 0 && self.charged == 0
    }
}

/// The holds of the current second, and of the last earlier second with holds.
#[derive(Debug, Default)]
struct SpendingRate {
    second: u64,
    current: SecondOfHolds,
    previous: SecondOfHolds,
}

#[derive(Debug, Default, Clone, Copy)]
struct SecondOfHolds {
    sum: i128,
    largest: i128,
}

impl SpendingRate {
    fn add(&mut self, now: Duration, amount: i128) {
        let second = now.as_secs();
        if second != self.second {
            let is_next = second == self.second + 1;
            // After a pause the size of holds is still a good estimate, their rate is not.
            let largest = self.current.largest;
            self.previous = if is_next { self.current } else { SecondOfHolds { sum: 0, largest } };
            self.current = SecondOfHolds::default();
            self.second = second;
        }
        self.current.sum += amount;
        self.current.largest = self.current.largest.max(amount);
    }

    fn last_second(&self, now: Duration) -> i128 {
        match now.as_secs().saturating_sub(self.second) {
            0 => self.current.sum.max(self.previous.sum),
            1 => self.current.sum,
            _ => 0,
        }
    }

    fn largest(&self, now: Duration) -> i128 {
        match now.as_secs().saturating_sub(self.second) {
            0 => self.current.largest.max(self.previous.largest),
            _ => self.current.largest,
        }
    }
}

/// Converts picodollars to an amount, clamped to its range.
pub(super) fn usd(pico: i128) -> Usd {
    let end = if pico < 0 { i64::MIN } else { i64::MAX };
    Usd::from_pico(i64::try_from(pico).unwrap_or(end))
}

/// Converts an amount to picodollars; negative amounts count as zero.
pub(super) fn pico(amount: Usd) -> i128 {
    i128::from(amount.pico()).max(0)
}

/// Freed amounts by the number of their journal entry.
#[derive(Debug, Default)]
pub(super) struct UnsyncedReleases(VecDeque<(u64, CounterId, i128)>);

impl UnsyncedReleases {
    pub(super) fn push(&mut self, sequence: u64, counter: CounterId, amount: i128) {
        // Charges finish in the order of their callers, not of their entries.
        let at = self.0.partition_point(|(other, ..)| *other <= sequence);
        self.0.insert(at, (sequence, counter, amount));
    }

    /// Removes and returns the amounts of entries up to a number.
    pub(super) fn take_synced(&mut self, up_to: u64) -> impl Iterator<Item = (CounterId, i128)> {
        let synced = self.0.partition_point(|(sequence, ..)| *sequence <= up_to);
        self.0.drain(..synced).map(|(_, counter, amount)| (counter, amount))
    }
}
