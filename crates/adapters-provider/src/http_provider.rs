//! A provider of a wire that needs one call per request.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use domain::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use domain::pricing::ReportedUsage;
use domain::question::ProviderInput;
use domain::routing::{AttemptFailure, AttemptFailureKind, Endpoint};
use domain::system::Clock;
use http_client::HttpClient;
use tokio::time::Instant;
use tracing::Instrument;
use wires::canonical::{Division, divide, remaining_input};
use wires::provider::{BadAnswer, WireAnswer, WireCodec, account};

use crate::attempt::run_with_deadline;
use crate::connection::Connection;
use crate::payload::{Payload, SentCounter};
use crate::provider_error;
use crate::settings::{ProviderSettings, ProviderSettingsError};

/// A provider behind a wire.
pub struct HttpProvider {
    connection: Connection,
    codec: Box<dyn WireCodec>,
}

impl HttpProvider {
    /// Builds the provider over this client.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(
        client: HttpClient,
        clock: Arc<dyn Clock>,
        settings: &ProviderSettings,
        codec: Box<dyn WireCodec>,
    ) -> Result<Self, ProviderSettingsError> {
        Ok(Self { connection: Connection::new(client, clock, settings)?, codec })
    }

    /// Splits the provider input into questions for the provider and locally known answers.
    fn divide(&self, call: &ProviderCall) -> Division {
        if self.codec.refuses_single_outcomes() {
            divide(&call.provider_input)
        } else {
            Division { remaining: Some(Arc::clone(&call.provider_input)), has_local_answers: false }
        }
    }

    /// Classifies a malformed answer: as the error that it contains, if any.
    fn bad(&self, bad: BadAnswer, body: &Bytes) -> AttemptFailure {
        let malformed = AttemptFailure {
            upstream_status: Some(200),
            usage: bad.usage,
            provider_error: provider_error::read(200, body, self.connection.redactor()),
            ..AttemptFailure::new(AttemptFailureKind::InvalidResponse, bad.error.to_string())
        };
        let meaning = self.codec.read_error().and_then(|read_error| read_error(200, body));
        meaning.map_or_else(|| account::refine(malformed.clone(), body), |meaning| meaning.of(&malformed))
    }
}

impl HttpProvider {
    async fn answer(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        let endpoint = &call.endpoint;
        let division = self.divide(&call);
        let Some(remaining) = &division.remaining else {
            let answers = Division::join(&call.provider_input, None, endpoint.confidence);
            let usage = Some(ReportedUsage { input_tokens: 0, output_tokens: 0 });
            return Ok(ProviderAnswer { answers, usage, sent_bytes: 0 });
        };
        let write = || Ok(Payload::try_from(self.codec.write(&endpoint.upstream_model, remaining)?)?);
        let sent = SentCounter::of(&call.sent, Instant::now().checked_add(call.timeout));
        // Pinned in place: every future that it is moved into would reserve its size again.
        let by = (call.client.as_ref(), self.codec.read_error());
        let posted = pin!(self.connection.post(&endpoint.upstream_model, write, &sent, by));
        let body = run_with_deadline(sent.deadline(), call.client.as_ref(), posted)
            .await
            .map_err(|failure| AttemptFailure { sent_bytes: sent.bytes(), ..failure })?;
        let sent_bytes = sent.bytes();
        let WireAnswer { answers, usage } = self
            .codec
            .read(&remaining.questions, &body)
            .map_err(|bad| AttemptFailure { sent_bytes, ..self.bad(bad, &body) })?;
        let answers = if division.has_local_answers {
            Division::join(&call.provider_input, Some(&answers), endpoint.confidence)
        } else {
            answers
        };
        Ok(ProviderAnswer { answers, usage, sent_bytes })
    }
}

#[async_trait]
impl DecisionProvider for HttpProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        let span = tracing::debug_span!(
            "provider.call",
            provider.slug = %self.connection.slug(),
            wire = self.codec.wire().as_str(),
            upstream.model = &*call.endpoint.upstream_model
        );
        let answer = pin!(self.answer(call));
        if span.is_disabled() { answer.await } else { answer.instrument(span).await }
    }

    /// Returns the length of the body; 0 if the wire does not support the input or no question is left.
    fn outbound_bytes(&self, endpoint: &Endpoint, provider_input: &ProviderInput) -> u64 {
        let remaining = if self.codec.refuses_single_outcomes() {
            remaining_input(provider_input)
        } else {
            Some(Cow::Borrowed(provider_input))
        };
        let length =
            |remaining: Cow<'_, ProviderInput>| self.codec.body_length(&endpoint.upstream_model, &remaining).ok();
        remaining.and_then(length).unwrap_or(0)
    }
}
