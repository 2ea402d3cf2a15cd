//! The ports of [`super::SubmitDecision`], grouped by task.

use std::sync::Arc;

use crate::budget::Ledger;
use crate::decision::DecisionProvider;
use crate::decision::{Broadcast, Metrics};
use crate::guardrail::GuardrailPolicies;
use crate::model::Catalogue;
use crate::routing::{EndpointDirectory, HealthBoard};
use crate::system::{IdGenerator, Randomness, TimeSource, Workers};
use crate::usage::UsageRepository;

/// The ports of [`super::SubmitDecision`].
pub struct SubmitDecisionPorts {
    /// Calls providers.
    pub provider: Arc<dyn DecisionProvider>,
    /// Chooses endpoints.
    pub routing: RoutingPorts,
    /// Applies guardrails.
    pub guardrails: FilterPorts,
    /// Holds money, and records and charges usage.
    pub usage: UsagePorts,
    /// The clock and the timer.
    pub time: TimeSource,
}

/// The ports that endpoints are chosen by.
pub struct RoutingPorts {
    /// The models.
    pub catalogue: Arc<dyn Catalogue>,
    /// The configured endpoints.
    pub endpoints: Arc<EndpointDirectory>,
    /// The health of the endpoints, which every attempt adds to.
    pub health: Arc<HealthBoard>,
    /// Draws among endpoints.
    pub random: Arc<dyn Randomness>,
}

/// The ports that guardrails are applied by.
#[derive(Clone)]
pub struct FilterPorts {
    /// The guardrails of keys.
    pub policies: Arc<dyn GuardrailPolicies>,
    /// Scans large inputs.
    pub workers: Arc<dyn Workers>,
}

/// The ports that usage is charged and reported by.
#[derive(Clone)]
pub struct UsagePorts {
    /// Holds money and charges usage.
    pub ledger: Arc<dyn Ledger>,
    /// Bounds the bytes of records.
    pub records: Arc<dyn UsageRepository>,
    /// Names requests.
    pub ids: Arc<dyn IdGenerator>,
    /// Counts.
    pub metrics: Arc<dyn Metrics>,
    /// Writes the messages for destinations.
    pub broadcaster: Arc<dyn Broadcast>,
}
