//! The port that calls providers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::ClientConnection;
use crate::json::Json;
use crate::pricing::ReportedUsage;
use crate::question::ProviderInput;
use crate::routing::{AttemptFailure, Endpoint};

/// One attempt at one endpoint.
#[derive(Clone)]
pub struct ProviderCall {
    /// Where to.
    pub endpoint: Arc<Endpoint>,
    /// What: all that the provider gets to see.
    pub provider_input: Arc<ProviderInput>,
    /// The attempt's deadline, from now.
    pub timeout: Duration,
    /// The caller.
    pub caller: Arc<dyn ClientConnection>,
    /// Where bytes of requests are counted as they go out.
    pub sent: SentBytes,
}

/// Bytes of requests that may have reached a provider in the course of one attempt. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct SentBytes(Arc<AtomicU64>);

impl SentBytes {
    /// So many more went out.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a provider answered, in canonical form and not yet believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderAnswer {
    /// The answers: by contract of the wire a JSON object.
    pub answers: Json,
    /// What the provider says it used.
    pub usage: Option<ReportedUsage>,
    /// Bytes of the request body that was sent.
    pub sent_bytes: u64,
}

/// Bytes that one byte of text takes at most where JSON escapes it: `\u001f`.
const ESCAPED: u64 = 6;
/// Bytes of a request around the provider input and the model's name, generously.
const FRAME: u64 = 4096;

/// Calls providers.
///
/// # Contract
/// - `outbound_bytes` MUST NOT be exceeded by what `decide` counts into `sent`, nor by the `sent_bytes` that it returns.
///   That holds however much later `decide` is called, whatever other calls have taught in the meantime: an attempt is
///   bounded once, when it is planned and its money is reserved.
/// - One call is one attempt: no retry, no redirect followed.
/// - MUST end within `timeout` plus a little, by [`crate::routing::AttemptFailureKind::TimedOut`] where nothing came,
///   and soon after the caller left, by [`crate::routing::AttemptFailureKind::CallerGone`].
/// - What the endpoint's wire cannot carry MUST be refused before anything is sent, by
///   [`crate::routing::AttemptFailureKind::Refused`] with no bytes sent, never dropped.
/// - Bytes of requests MUST be counted into `sent` as they go out: an attempt that is given up half-way can say nothing any
///   more, and what the provider may bill for it is bounded by them.
/// - A failure MUST say how many bytes of the request went out, so that what the provider may bill can be bounded.
/// - MUST NOT put the provider's text into a failure.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DecisionProvider: Send + Sync {
    /// Makes the attempt.
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure>;

    /// At most so many bytes of requests go out for one attempt at that endpoint: what it may come to is bounded by
    /// them before anything is sent. Where this is not written anew, it is a bound for providers that send the provider input
    /// once, whatever escapes JSON puts into it.
    fn outbound_bytes(&self, endpoint: &Endpoint, provider_input: &ProviderInput) -> u64 {
        let bytes = provider_input.len_bytes().saturating_add(endpoint.upstream_model.len());
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        bytes.saturating_mul(ESCAPED).saturating_add(FRAME)
    }
}
