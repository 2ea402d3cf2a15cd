//! The ports: providers, the connection of the client, traces for destinations, metrics.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::budget::BudgetScope;
use crate::ids::{RequestId, WorkspaceId};
use crate::json::Json;
use crate::pricing::ReportedUsage;
use crate::question::ProviderInput;
use crate::routing::{AttemptFailure, Endpoint};
use crate::usage::{OutboxMessage, QuestionVerdict, RequestLabels, UsageRecord};

/// One attempt at one endpoint.
#[derive(Clone)]
pub struct ProviderCall {
    /// The endpoint.
    pub endpoint: Arc<Endpoint>,
    /// The input: everything that the provider receives.
    pub provider_input: Arc<ProviderInput>,
    /// The timeout of the attempt, from now.
    pub timeout: Duration,
    /// The connection of the client.
    pub client: Arc<dyn ClientConnection>,
    /// The counter of sent bytes, updated while sending.
    pub sent: SentBytes,
}

/// A counter of the bytes that may have reached a provider during one attempt. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct SentBytes(Arc<AtomicU64>);

impl SentBytes {
    /// Adds sent bytes.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts bytes that the provider certainly did not process.
    pub fn subtract(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The answer of a provider in canonical form, not yet validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderAnswer {
    /// The answers: a JSON object by the contract of the wire.
    pub answers: Json,
    /// The usage that the provider reported.
    pub usage: Option<ReportedUsage>,
    /// Bytes of the request body that was sent.
    pub sent_bytes: u64,
}

/// The most bytes of one escaped byte of text in JSON: `\u001f`.
const ESCAPED: u64 = 6;
/// An upper bound of a request's bytes besides the provider input and the model's name.
const FRAME: u64 = 4096;

/// Calls providers.
///
/// # Contract
/// - The bytes that `decide` adds to `sent` and the `sent_bytes` that it returns MUST NOT exceed `outbound_bytes`. The
///   bound is computed once, when the attempt is planned and its hold is requested; it MUST hold for every later call.
/// - One call is one attempt: no retries, no redirects.
/// - MUST end soon after `timeout` with [`crate::routing::AttemptFailureKind::TimedOut`] if there is no response, and
///   soon after a disconnect of the client with [`crate::routing::AttemptFailureKind::ClientDisconnected`].
/// - MUST reject an input that the endpoint's wire does not support, with
///   [`crate::routing::AttemptFailureKind::RejectedByProvider`] and without sending any bytes. MUST NOT drop parts of
///   an input.
/// - MUST add bytes to `sent` while sending: a cancelled attempt returns no result, and its charge is bounded by them.
/// - A failure MUST report the number of sent bytes, which bounds the provider's bill.
/// - MUST NOT put the provider's text into a failure.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DecisionProvider: Send + Sync {
    /// Makes one attempt.
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure>;

    /// Returns an upper bound of the bytes that one attempt at an endpoint sends. It bounds the cost before sending.
    /// The default is a bound for providers that send the input once, with any JSON escapes.
    fn outbound_bytes(&self, endpoint: &Endpoint, provider_input: &ProviderInput) -> u64 {
        let bytes = provider_input.len_bytes().saturating_add(endpoint.upstream_model.len());
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        bytes.saturating_mul(ESCAPED).saturating_add(FRAME)
    }
}

/// The origin of a Decisions request, for its usage record and its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOrigin {
    /// The id of the HTTP request.
    pub request_id: RequestId,
    /// The client's address; `None` if it is unknown or not recorded.
    pub client_address: Option<IpAddr>,
    /// The begin of the request and of its deadline, on the wall clock and on the monotonic one; `None` means now.
    pub began: Option<(DateTime<Utc>, Duration)>,
}

impl From<RequestId> for RequestOrigin {
    fn from(request_id: RequestId) -> Self {
        Self { request_id, client_address: None, began: None }
    }
}

