//! The requests of the control socket.

use serde::{Deserialize, Serialize};

/// A request to a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum ControlRequest {
    /// Returns a [`ServerStatus`](super::ServerStatus).
    Status,
    /// Tests a provider with its credential in the server, and returns a [`ProviderTestReport`].
    TestProvider {
        /// The provider's slug.
        provider: String,
        /// The name of a model, in the catalogue or at the provider; `None` is that of the first endpoint.
        model: Option<String>,
    },
}

/// The result of a test of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderTestReport {
    /// True if the provider gave a valid answer.
    pub ok: bool,
    /// The provider's slug.
    pub provider: String,
    /// The wire.
    pub wire: String,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// `answered`, or the outcome of the failed attempt as in usage records.
    pub outcome: String,
    /// The HTTP status of the provider, if it sent one.
    pub upstream_status: Option<u16>,
    /// The time from the call to the answer or the failure, in milliseconds.
    pub latency_ms: f64,
    /// The input tokens that the provider reported.
    pub input_tokens: Option<u64>,
    /// The output tokens that the provider reported.
    pub output_tokens: Option<u64>,
    /// The name of the cause, if it is one that an operator can mend.
    #[serde(default)]
    pub cause: Option<String>,
    /// The reason of the failure.
    pub detail: Option<String>,
    /// The provider's error code, at most 64 characters.
    pub provider_code: Option<String>,
    /// The provider's error message, at most 256 characters, with keys masked.
    pub provider_message: Option<String>,
}
