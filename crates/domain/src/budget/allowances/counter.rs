//! One counter's allowance.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::budget::{Account, ResetInterval};
use crate::money::Usd;

/// The period that a counter counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CounterPeriod {
    /// All time.
    Lifetime,
    /// The calendar period in UTC that begins at a time.
    Calendar(ResetInterval, DateTime<Utc>),
}

impl CounterPeriod {
    /// The period of an interval that a time lies in; without an interval, all time.
    pub fn containing(interval: Option<ResetInterval>, at: DateTime<Utc>) -> Self {
        interval.map_or(Self::Lifetime, |interval| Self::Calendar(interval, interval.start_of(at)))
    }

    /// True once the period has ended.
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
    /// Drawn, and neither returned nor folded.
    pub(super) amount: i128,
    /// In open holds.
    pub(super) held: i128,
    /// Charged in the journal and not folded.
    pub(super) charged: i128,
    /// Of the free part: freed by journal entries that are not synced.
    pub(super) unsynced: i128,
    /// The amount that was drawn before a limit was lowered, and is neither charged nor returned.
    pub(super) return_due: i128,
    /// Monotonic. Until then other processes need what is free here.
    pub(super) recalled_until: Option<Duration>,
    /// Monotonic.
    pub(super) last_used: Duration,
    spending: SpendingRate,
}

impl CounterState {
    pub(super) fn free(&self) -> i128 {
        self.amount - self.held - self.charged
    }

    /// The part of the free amount that goes back after a change of a limit. What is still held goes back as it is
    /// freed.
    pub(super) fn free_to_return(&self) -> i128 {
        (self.return_due - self.held).max(0)
    }

    /// The free amount that a hold may take.
    pub(super) fn available(&self) -> i128 {
        (self.free() - self.free_to_return()).max(0)
    }

    /// The free amount that may be returned: freed by synced entries, so that a loss of power cannot undo it.
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

    /// The amount to have at hand: the last second's holds, and eight of the largest.
    pub(super) fn wish(&self, now: Duration) -> i128 {
        self.spending.last_second(now).max(8 * self.spending.largest(now))
    }

    /// True where nothing is left to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.amount == 0 && self.held == 0 && self.charged == 0
    }
}

/// The holds of the running second and of the one before it that had any.
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
            // After a pause the size of a hold is still the best guess, its rate is not.
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

/// Picodollars as an amount; what does not fit is cut to the range.
pub(super) fn usd(pico: i128) -> Usd {
    let end = if pico < 0 { i64::MIN } else { i64::MAX };
    Usd::from_pico(i64::try_from(pico).unwrap_or(end))
}

/// An amount in picodollars; a negative one counts as nothing.
pub(super) fn pico(amount: Usd) -> i128 {
    i128::from(amount.pico()).max(0)
}
