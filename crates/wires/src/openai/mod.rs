//! OpenAI's format: `input` and an array of `predicate | choice | score` questions. Azure speaks it too, with another
//! header and path.

mod codec;
mod parts;
pub mod provider_request;
pub mod provider_response;

pub use codec::OpenAiDecisions;
