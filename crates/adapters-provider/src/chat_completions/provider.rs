//! A decision provider over chat models.

use async_trait::async_trait;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall, ProviderInput, ReportedUsage};
use domain::routing::{AttemptFailure, Endpoint, Wire};
use tokio::time::Instant;

use super::attempt::Attempt;
use super::bound::Bound;
use super::calls::Calls;
use super::memory::Memory;
use super::prompt::Document;
use super::request;
use super::tally::{Tally, Used};
use crate::canonical::{Division, divide, in_order, left_to_ask};
use crate::connection::Connection;
use crate::http::{HttpClient, within};
use crate::settings::{ModelPlace, ProviderSettings, ProviderSettingsError};

/// A provider of chat models. It remembers the properties of each model for its own lifetime.
pub struct ChatCompletionsProvider {
    connection: Connection,
    model_location: ModelPlace,
    memory: Memory,
}

impl ChatCompletionsProvider {
    /// Builds the provider over this client.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(client: HttpClient, settings: &ProviderSettings) -> Result<Self, ProviderSettingsError> {
        let connection = Connection::new(client, settings)?;
        Ok(Self { connection, model_location: settings.model_location, memory: Memory::default() })
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
            upstream.model = call.endpoint.upstream_model
        )
    )]
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        request::check(&call.provider_input)?;
        let confidence = call.endpoint.confidence;
        let division = divide(&call.provider_input);
        let Some(asked) = &division.asked else {
            let usage = Some(ReportedUsage { input_tokens: 0, output_tokens: 0 });
            return Ok(ProviderAnswer {
                answers: Division::join(&call.provider_input, None, confidence),
                usage,
                sent_bytes: 0,
            });
        };
        let tally = Tally::of(&call.sent, Instant::now().checked_add(call.timeout));
        let questions = request::check(asked)?;
        let calls = Calls::new(&self.connection, &self.memory, &tally, &call.endpoint, self.model_location);
        let attempt = Attempt { calls, questions, document: Document::of(asked) };
        let made = within(call.timeout, call.caller.as_ref(), Box::pin(attempt.answers())).await;
        let made = made.map_err(|failure| tally.failure(failure))?;
        let answers = in_order(questions.iter().map(|question| question.name.as_str()).zip(&made));
        let answers =
            if division.divided { Division::join(&call.provider_input, Some(&answers), confidence) } else { answers };
        let usage = match tally.used() {
            Used::Reported(usage) => Some(usage),
            Used::Nothing | Used::Unknown => None,
        };
        Ok(ProviderAnswer { answers, usage, sent_bytes: tally.sent_bytes() })
    }

    /// Returns the bound for all calls that the method may need, each at its maximal length, and for retries after
    /// rejected members.
    fn outbound_bytes(&self, endpoint: &Endpoint, provider_input: &ProviderInput) -> u64 {
        // An input that cannot be put into a prompt is not sent.
        let Some(asked) = request::check(provider_input).ok().and_then(|_| left_to_ask(provider_input)) else {
            return 0;
        };
        let bound = Bound {
            model: self.model_location.in_body(&endpoint.upstream_model),
            chat: endpoint.chat,
            learned: self.memory.recall(&endpoint.upstream_model),
            questions: asked.questions.typed.as_deref().unwrap_or_default(),
        };
        bound.of(&Document::of(&asked))
    }
}
