//! Tests of the health rules: each rule alone, and all rules against a reference model over random histories.

mod board;
mod measures;
mod pauses;
mod properties;
mod reference;
mod simulations;
mod throttle;

use std::time::Duration;

use super::board::EndpointHealth;
use super::{Admission, AttemptReport, HealthPolicy, HealthView, Observation, ThrottleView};
use crate::ids::WorkspaceId;
use crate::routing::{AttemptFailure, AttemptFailureKind};
use crate::testing::ScriptedRandomness;

const OK: Observation = Observation::Succeeded { latency: Duration::from_millis(80), tokens: 40 };

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn workspace(number: u128) -> WorkspaceId {
    WorkspaceId::from_uuid(uuid::Uuid::from_u128(number))
}

fn status(status: u16) -> Observation {
    Observation::from(&AttemptFailure::from_status(status, None))
}

fn overloaded(status: u16, wait: Duration) -> Observation {
    Observation::from(&AttemptFailure::from_status(status, Some(wait)))
}

fn failed(kind: AttemptFailureKind) -> Observation {
    Observation::from(&AttemptFailure::new(kind, "failed"))
}

/// A malformed answer.
fn malformed() -> Observation {
    let failure = AttemptFailure::new(AttemptFailureKind::InvalidResponse, "malformed");
    Observation::from(&AttemptFailure { upstream_status: Some(200), ..failure })
}

/// An endpoint with its policy and a clock that the test moves.
struct EndpointFixture {
    policy: HealthPolicy,
    health: EndpointHealth,
    now: Duration,
}

impl EndpointFixture {
    fn new() -> Self {
        Self::with(HealthPolicy::default())
    }

    fn with(policy: HealthPolicy) -> Self {
        Self { policy, health: EndpointHealth::default(), now: secs(1000) }
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    /// Asks for an attempt with a draw from 0 to 1.
    fn admit(&mut self, of: u128, draw: f64) -> Admission {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a draw of a test"
        )]
        let draw = (draw * (1_u64 << 53) as f64) as u64;
        let random = ScriptedRandomness::new([draw << 11]);
        self.health.throttle.admit(&self.policy, workspace(of), &random, self.now)
    }

    /// Returns true if the worst draw rejects an attempt. Counts an admitted attempt.
    fn rejects(&mut self, of: u128) -> bool {
        matches!(self.admit(of, 0.0), Admission::Rejected { .. })
    }

    fn retry_in(&mut self, of: u128) -> Duration {
        match self.admit(of, 0.0) {
            Admission::Rejected { retry_in, .. } => retry_in,
            admitted => panic!("{admitted:?}"),
        }
    }

    fn report(&mut self, of: u128, observation: Observation) -> &mut Self {
        let report = AttemptReport { endpoint: 0, workspace: workspace(of), began: self.now, observation };
        self.health.report(&self.policy, &report, self.now);
        self
    }

    fn reports(&mut self, count: u32, of: u128, observation: Observation) -> &mut Self {
        for _ in 0..count {
            self.report(of, observation);
        }
        self
    }

    /// One attempt of the first workspace.
    fn attempt(&mut self, observation: Observation) -> &mut Self {
        self.report(1, observation)
    }

    fn attempts(&mut self, count: u32, observation: Observation) -> &mut Self {
        self.reports(count, 1, observation)
    }

    fn view(&self) -> HealthView {
        self.health.view(&self.policy, self.now)
    }

    fn throttling(&mut self) -> ThrottleView {
        self.health.throttle.view(&self.policy, self.now)
    }
}
