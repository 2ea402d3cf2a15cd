//! Builds a provider from a wire and settings.

use std::sync::Arc;

use domain::decision::DecisionProvider;
use domain::routing::Wire;
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
