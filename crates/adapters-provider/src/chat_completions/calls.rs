//! Single calls to a chat model, which learn what its server takes.

use std::sync::{Mutex, PoisonError};

use domain::routing::{AttemptFailure, AttemptFailureKind, Endpoint};

use super::errors::{self, Objection};
use super::members::{Member, Members};
use super::memory::Memory;
use super::prompt::Prompt;
use super::request::{self, Wanted};
use super::response::{self, Reply};
use super::tally::{Account, Tally, Used};
use crate::connection::Connection;
use crate::http::Payload;
use crate::settings::ModelPlace;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Setback {
    /// The attempt has failed.
    Failed(AttemptFailure),
    /// It has, for this way of asking: there is nothing to read a label's probability from.
    NoLogprobs(AttemptFailure),
}

impl From<Setback> for AttemptFailure {
    fn from(setback: Setback) -> Self {
        match setback {
            Setback::Failed(failure) | Setback::NoLogprobs(failure) => failure,
        }
    }
}

/// An answer that came and is not believed.
pub(super) fn unbelieved(detail: impl Into<String>) -> AttemptFailure {
    AttemptFailure { upstream_status: Some(200), ..AttemptFailure::new(AttemptFailureKind::Broken, detail) }
}

/// The calls of one attempt.
pub(super) struct Calls<'a> {
    pub(super) connection: &'a Connection,
    pub(super) memory: &'a Memory,
    pub(super) tally: &'a Tally,
    pub(super) endpoint: &'a Endpoint,
    pub(super) model_in: ModelPlace,
    left_out: Mutex<Members>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        memory: &'a Memory,
        tally: &'a Tally,
        endpoint: &'a Endpoint,
        model_in: ModelPlace,
    ) -> Self {
        let left_out = Mutex::new(memory.recall(&endpoint.upstream_model).label);
        Self { connection, memory, tally, endpoint, model_in, left_out }
    }

    /// Asks. A server that objects to a member that can be left out is asked again without it, and from then on is not
    /// sent it, once it has taken a request without. There are few such members, so this ends.
    pub(super) async fn ask(&self, prompt: &Prompt, wanted: &Wanted) -> Result<Reply, Setback> {
        let model = &self.endpoint.upstream_model;
        loop {
            let left_out = self.left_out(wanted);
            let body = request::body(self.model_in.in_body(model), prompt, wanted, left_out);
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
                    Some(member) => self.leave_out(member),
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
                self.memory.learn(&self.endpoint.upstream_model, |learned| match wanted {
                    Wanted::Label { .. } => learned.label = learned.label.and(left_out),
                    Wanted::Object { .. } => learned.object = learned.object.and(left_out),
                });
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
        match wanted {
            Wanted::Label { .. } => so_far,
            Wanted::Object { .. } => so_far.and(self.memory.recall(&self.endpoint.upstream_model).object),
        }
    }

    fn leave_out(&self, member: Member) {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        *left_out = left_out.with(member);
        tracing::debug!(member = member.name(), "a chat server does not take a member");
    }
}
