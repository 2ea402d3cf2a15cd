//! The codec of the wire.

use domain::question::{ProviderInput, Questions};
use domain::routing::Wire;

use super::{provider_request, provider_response};
use crate::provider::{BadAnswer, ModelLocation, RequestBody, UnsupportedByWire, WireAnswer, WireCodec};

/// The codec, as configured for one provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiDecisions {
    /// The location of the model's name.
    pub model_location: ModelLocation,
}

impl WireCodec for OpenAiDecisions {
    fn wire(&self) -> Wire {
        Wire::OpenAiDecisions
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
}
