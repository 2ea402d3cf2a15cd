//! The providers: built from a wire and settings, and selected by an endpoint.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::ids::IdMap;
use domain::question::ProviderInput;
use domain::routing::{AttemptFailure, AttemptFailureKind, Endpoint, ProviderSlug, Wire};
use domain::system::Clock;
use http_client::HttpClient;
use wires::formats::Calls;

use crate::chat_completions::ChatCompletionsProvider;
use crate::http_provider::HttpProvider;
use crate::sandbox::SandboxProvider;
use crate::settings::{ProviderSettings, ProviderSettingsError};

/// Builds the provider of a wire over this client. The sandbox ignores both client and settings.
///
/// # Errors
/// The settings are invalid.
#[expect(clippy::needless_pass_by_value, reason = "settings are handed over, as to every adapter")]
pub fn http_provider(
    client: HttpClient,
    clock: Arc<dyn Clock>,
    wire: Wire,
    settings: ProviderSettings,
) -> Result<Arc<dyn DecisionProvider>, ProviderSettingsError> {
    Ok(match Calls::of(wire, settings.model_location, settings.response_wrapper) {
        Calls::Single(codec) => Arc::new(HttpProvider::new(client, clock, &settings, codec)?),
        Calls::Chat => Arc::new(ChatCompletionsProvider::new(client, clock, &settings)?),
        Calls::Local => Arc::new(SandboxProvider::new()),
    })
}

/// Passes each call to the provider with the endpoint's slug.
pub struct ProviderRouter {
    providers: IdMap<ProviderSlug, Arc<dyn DecisionProvider>>,
}

impl ProviderRouter {
    /// Builds the router over these providers.
    pub fn new(providers: HashMap<ProviderSlug, Arc<dyn DecisionProvider>>) -> Self {
        Self { providers: providers.into_iter().collect() }
    }
}

#[async_trait]
impl DecisionProvider for ProviderRouter {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        match self.providers.get(&call.endpoint.provider) {
            Some(provider) => provider.decide(call).await,
            None => {
                Err(AttemptFailure::new(AttemptFailureKind::ConnectFailed, "the endpoint's provider is not configured"))
            }
        }
    }

    /// Returns the bound of the endpoint's provider; 0 if it is not configured, since nothing is sent.
    fn outbound_bytes(&self, endpoint: &Endpoint, provider_input: &ProviderInput) -> u64 {
        self.providers.get(&endpoint.provider).map_or(0, |provider| provider.outbound_bytes(endpoint, provider_input))
    }
}
