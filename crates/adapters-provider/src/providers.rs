//! From a wire and settings to a provider.

use std::sync::Arc;

use domain::decision::DecisionProvider;
use domain::routing::Wire;

use crate::http::HttpClient;
use crate::http_provider::HttpProvider;
use crate::sandbox::SandboxProvider;
use crate::settings::{ProviderSettings, ProviderSettingsError};
use crate::system_one::SystemOne;

/// The provider of a wire, over this client. The sandbox needs none and takes no settings.
///
/// # Errors
/// Settings by which nothing can be called.
pub fn http_provider(
    client: HttpClient,
    wire: Wire,
    settings: ProviderSettings,
) -> Result<Arc<dyn DecisionProvider>, ProviderSettingsError> {
    Ok(match wire {
        Wire::SystemOne => Arc::new(HttpProvider::new(client, &settings, SystemOne::of(&settings))?),
        Wire::OpenAiDecisions | Wire::GeminiDecisions | Wire::SglangDecisions | Wire::ChatCompletions => {
            return Err(ProviderSettingsError::Address);
        }
        Wire::Sandbox => Arc::new(SandboxProvider::new()),
    })
}
