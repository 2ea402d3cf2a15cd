//! The generic cell rate algorithm, which counts one rate.

use std::num::NonZeroU32;
use std::time::Duration;

/// The number of parts of one unit. A limit of `n` per minute leaks exactly `n` parts per nanosecond for any `n`, so
/// that nothing is rounded and no error accumulates.
const PARTS: u128 = Gcra::PARTS_PER_UNIT as u128;

/// The highest debt in minutes of the limit: a wrong count by a provider must not lock its caller out for days.
const MAX_DEBT_MINUTES: u128 = 60;

/// The usage of one rate, counted by the generic cell rate algorithm as an evenly leaking bucket.
///
/// The capacity is the limit of one minute, so an idle caller may use a whole minute's limit at once. The limit is
/// passed to each call and may change between calls; taken units stay taken. The time is passed in as well, as the
/// duration since a fixed time. A time before the latest one counts as the latest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gcra {
    /// The parts that were taken and have not leaked yet.
    level: u128,
    /// The time of `level`, in nanoseconds.
    at: u64,
}

impl Gcra {
    /// The number of parts of one unit.
    pub const PARTS_PER_UNIT: u64 = 60_000_000_000;

    /// Returns the usage with a level at the time zero, in whole units and parts of a unit. For counts that are kept
    /// elsewhere.
    pub fn with_level(units: u64, parts_of_unit: u64) -> Self {
        Self { level: parts(units).saturating_add(parts_of_unit.into()), at: 0 }
    }

    /// Checks whether `amount` may be taken. An amount above the capacity may be taken from an empty bucket.
    ///
    /// # Errors
    /// Returns the exact time, above zero, after which it may be taken if nothing else is taken before.
    pub fn check(&self, limit: NonZeroU32, amount: u64, now: Duration) -> Result<(), Duration> {
        let level = self.level(limit, now);
        let room = capacity(limit).saturating_sub(parts(amount));
        if level <= room { Ok(()) } else { Err(leaks_in(level - room, limit)) }
    }

    /// Takes `amount` unconditionally.
    pub fn take(&mut self, limit: NonZeroU32, amount: u64, now: Duration) {
        self.set(self.level(limit, now).saturating_add(parts(amount)), now);
    }

    /// Corrects a taken amount to the amount really used. It releases the rest, or adds the difference as a debt of at
    /// most one hour of the limit.
    pub fn correct(&mut self, limit: NonZeroU32, taken: u64, used: u64, now: Duration) {
        let level = self.level(limit, now);
        let corrected = if used <= taken {
            level.saturating_sub(parts(taken - used))
        } else {
            let most = capacity(limit) * MAX_DEBT_MINUTES;
            level.saturating_add(parts(used - taken)).min(most.max(level))
        };
        self.set(corrected, now);
    }

    /// Returns the number of whole units that may be taken now.
    pub fn remaining(&self, limit: NonZeroU32, now: Duration) -> u32 {
        let room = capacity(limit).saturating_sub(self.level(limit, now));
        u32::try_from(room / PARTS).unwrap_or(u32::MAX)
    }

    /// Returns the time until the bucket is empty, if nothing else is taken.
    pub fn idle_in(&self, limit: NonZeroU32, now: Duration) -> Duration {
        leaks_in(self.level(limit, now), limit)
    }

    fn level(&self, limit: NonZeroU32, now: Duration) -> u128 {
        let elapsed = nanos(now).saturating_sub(self.at);
        self.level.saturating_sub(u128::from(elapsed) * u128::from(limit.get()))
    }

    fn set(&mut self, level: u128, now: Duration) {
        *self = Self { level, at: self.at.max(nanos(now)) };
    }
}

fn capacity(limit: NonZeroU32) -> u128 {
    u128::from(limit.get()) * PARTS
}

fn parts(amount: u64) -> u128 {
    u128::from(amount) * PARTS
}

fn leaks_in(level: u128, limit: NonZeroU32) -> Duration {
    Duration::from_nanos(u64::try_from(level.div_ceil(u128::from(limit.get()))).unwrap_or(u64::MAX))
}

/// Converts to nanoseconds, which suffice for 584 years.
fn nanos(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
