//! The health of all endpoints of a process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::breaker::{Admission, Permit};
use super::{EndpointHealth, HealthPolicy, HealthView, Observation};

/// The health of all endpoints of a process, by their place in the configuration. Each has a lock of its own, held
/// for about a tenth of a microsecond, and for one or two by [`Self::view`].
///
/// A place that the board does not have is an endpoint without a memory: it is always admitted and its reports go
/// nowhere.
#[derive(Debug)]
pub struct HealthBoard {
    policy: HealthPolicy,
    endpoints: Vec<Mutex<EndpointHealth>>,
}

impl HealthBoard {
    /// A board of so many endpoints, all closed.
    pub fn new(count: usize, policy: HealthPolicy) -> Self {
        Self { policy, endpoints: (0..count).map(|_| Mutex::default()).collect() }
    }

    /// The numbers that it goes by.
    pub fn policy(&self) -> &HealthPolicy {
        &self.policy
    }

    /// How many endpoints it has.
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// True where it has none.
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }

    /// Asks for leave to make one attempt at an endpoint.
    pub fn admit(&self, index: usize, now: Duration) -> Admission {
        let admission = match self.endpoint(index) {
            Some(mut endpoint) => endpoint.admit(&self.policy, now),
            None => Admission::Admitted(Permit { serial: 0, probe: false, index }),
        };
        match admission {
            Admission::Admitted(permit) => Admission::Admitted(Permit { index, ..permit }),
            refused @ Admission::Refused { .. } => refused,
        }
    }

    /// Hands a permit of this board back with what its attempt told. The permit knows its endpoint.
    pub fn report(&self, permit: Permit, observation: Observation, now: Duration) {
        if let Some(mut endpoint) = self.endpoint(permit.index) {
            endpoint.report(&self.policy, permit, observation, now);
        }
    }

    /// Whether an attempt would be admitted. Changes nothing; a moment later the answer may be another.
    pub fn would_admit(&self, index: usize, now: Duration) -> bool {
        self.endpoint(index).is_none_or(|endpoint| endpoint.would_admit(&self.policy, now))
    }

    /// Whether an endpoint failed less than [`HealthPolicy::recent_failure`] ago, without the cost of a view.
    pub fn failed_recently(&self, index: usize, now: Duration) -> bool {
        self.endpoint(index).is_some_and(|endpoint| endpoint.failed_recently(&self.policy, now))
    }

    /// What is known of an endpoint.
    pub fn view(&self, index: usize, now: Duration) -> HealthView {
        match self.endpoint(index) {
            Some(endpoint) => endpoint.view(&self.policy, now),
            None => EndpointHealth::new().view(&self.policy, now),
        }
    }

    fn endpoint(&self, index: usize) -> Option<MutexGuard<'_, EndpointHealth>> {
        // Nothing under the lock panics; were it to, the counts would still be counts.
        self.endpoints.get(index).map(|endpoint| endpoint.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
