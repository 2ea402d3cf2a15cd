//! How one rate is counted.

use std::num::NonZeroU32;
use std::time::Duration;

/// A unit is counted in so many parts. A limit of `n` a minute gives back `n` parts a nanosecond, whatever `n` is, so
/// that nothing is ever rounded and no error adds up.
const PARTS: u128 = 60_000_000_000;

/// A debt is at most so many minutes' worth: a count that a provider got wrong must not lock its caller out for days.
const MOST_MINUTES_OWED: u128 = 60;

/// How much of one rate is used: the generic cell rate algorithm, in the form of a bucket that leaks evenly.
///
/// A minute's worth fits in, so that whoever was idle may take that much at once. The limit is passed to each call and
/// may be another one every time; what was taken stays taken. Time is passed in too: since any fixed moment, the same
/// for all calls. An earlier time than the last one counts as that one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gcra {
    /// What was taken and did not leak away yet, in parts.
    level: u128,
    /// When that was so, in nanoseconds.
    at: u64,
}

impl Gcra {
    /// Whether `amount` may be taken. More than a minute's worth may be taken where nothing else is.
    ///
    /// # Errors
    /// It may not; in this time it may, if nothing else is taken meanwhile. Exact, and more than zero.
    pub fn check(&self, limit: NonZeroU32, amount: u64, now: Duration) -> Result<(), Duration> {
        let level = self.level(limit, now);
        let room = capacity(limit).saturating_sub(parts(amount));
        if level <= room { Ok(()) } else { Err(leaks_in(level - room, limit)) }
    }

    /// Takes it, whether it may be taken or not.
    pub fn take(&mut self, limit: NonZeroU32, amount: u64, now: Duration) {
        self.set(self.level(limit, now).saturating_add(parts(amount)), now);
    }

    /// What was taken turned out to be `used`: the rest is given back, or what is lacking is owed, an hour's worth at
    /// most.
    pub fn correct(&mut self, limit: NonZeroU32, taken: u64, used: u64, now: Duration) {
        let level = self.level(limit, now);
        let corrected = if used <= taken {
            level.saturating_sub(parts(taken - used))
        } else {
            let most = capacity(limit) * MOST_MINUTES_OWED;
            level.saturating_add(parts(used - taken)).min(most.max(level))
        };
        self.set(corrected, now);
    }

    /// How many whole units may be taken at once.
    pub fn remaining(&self, limit: NonZeroU32, now: Duration) -> u32 {
        let room = capacity(limit).saturating_sub(self.level(limit, now));
        u32::try_from(room / PARTS).unwrap_or(u32::MAX)
    }

    /// In which time it is as good as new, if nothing is taken meanwhile.
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

/// Enough for 584 years.
fn nanos(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
