//! Single calls to a chat model, which learn the members that its server accepts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use domain::routing::{AttemptFailure, AttemptFailureKind, Endpoint};

use super::errors::{self, Objection};
use super::members::{Member, Members};
use super::memory::Memory;
use super::prompt::Prompt;
use super::request::{self, Kind, Wanted};
use super::response::{self, Reply};
use super::tally::{Account, Tally, Used};
use crate::connection::Connection;
use crate::http::Payload;
use crate::settings::ModelPlace;

/// The reason for a missing answer.
#[derive(Debug)]
pub(super) enum Setback {
    /// The attempt has failed.
    Failed(AttemptFailure),
    /// The answer has no log-probabilities. The structured method may still work.
    NoLogprobs(AttemptFailure),
}

impl From<Setback> for AttemptFailure {
    fn from(setback: Setback) -> Self {
        match setback {
            Setback::Failed(failure) | Setback::NoLogprobs(failure) => failure,
        }
    }
}

/// Builds the failure for an answer that arrived and is unusable.
pub(super) fn unbelieved(detail: impl Into<String>) -> AttemptFailure {
    AttemptFailure { upstream_status: Some(200), ..AttemptFailure::new(AttemptFailureKind::Broken, detail) }
}

/// The calls of one attempt.
pub(super) struct Calls<'a> {
    pub(super) connection: &'a Connection,
    pub(super) memory: &'a Memory,
    pub(super) tally: &'a Tally,
    pub(super) endpoint: &'a Endpoint,
    pub(super) model_location: ModelPlace,
    left_out: Mutex<Members>,
    retries: [AtomicUsize; 2],
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        memory: &'a Memory,
        tally: &'a Tally,
        endpoint: &'a Endpoint,
        model_location: ModelPlace,
    ) -> Self {
        let learned = memory.recall(&endpoint.upstream_model);
        let retries = [Kind::Label, Kind::Object].map(|kind| AtomicUsize::new(learned.retries(kind)));
        Self { connection, memory, tally, endpoint, model_location, left_out: Mutex::new(learned.label), retries }
    }

    /// Calls the model. Retries without an optional member that the server rejects, and remembers the rejection once a
    /// request without it succeeded. The number of retries is bounded, and so is the cost of an attempt. At the bound
    /// the rejection is remembered too, for the next attempt.
    pub(super) async fn ask(&self, prompt: &Prompt, wanted: &Wanted) -> Result<Reply, Setback> {
        let model = &self.endpoint.upstream_model;
        loop {
            let left_out = self.left_out(wanted);
            let body = request::body(self.model_location.in_body(model), prompt, wanted, left_out);
            let account = self.tally.open();
            let payload = Payload::json(body);
            let posted = self.connection.post(model, payload, &account.sent, Some(errors::read)).await;
            let failure = match posted {
                Ok(body) => return self.read(&account, &body, wanted, left_out),
                Err(failure) => failure,
            };
            let answered = failure.upstream_status.is_some_and(|status| !(200..300).contains(&status));
            account.close(if answered { Used::Nothing } else { Used::Unknown });
            match Objection::of(&failure) {
                Some(Objection::Member(member)) => match request::to_leave_out(wanted, left_out, member) {
                    Some(member) if self.may_retry(Kind::of(wanted)) => self.leave_out(member),
                    Some(member) => {
                        self.memory.learn(model, |learned| learned.refused(Kind::of(wanted), left_out.with(member)));
                        return Err(Setback::Failed(failure));
                    }
                    None => return Err(Setback::Failed(failure)),
                },
                Some(Objection::Logprobs) if matches!(wanted, Wanted::Label { .. }) => {
                    return Err(Setback::NoLogprobs(failure));
                }
                _ => return Err(Setback::Failed(failure)),
            }
        }
    }

    fn read(&self, account: &Account<'_>, body: &[u8], wanted: &Wanted, left_out: Members) -> Result<Reply, Setback> {
        match response::read(body) {
            Ok(reply) => {
                account.close(reply.usage.into());
                let model = &self.endpoint.upstream_model;
                self.memory.learn(model, |learned| learned.taken(Kind::of(wanted), left_out));
                Ok(reply)
            }
            Err(bad) => {
                let guised = errors::in_answer(body);
                account.close(if guised.is_some() { Used::Nothing } else { bad.usage.into() });
                Err(Setback::Failed(guised.unwrap_or_else(|| unbelieved(bad.fault.to_string()))))
            }
        }
    }

    fn left_out(&self, wanted: &Wanted) -> Members {
        let so_far = *self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.and(self.memory.recall(&self.endpoint.upstream_model).left_out(Kind::of(wanted)))
    }

    /// Takes one of the retries of the attempt.
    fn may_retry(&self, kind: Kind) -> bool {
        let [label, object] = &self.retries;
        let left = match kind {
            Kind::Label => label,
            Kind::Object => object,
        };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn leave_out(&self, member: Member) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        *left_out = left_out.with(member);
        tracing::debug!(member = member.name(), "a chat server does not take a member");
    }
}