/// Reports the disconnect of a client, so that its work is cancelled.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ClientConnection: Send + Sync {
    /// Returns once the client has disconnected; never if it stays connected. Cancel-safe.
    async fn disconnected(&self);

    /// Takes memory for that many further bytes of an answer that a provider is sending, until the request has ended.
    /// Returns false if none is left: the answer is then not read further.
    fn take_answer_memory(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Returns memory that was taken for an answer that is not used.
    fn return_answer_memory(&self, bytes: usize) {
        let _ = bytes;
    }
}

/// A client that never disconnects, for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverDisconnects;

#[async_trait]
impl ClientConnection for NeverDisconnects {
    async fn disconnected(&self) {
        std::future::pending::<()>().await;
    }
}

/// The request and response that destinations may receive.
#[derive(Debug, Clone, Copy)]
pub struct TraceContent<'a> {
    /// The input as it was sent, after redaction.
    pub provider_input: &'a ProviderInput,
    /// The answers in canonical form, with the aliases of redacted names. `None` without answers.
    pub answers: Option<&'a Json>,
    /// The outcomes of the questions of a preset with stages, by the names of the sent questions. `None` without stages.
    pub outcomes: Option<&'a Json>,
    /// The labels of the request after content filters; `None` if they equal those of the record.
    pub redacted_labels: Option<&'a RequestLabels>,
}

impl TraceContent<'_> {
    /// Returns the labels that a destination may receive.
    pub fn labels(&self, record: &UsageRecord) -> RequestLabels {
        self.redacted_labels.cloned().unwrap_or_else(|| RequestLabels {
            session_id: record.session_id.clone(),
            trace: record.trace.clone(),
            user: record.user.clone(),
        })
    }
}

/// Creates the messages for the destinations of a workspace.
///
/// # Contract
/// - Called on every request, before the response is sent: it MUST do no I/O and MUST NOT wait. It SHOULD take almost
///   no time without destinations.
/// - It cannot fail: a request never fails because of its messages.
#[cfg_attr(feature = "mock", mockall::automock)]
#[expect(clippy::elidable_lifetime_names, reason = "mockall needs the lifetime's name")]
pub trait Broadcast: Send + Sync {
    /// Returns one message for each destination that receives this request. `record` will be charged next.
    fn messages<'a>(&self, record: &UsageRecord, exchange: &TraceContent<'a>) -> Vec<OutboxMessage>;

    /// Returns true if a destination may receive `session_id`, `user` and `trace` of requests of this workspace.
    fn takes_labels(&self, workspace_id: WorkspaceId) -> bool;
}

/// Creates no messages, for embedding and for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBroadcast;

impl Broadcast for NoBroadcast {
    fn messages(&self, _: &UsageRecord, _: &TraceContent<'_>) -> Vec<OutboxMessage> {
        Vec::new()
    }

    fn takes_labels(&self, _: WorkspaceId) -> bool {
        false
    }
}

/// Records metrics for the operator. Labels MUST come from configuration or from fixed lists, never from a
/// caller's text.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Metrics: Send + Sync {
    /// Records the charge of a Decisions request. Its attempts are in the record.
    fn record_charge(&self, record: &UsageRecord);

    /// Records a hold that was granted, or rejected by a limit of that scope. A hold that still waits is not rejected.
    /// `took` is the time of the store.
    fn record_hold(&self, rejected_by: Option<BudgetScope>, took: Duration);

    /// Records the action of a guardrail: block, redact or flag.
    fn record_guardrail_action(&self, action: &'static str);

    /// Records the verdict of a question of a preset with stages.
    fn record_question_verdict(&self, verdict: QuestionVerdict);

    /// Records a charge above its hold.
    fn record_hold_exceeded(&self);

    /// Records requests of dead processes that were charged by their upper bounds.
    fn record_abandoned_requests(&self, requests: u64);
}

/// Records nothing. For embedding and tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl Metrics for NoMetrics {
    fn record_charge(&self, _: &UsageRecord) {}
    fn record_hold(&self, _: Option<BudgetScope>, _: Duration) {}
    fn record_guardrail_action(&self, _: &'static str) {}
    fn record_question_verdict(&self, _: QuestionVerdict) {}
    fn record_hold_exceeded(&self) {}
    fn record_abandoned_requests(&self, _: u64) {}
}
