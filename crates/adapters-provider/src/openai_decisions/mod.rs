//! The `openai-decisions` wire: `input` and an array of `predicate | choice | score` questions. Azure speaks it too,
//! with another header and path.

mod codec;
mod parts;
pub mod request;
pub mod response;

pub use codec::OpenAiDecisions;
