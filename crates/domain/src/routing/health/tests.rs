//! Proof of the health rules: each by itself, and all of them against a naive model over random histories.

mod board;
mod breaker;
mod measures;
mod properties;
mod reference;

use std::time::Duration;

use super::{Admission, EndpointHealth, HealthPolicy, HealthView, Observation, Permit};

const OK: Observation = Observation::Succeeded { latency: Duration::from_millis(80), tokens: 40 };
const UNTOLD: Observation = Observation::Overloaded { retry_after: None };

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn just_under(time: Duration) -> Duration {
    time.saturating_sub(Duration::from_nanos(1))
}

/// From one moment to a later one.
fn between(from: Duration, to: Duration) -> Duration {
    to.checked_sub(from).expect("time goes on")
}

fn told(wait: Duration) -> Observation {
    Observation::Overloaded { retry_after: Some(wait) }
}

/// An endpoint with its policy and a clock that the test moves.
struct Bench {
    policy: HealthPolicy,
    health: EndpointHealth,
    now: Duration,
}

impl Bench {
    fn new() -> Self {
        Self::with(HealthPolicy::default())
    }

    fn with(policy: HealthPolicy) -> Self {
        Self { policy, health: EndpointHealth::new(), now: secs(1000) }
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn ask(&mut self) -> Admission {
        self.health.admit(&self.policy, self.now)
    }

    fn admit(&mut self) -> Permit {
        match self.ask() {
            Admission::Admitted(permit) => permit,
            Admission::Refused { retry_in } => panic!("refused for {retry_in:?}"),
        }
    }

    fn refusal(&mut self) -> Duration {
        match self.ask() {
            Admission::Admitted(permit) => panic!("admitted with {permit:?}"),
            Admission::Refused { retry_in } => retry_in,
        }
    }

    fn report(&mut self, permit: Permit, observation: Observation) {
        self.health.report(&self.policy, permit, observation, self.now);
    }

    /// One attempt that takes no time.
    fn attempt(&mut self, observation: Observation) -> &mut Self {
        let permit = self.admit();
        self.report(permit, observation);
        self
    }

    fn attempts(&mut self, count: u32, observation: Observation) -> &mut Self {
        for _ in 0..count {
            self.attempt(observation);
        }
        self
    }

    /// Fails as often as it takes, and waits until the opening is over.
    fn half_open(&mut self) -> &mut Self {
        let opening = self.policy.open_for;
        self.attempts(self.policy.failures_to_open, Observation::Failed).wait(opening)
    }

    fn view(&self) -> HealthView {
        self.health.view(&self.policy, self.now)
    }
}
