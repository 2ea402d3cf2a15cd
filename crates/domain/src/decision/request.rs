//! A Decisions request in canonical form.

use std::sync::Arc;

use crate::json::Json;
use crate::question::ProviderInput;
use crate::routing::RoutingPreferences;

/// A Decisions request whose form has been checked. What a provider gets of it is the [`ProviderInput`]; nothing else ever
/// leaves the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRequest {
    /// The model as the caller named it.
    pub model: String,
    /// Models to go on with where no endpoint of those before gave an answer, in order.
    pub fallback_models: Vec<String>,
    /// What is asked about what.
    pub provider_input: Arc<ProviderInput>,
    /// How to route.
    pub preferences: RoutingPreferences,
    /// True: questions that no provider answered are told as such instead of failing the whole request.
    pub partial: bool,
    /// Groups requests; at most 256 characters. Never sent to a provider.
    pub session_id: Option<String>,
    /// Observability metadata: a JSON object. Never sent to a provider.
    pub trace: Option<Json>,
    /// The end user; at most 256 characters. Never sent to a provider.
    pub user: Option<String>,
}
