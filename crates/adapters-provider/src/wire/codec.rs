//! What makes a wire a wire.

use domain::decision::{ProviderInput, Questions};
use domain::routing::Wire;

use super::{BadAnswer, Uncarried, WireAnswer};
use crate::http::{Payload, ReadError};

/// One wire as [`crate::HttpProvider`] speaks it: one request, one answer.
pub trait WireCodec: Send + Sync + 'static {
    /// Which wire it is.
    fn wire(&self) -> Wire;

    /// True where it takes no choice of one option and no score of one level. The answer to those is known without
    /// asking, so they are answered here and never written.
    fn refuses_single_outcomes(&self) -> bool;

    /// The request body, for a model of that name at the provider.
    ///
    /// # Errors
    /// What the wire cannot carry.
    fn write(&self, upstream_model: &str, provider_input: &ProviderInput) -> Result<Payload, Uncarried>;

    /// The answers in a body, to these questions and in their order.
    ///
    /// # Errors
    /// What is malformed.
    fn read(&self, questions: &Questions, body: &[u8]) -> Result<WireAnswer, BadAnswer>;

    /// Reads what an error says beyond its status. Also asked about answers that are malformed, which some
    /// providers send where they mean an error.
    fn read_error(&self) -> Option<ReadError> {
        None
    }
}
