//! System One's format and its dialects: `state` and a map of questions in, `answers` and `usage` out. It is the
//! canonical form itself.

pub mod client_request;
pub mod client_response;
mod codec;
pub mod errors;
pub mod provider_request;
pub mod provider_response;

pub use codec::SystemOne;
pub use provider_response::ResponseWrapper;
