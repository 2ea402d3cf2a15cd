//! An average with exponential decay.

use std::time::Duration;

/// A weighted average: a value weighs 1 when it is added and half as much after each half-life.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DecayingMean {
    sum: f64,
    weight: f64,
    at: Duration,
}

impl DecayingMean {
    /// Adds a finite value.
    pub(super) fn add(&mut self, value: f64, half_life: Duration, now: Duration) {
        // The weight is at least 1 afterwards, so that the average is never 0 / 0.
        let factor = self.factor(half_life, now);
        self.sum = self.sum * factor + value;
        self.weight = self.weight * factor + 1.0;
        self.at = self.at.max(now);
    }

    /// Returns the average; `None` before the first value. Time alone does not change it.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    fn factor(&self, half_life: Duration, now: Duration) -> f64 {
        let age = now.saturating_sub(self.at);
        if age.is_zero() { 1.0 } else { (-age.as_secs_f64() / half_life.as_secs_f64()).exp2() }
    }
}
