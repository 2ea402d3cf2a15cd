//! A Decisions request in canonical form, and its answer.

use std::sync::Arc;

use crate::ids::DecisionId;
use crate::json::Json;
use crate::model::ModelId;
use crate::money::Usd;
use crate::preset::Cascade;
use crate::question::{Answers, ProviderInput};
use crate::routing::{RoutingFunnel, RoutingPreferences};
use crate::usage::{AttemptRecord, Finding, PresetReference, QuestionOutcomes, UsageSource};

/// A validated Decisions request. Providers receive only its [`ProviderInput`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRequest {
    /// The model name that the client sent.
    pub model: String,
    /// The fallback models, in order: each is tried if no endpoint of the models before it answered.
    pub fallback_models: Vec<String>,
    /// The questions, the state and the media.
    pub provider_input: Arc<ProviderInput>,
    /// The routing preferences.
    pub preferences: RoutingPreferences,
    /// True: questions without an answer are reported as errors instead of failing the whole request.
    pub partial: bool,
    /// The id of a group of requests; at most 256 characters. Not sent to providers.
    pub session_id: Option<String>,
    /// Observability metadata: a JSON object. Not sent to providers.
    pub trace: Option<Json>,
    /// The end user; at most 256 characters. Not sent to providers.
    pub user: Option<String>,
    /// The preset that its models and questions are from.
    pub preset: Option<PresetReference>,
    /// The stages of the preset, if it has any.
    pub cascade: Option<Arc<Cascade>>,
}

/// The answer to a Decisions request.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The id of the answer and of its usage record.
    pub id: DecisionId,
    /// The input with the questions, for APIs whose responses are not in canonical form.
    pub provider_input: Arc<ProviderInput>,
    /// The answers, in the order of the questions.
    pub answers: Answers,
    /// The model that served it; the first sub-request's, if several did.
    pub model: ModelId,
    /// The display names of the providers that served it, separated by commas.
    pub provider: String,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The source of the token counts.
    pub usage_source: UsageSource,
    /// The cost.
    pub cost: Usd,
    /// Every attempt, successful ones included, in the order of their starts.
    pub attempts: Arc<[AttemptRecord]>,
    /// The number of endpoints left after each routing step.
    pub funnel: RoutingFunnel,
    /// The findings of content filters: redacted or flagged before the request was sent.
    pub findings: Vec<Finding>,
    /// The outcomes of the questions of a preset with stages; empty without stages.
    pub outcomes: QuestionOutcomes,
}
