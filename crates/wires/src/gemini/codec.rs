//! The codec of the wire.

use domain::question::{ProviderInput, Questions};
use domain::routing::Wire;

use super::{errors, provider_request, provider_response};
use crate::provider::{BadAnswer, ModelLocation, ReadError, RequestBody, UnsupportedByWire, WireAnswer, WireCodec};

/// The codec, as configured for one provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct GeminiDecisions {
    /// The location of the model's name.
    pub model_location: ModelLocation,
}

impl WireCodec for GeminiDecisions {
    fn wire(&self) -> Wire {
        Wire::GeminiDecisions
    }

    fn refuses_single_outcomes(&self) -> bool {
        true
    }

    fn write(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<RequestBody, UnsupportedByWire> {
        provider_request::write(self.model_location.in_body(upstream_model), provider_input)
    }

    fn read(&self, questions: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer> {
        provider_response::read(questions, body)
    }

    fn read_error(&self) -> Option<ReadError> {
        Some(errors::read)
    }
}
