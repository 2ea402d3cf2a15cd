//! A Decisions request in canonical form.

use std::sync::Arc;

use crate::json::Json;
use crate::question::ProviderInput;
use crate::routing::RoutingPreferences;

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
}
