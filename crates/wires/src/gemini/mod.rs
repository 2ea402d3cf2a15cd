//! Gemini's format: `input` and a map of `noul | choice | score` questions whose texts are strings.

pub mod client_request;
pub mod client_response;
mod codec;
pub mod errors;
mod format;
pub mod provider_request;
pub mod provider_response;

pub use codec::GeminiDecisions;
