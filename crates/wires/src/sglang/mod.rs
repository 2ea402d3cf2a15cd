//! SGLang's format: `input` and an array of `choice | score | yes_no` questions, answered by scoring label tokens.

mod codec;
pub mod provider_request;
pub mod provider_response;

pub use codec::SglangDecisions;
