//! The format of chat completions, as OpenAI-compatible servers speak it. It has no half for clients.

pub mod errors;
pub mod members;
pub mod provider_request;
pub mod provider_response;
