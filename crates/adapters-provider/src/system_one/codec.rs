//! The codec of the wire.

use domain::decision::{ProviderInput, Questions};
use domain::routing::Wire;

use super::{errors, request, response};
use crate::http::{Payload, ReadError};
use crate::settings::{Envelope, ModelPlace, ProviderSettings};
use crate::wire::{BadAnswer, Uncarried, WireAnswer, WireCodec};

/// The codec with its dialects: the location of the model's name, and the answer wrapper.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemOne {
    /// The location of the model's name.
    pub model_location: ModelPlace,
    /// The wrapper around answers.
    pub envelope: Envelope,
}

impl SystemOne {
    /// Builds the codec from these settings.
    pub fn of(settings: &ProviderSettings) -> Self {
        Self { model_location: settings.model_location, envelope: settings.envelope }
    }
}

impl WireCodec for SystemOne {
    fn wire(&self) -> Wire {
        Wire::SystemOne
    }

    fn refuses_single_outcomes(&self) -> bool {
        self.envelope == Envelope::WorkersAi
    }

    fn write(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<Payload, Uncarried> {
        let model = match self.envelope {
            Envelope::Databricks => None,
            Envelope::None | Envelope::WorkersAi => self.model_location.in_body(upstream_model),
        };
        request::write(model, provider_input, self.envelope)
    }

    fn read(&self, _: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer> {
        response::read(self.envelope, body)
    }

    fn read_error(&self) -> Option<ReadError> {
        match self.envelope {
            Envelope::WorkersAi => Some(errors::workers_ai),
            Envelope::None | Envelope::Databricks => None,
        }
    }
}
