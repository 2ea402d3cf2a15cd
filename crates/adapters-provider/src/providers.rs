//! Builds a provider from a wire and settings.

use std::sync::Arc;

use domain::decision::DecisionProvider;
use domain::routing::Wire;

use crate::chat_completions::ChatCompletionsProvider;
use crate::gemini_decisions::GeminiDecisions;
use crate::http::HttpClient;
use crate::http_provider::HttpProvider;
use crate::openai_decisions::OpenAiDecisions;
use crate::sandbox::SandboxProvider;
use crate::settings::{ProviderSettings, ProviderSettingsError};
use crate::sglang_decisions::SglangDecisions;
use crate::system_one::SystemOne;

/// Builds the provider of a wire over this client. The sandbox ignores both client and settings.
///
/// # Errors
/// The settings are invalid.
#[expect(clippy::needless_pass_by_value, reason = "settings are handed over, as to every adapter")]
pub fn http_provider(
    client: HttpClient,
    wire: Wire,
    settings: ProviderSettings,
) -> Result<Arc<dyn DecisionProvider>, ProviderSettingsError> {
    let model_location = settings.model_location;
    Ok(match wire {
        Wire::SystemOne => Arc::new(HttpProvider::new(client, &settings, SystemOne::of(&settings))?),
        Wire::OpenAiDecisions => Arc::new(HttpProvider::new(client, &settings, OpenAiDecisions { model_location })?),
        Wire::GeminiDecisions => Arc::new(HttpProvider::new(client, &settings, GeminiDecisions { model_location })?),
        Wire::SglangDecisions => Arc::new(HttpProvider::new(client, &settings, SglangDecisions { model_location })?),
        Wire::ChatCompletions => Arc::new(ChatCompletionsProvider::new(client, &settings)?),
        Wire::Sandbox => Arc::new(SandboxProvider::new()),
    })
}
