//! SGLang's format: `input` and an array of `choice | score | yes_no` questions, answered by scoring label tokens.

pub mod client_request;
pub mod client_response;
mod codec;
pub mod errors;
mod format;
pub mod provider_request;
pub mod provider_response;

pub use codec::SglangDecisions;
