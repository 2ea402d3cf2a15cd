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
