//! The `gemini-decisions` wire: `input` and a map of `noul | choice | score` questions whose texts are strings.

mod codec;
pub mod errors;
pub mod request;
pub mod response;

pub use codec::GeminiDecisions;
