//! Gemini's format: `input` and a map of `noul | choice | score` questions whose texts are strings.

mod codec;
pub mod errors;
pub mod provider_request;
pub mod provider_response;

pub use codec::GeminiDecisions;
