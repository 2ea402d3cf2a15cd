//! The share of one replica in a rate limit.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of live replicas, over which the rate limits are divided. Clones share the number.
#[derive(Debug, Clone)]
pub struct ReplicaCount(Arc<AtomicU32>);

impl Default for ReplicaCount {
    /// Returns the count of a single replica.
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(1)))
    }
}

impl ReplicaCount {
    /// Sets the number of live replicas; zero counts as one.
    pub fn set(&self, replicas: usize) {
        self.0.store(u32::try_from(replicas).unwrap_or(u32::MAX).max(1), Ordering::Relaxed);
    }

    /// Returns the number of live replicas.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the share of one replica in a limit: at least one. All shares together do not exceed a limit that is at
    /// least the number of replicas.
    pub fn share_of(&self, limit: NonZeroU32) -> NonZeroU32 {
        NonZeroU32::new(limit.get() / self.get().max(1)).unwrap_or(NonZeroU32::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_the_quotient_and_at_least_one() {
        let replicas = ReplicaCount::default();
        let share = |limit: u32| replicas.share_of(NonZeroU32::new(limit).unwrap()).get();
        assert_eq!((share(1), share(7), share(u32::MAX)), (1, 7, u32::MAX));
        replicas.clone().set(3);
        assert_eq!((share(1), share(2), share(3), share(7), share(600)), (1, 1, 1, 2, 200));
        replicas.set(0);
        assert_eq!(share(7), 7, "a replica that counts is live");
        replicas.set(usize::MAX);
        assert_eq!(share(u32::MAX), 1);
    }
}
