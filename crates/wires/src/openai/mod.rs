//! OpenAI's format: `input` and an array of `predicate | choice | score` questions. Azure speaks it too, with another
//! header and path.

pub mod client_request;
pub mod client_response;
mod codec;
pub mod errors;
mod format;
mod input;
mod parts;
pub mod provider_request;
pub mod provider_response;

pub use codec::OpenAiDecisions;
