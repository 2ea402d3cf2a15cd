//! The codec of a wire.

use domain::question::{ProviderInput, Questions};
use domain::routing::Wire;

use super::{BadAnswer, ReadError, RequestBody, UnsupportedByWire, WireAnswer};

/// The codec of a wire with one request and one response per call.
pub trait WireCodec: Send + Sync + 'static {
    /// Returns the wire.
    fn wire(&self) -> Wire;

    /// Returns true if the wire rejects choices of one option and scores of one level. Those questions are answered
    /// locally and never written.
    fn refuses_single_outcomes(&self) -> bool;

    /// Builds the request body for a model with this name at the provider.
    ///
    /// # Errors
    /// The feature that the wire does not support.
    fn write(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<RequestBody, UnsupportedByWire>;

    /// Returns the length of the body that [`Self::write`] builds.
    ///
    /// # Errors
    /// The feature that the wire does not support.
    fn body_length(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<u64, UnsupportedByWire> {
        self.write(upstream_model, provider_input).map(|body| body.len_bytes())
    }

    /// Reads the answers to these questions, in order.
    ///
    /// # Errors
    /// The malformed element.
    fn read(&self, questions: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer>;

    /// Returns the reader of errors that say more than their status. It is also applied to malformed answers, because
    /// some providers send errors with status 200.
    fn read_error(&self) -> Option<ReadError> {
        None
    }
}
