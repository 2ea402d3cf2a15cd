//! A decision provider over chat models.

use std::sync::Arc;

use async_trait::async_trait;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::pricing::ReportedUsage;
use domain::question::ProviderInput;
use domain::routing::{AttemptFailure, Endpoint, Wire};
use domain::system::Clock;
use http_client::HttpClient;
use tokio::time::Instant;
use wires::canonical::{Division, divide, in_order, remaining_input};
use wires::chat::provider_request;
use wires::provider::ModelLocation;

use super::attempt::Attempt;
use super::bound::RequestBound;
use super::calls::Calls;
use super::memory::ModelMemory;
use super::prompt::Document;
use super::usage_totals::{CallUsage, UsageTotals};
use crate::attempt::run_with_deadline;
use crate::connection::Connection;
use crate::settings::{ProviderSettings, ProviderSettingsError};

/// A provider of chat models. It remembers the properties of each model for its own lifetime.
pub struct ChatCompletionsProvider {
    connection: Connection,
    model_location: ModelLocation,
    memory: ModelMemory,
}

impl ChatCompletionsProvider {
    /// Builds the provider over this client.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(
        client: HttpClient,
        clock: Arc<dyn Clock>,
        settings: &ProviderSettings,
    ) -> Result<Self, ProviderSettingsError> {
        let connection = Connection::new(client, clock, settings)?;
        Ok(Self { connection, model_location: settings.model_location, memory: ModelMemory::default() })
    }
}

#[async_trait]
impl DecisionProvider for ChatCompletionsProvider {
    /// Makes as many calls as the method needs, at most 8 at once, within one deadline. Reports the total usage only if
    /// every call reports its own.
    #[tracing::instrument(
        name = "provider.call",
        level = "debug",
        skip_all,
        fields(
            provider.slug = %self.connection.slug(),
            wire = Wire::ChatCompletions.as_str(),
            upstream.model = &*call.endpoint.upstream_model
        )
    )]
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        provider_request::check(&call.provider_input)?;
        let confidence = call.endpoint.confidence;
        let division = divide(&call.provider_input);
        let Some(remaining) = &division.remaining else {
            let usage = Some(ReportedUsage { input_tokens: 0, output_tokens: 0 });
            return Ok(ProviderAnswer {
                answers: Division::join(&call.provider_input, None, confidence),
                usage,
                sent_bytes: 0,
            });
        };
        let deadline = Instant::now().checked_add(call.timeout);
        let totals = UsageTotals::of(&call.sent, deadline);
        let questions = provider_request::check(remaining)?;
        let calls = Calls::new(&self.connection, &self.memory, &totals, &call, self.model_location);
        let attempt = Attempt { calls, questions, document: Document::of(remaining) };
        let made = run_with_deadline(deadline, call.client.as_ref(), Box::pin(attempt.answers())).await;
        let made = made.map_err(|failure| totals.failure(failure))?;
        let answers = in_order(questions.iter().map(|question| question.name.as_str()).zip(&made));
        let answers = if division.has_local_answers {
            Division::join(&call.provider_input, Some(&answers), confidence)
        } else {
            answers
        };
        let usage = match totals.total() {
            CallUsage::Reported(usage) => Some(usage),
            CallUsage::NotBilled | CallUsage::Unknown => None,
        };
        Ok(ProviderAnswer { answers, usage, sent_bytes: totals.sent_bytes() })
    }

    /// Returns the bound for all calls that the method may need, each at its maximal length, and for retries after
    /// rejected members.
    fn outbound_bytes(&self, endpoint: &Endpoint, provider_input: &ProviderInput) -> u64 {
        // An input that cannot be put into a prompt is not sent.
        let Some(remaining) =
            provider_request::check(provider_input).ok().and_then(|_| remaining_input(provider_input))
        else {
            return 0;
        };
        let bound = RequestBound {
            model: self.model_location.in_body(&endpoint.upstream_model),
            chat: endpoint.chat,
            learned: self.memory.recall(&endpoint.upstream_model),
            questions: remaining.questions.typed.as_deref().unwrap_or_default(),
        };
        bound.total_bytes(&Document::of(&remaining))
    }
}
