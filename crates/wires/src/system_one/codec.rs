//! The codec of the wire.

use domain::question::{ProviderInput, Questions};
use domain::routing::Wire;

use super::provider_response::ResponseWrapper;
use super::{errors, provider_request, provider_response};
use crate::provider::{BadAnswer, ModelLocation, ReadError, RequestBody, UnsupportedByWire, WireAnswer, WireCodec};

/// The codec with its dialects: the location of the model's name, and the answer wrapper.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemOne {
    /// The location of the model's name.
    pub model_location: ModelLocation,
    /// The wrapper around answers.
    pub response_wrapper: ResponseWrapper,
}

impl SystemOne {
    /// Returns the model's name in the body, if it belongs there.
    fn model_in_body(self, upstream_model: &str) -> Option<&str> {
        match self.response_wrapper {
            ResponseWrapper::Databricks => None,
            ResponseWrapper::None | ResponseWrapper::WorkersAi => self.model_location.in_body(upstream_model),
        }
    }
}

impl WireCodec for SystemOne {
    fn wire(&self) -> Wire {
        Wire::SystemOne
    }

    fn refuses_single_outcomes(&self) -> bool {
        self.response_wrapper == ResponseWrapper::WorkersAi
    }

    fn write(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<RequestBody, UnsupportedByWire> {
        provider_request::write(self.model_in_body(upstream_model), provider_input, self.response_wrapper)
    }

    fn body_length(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<u64, UnsupportedByWire> {
        provider_request::length(self.model_in_body(upstream_model), provider_input, self.response_wrapper)
    }

    fn read(&self, _: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer> {
        provider_response::read(self.response_wrapper, body)
    }

    fn read_error(&self) -> Option<ReadError> {
        match self.response_wrapper {
            ResponseWrapper::WorkersAi => Some(errors::workers_ai),
            ResponseWrapper::None | ResponseWrapper::Databricks => None,
        }
    }
}
