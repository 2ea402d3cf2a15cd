//! Builds a provider from a wire and settings.

use std::sync::Arc;

use domain::decision::DecisionProvider;
use domain::routing::Wire;
use domain::system::Clock;
use http_client::HttpClient;

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
    Ok(match (wires::formats::codec(wire, settings.model_location, settings.response_wrapper), wire) {
        (Some(codec), _) => Arc::new(HttpProvider::new(client, clock, &settings, codec)?),
        (None, Wire::Sandbox) => Arc::new(SandboxProvider::new()),
        (None, _) => Arc::new(ChatCompletionsProvider::new(client, clock, &settings)?),
    })
}
