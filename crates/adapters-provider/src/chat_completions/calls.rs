//! Single calls to a chat model, which learn the members that its server accepts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::decision::{ClientConnection, ProviderCall};
use domain::routing::{AttemptFailure, AttemptFailureKind, Endpoint};
use wires::chat::errors::{self, Objection};
use wires::chat::members::{Member, Members};
use wires::chat::provider_request::{self, OutputKind, Prompt, RequestedOutput};
use wires::chat::provider_response::{self, Reply};
use wires::provider::ModelLocation;

use super::memory::ModelMemory;
use super::usage_totals::{CallEntry, CallUsage, UsageTotals};
use crate::connection::Connection;
use crate::payload::Payload;
use crate::provider_error;

/// The reason for a missing answer.
#[derive(Debug)]
pub(super) enum CallError {
    /// The attempt has failed.
    Failed(AttemptFailure),
    /// The answer has no log-probabilities. The structured method may still work.
    NoLogprobs(AttemptFailure),
}

impl From<CallError> for AttemptFailure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Failed(failure) | CallError::NoLogprobs(failure) => failure,
        }
    }
}

/// Builds the failure for an answer that arrived and is unusable.
pub(super) fn unusable_answer(detail: impl Into<String>) -> AttemptFailure {
    AttemptFailure { upstream_status: Some(200), ..AttemptFailure::new(AttemptFailureKind::InvalidResponse, detail) }
}

/// The calls of one attempt.
pub(super) struct Calls<'a> {
    pub(super) connection: &'a Connection,
    pub(super) memory: &'a ModelMemory,
    pub(super) totals: &'a UsageTotals,
    pub(super) endpoint: &'a Endpoint,
    pub(super) model_location: ModelLocation,
    client: &'a dyn ClientConnection,
    omitted: Mutex<Members>,
    retries: [AtomicUsize; 2],
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        memory: &'a ModelMemory,
        totals: &'a UsageTotals,
        call: &'a ProviderCall,
        model_location: ModelLocation,
    ) -> Self {
        let (endpoint, client) = (&*call.endpoint, call.client.as_ref());
        let learned = memory.recall(&endpoint.upstream_model);
        let retries = [OutputKind::Label, OutputKind::Object].map(|kind| AtomicUsize::new(learned.retries(kind)));
        Self {
            connection,
            memory,
            totals,
            endpoint,
            model_location,
            client,
            omitted: Mutex::new(learned.label),
            retries,
        }
    }

    /// Calls the model. Retries without an optional member that the server rejects, and remembers the rejection once a
    /// request without it succeeded. The number of retries is bounded, and so is the cost of an attempt. At the bound
    /// the rejection is remembered too, for the next attempt.
    pub(super) async fn ask(&self, prompt: &Prompt, output: &RequestedOutput) -> Result<Reply, CallError> {
        let model = &self.endpoint.upstream_model;
        loop {
            let omitted = self.omitted(output);
            let write = || {
                Ok(Payload::json(provider_request::body(self.model_location.in_body(model), prompt, output, omitted)))
            };
            let entry = self.totals.start_call();
            let posted = self.connection.post(model, write, &entry.sent, (self.client, Some(errors::read))).await;
            let failure = match posted {
                Ok(body) => return self.read(&entry, &body, output, omitted),
                Err(failure) => failure,
            };
            let answered = failure.upstream_status.is_some_and(|status| !(200..300).contains(&status));
            entry.record(if answered { CallUsage::NotBilled } else { CallUsage::Unknown });
            match Objection::of(&failure) {
                Some(Objection::Member(member)) => match provider_request::member_to_omit(output, omitted, member) {
                    Some(member) if self.take_retry(OutputKind::of(output)) => self.omit(member),
                    Some(member) => {
                        self.memory.learn(model, |learned| {
                            learned.record_rejected(OutputKind::of(output), omitted.with(member));
                        });
                        return Err(CallError::Failed(failure));
                    }
                    None => return Err(CallError::Failed(failure)),
                },
                Some(Objection::Logprobs) if matches!(output, RequestedOutput::Label { .. }) => {
                    return Err(CallError::NoLogprobs(failure));
                }
                _ => return Err(CallError::Failed(failure)),
            }
        }
    }

    fn read(
        &self,
        entry: &CallEntry<'_>,
        body: &[u8],
        output: &RequestedOutput,
        omitted: Members,
    ) -> Result<Reply, CallError> {
        match provider_response::read(body) {
            Ok(reply) => {
                entry.record(reply.usage.into());
                let model = &self.endpoint.upstream_model;
                self.memory.learn(model, |learned| learned.record_accepted(OutputKind::of(output), omitted));
                Ok(reply)
            }
            Err(bad) => {
                let guised = errors::read_error_in_answer(body);
                entry.record(if guised.is_some() { CallUsage::NotBilled } else { bad.usage.into() });
                let failure = guised.unwrap_or_else(|| unusable_answer(bad.error.to_string()));
                let provider_error = provider_error::read(200, body, self.connection.redactor());
                Err(CallError::Failed(AttemptFailure { provider_error, ..failure }))
            }
        }
    }

    fn omitted(&self, output: &RequestedOutput) -> Members {
        let so_far = *self.omitted.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.and(self.memory.recall(&self.endpoint.upstream_model).omitted(OutputKind::of(output)))
    }

    /// Takes one of the retries of the attempt.
    fn take_retry(&self, kind: OutputKind) -> bool {
        let [label, object] = &self.retries;
        let left = match kind {
            OutputKind::Label => label,
            OutputKind::Object => object,
        };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn omit(&self, member: Member) {
        let mut omitted = self.omitted.lock().unwrap_or_else(PoisonError::into_inner);
        *omitted = omitted.with(member);
        tracing::debug!(member = member.as_str(), "chat server rejects a member");
    }
}
