//! The answer to a Decisions request.

use std::sync::Arc;

use crate::ids::DecisionId;
use crate::model::ModelId;
use crate::money::Usd;
use crate::question::{Answers, ProviderInput};
use crate::routing::RoutingFunnel;
use crate::usage::{AttemptRecord, Finding, TokenSource};

/// The answer to a Decisions request.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Names the answer; its usage record is found by it.
    pub id: DecisionId,
    /// The questions that were answered, for surfaces that answer in another form than the canonical one.
    pub provider_input: Arc<ProviderInput>,
    /// The answers, in the order of the questions.
    pub answers: Answers,
    /// The model that served it; of the first part where several did.
    pub model: ModelId,
    /// The display name of the provider that served it; several are joined by a comma.
    pub provider: String,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Where the token counts come from.
    pub token_source: TokenSource,
    /// What it cost.
    pub cost: Usd,
    /// Every attempt, in the order in which they began, the ones that answered included.
    pub attempts: Arc<[AttemptRecord]>,
    /// What each step of routing left.
    pub funnel: RoutingFunnel,
    /// What content filters redacted or flagged before anything was sent.
    pub findings: Vec<Finding>,
}
