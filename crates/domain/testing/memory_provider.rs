//! A fake provider whose remote side is in memory.

use std::pin::pin;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::future::{Either, pending, select};

use super::EventCount;
use super::contract::{Providers, RemoteProvider, RemoteProviders, RemoteReaction};
use super::system::lock;
use crate::decision::{DecisionProvider, ProviderAnswer, ProviderCall};
use crate::json::Json;
use crate::pricing::ReportedUsage;
use crate::question::{Attachments, Questions};
use crate::routing::{AttemptFailure, AttemptFailureKind};
use crate::system::Timer;

/// A provider that supports yes-or-no questions without media. A test sets the reaction of its remote side. Clones
/// share that.
#[derive(Clone)]
pub struct MemoryProvider {
    timer: Arc<dyn Timer>,
    reaction: Arc<Mutex<RemoteReaction>>,
    requests: EventCount,
}

impl MemoryProvider {
    /// Creates a provider that answers. The timer measures timeouts.
    pub fn new(timer: Arc<dyn Timer>) -> Self {
        Self { timer, reaction: Arc::new(Mutex::new(RemoteReaction::Answer)), requests: EventCount::default() }
    }

    async fn respond(&self, call: &ProviderCall, sent_bytes: u64) -> Result<ProviderAnswer, AttemptFailure> {
        let reaction = *lock(&self.reaction);
        match reaction {
            RemoteReaction::Answer => {
                let usage = Some(ReportedUsage { input_tokens: sent_bytes, output_tokens: 1 });
                Ok(ProviderAnswer { answers: answers(&call.provider_input.questions), usage, sent_bytes })
            }
            RemoteReaction::Status(status) => Err(AttemptFailure::from_status(status, None)),
            RemoteReaction::Malformed => {
                Err(AttemptFailure::new(AttemptFailureKind::InvalidResponse, "the answer is malformed"))
            }
            RemoteReaction::Stall => pending().await,
        }
    }
}

/// Returns an even answer to each question.
fn answers(questions: &Questions) -> Json {
    let asked = questions.typed.as_deref().unwrap_or_default();
    Json::object(asked.iter().map(|question| (question.name.as_str(), r#"{"type":"noul","noul":0.5}"#)))
}

#[async_trait]
impl DecisionProvider for MemoryProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        if call.provider_input.attachments != Attachments::None {
            let detail = "the provider was not asked: it takes no media";
            return Err(AttemptFailure::new(AttemptFailureKind::RejectedByProvider, detail));
        }
        let sent_bytes = self.outbound_bytes(&call.endpoint, &call.provider_input);
        call.sent.add(sent_bytes);
        self.requests.add();
        let failed = |kind| AttemptFailure { sent_bytes, ..AttemptFailure::new(kind, "the attempt was ended") };
        let work = pin!(self.respond(&call, sent_bytes));
        let limits = pin!(select(self.timer.sleep(call.timeout), call.client.disconnected()));
        match select(work, limits).await {
            Either::Left((end, _)) => end.map_err(|failure| AttemptFailure { sent_bytes, ..failure }),
            Either::Right((Either::Left(_), _)) => Err(failed(AttemptFailureKind::TimedOut)),
            Either::Right((Either::Right(_), _)) => Err(failed(AttemptFailureKind::ClientDisconnected)),
        }
    }
}

#[async_trait]
impl RemoteProvider for MemoryProvider {
    fn react(&self, reaction: RemoteReaction) {
        *lock(&self.reaction) = reaction;
    }

    fn requests(&self) -> usize {
        self.requests.get()
    }

    async fn reached(&self, requests: usize) {
        self.requests.reached(requests).await;
    }
}

impl RemoteProviders {
    /// Returns the fake.
    pub fn memory(timer: Arc<dyn Timer>) -> Self {
        let remote = Arc::new(MemoryProvider::new(Arc::clone(&timer)));
        Self { providers: Providers::over(Arc::clone(&remote) as _), remote, timer }
    }
}
